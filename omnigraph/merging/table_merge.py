"""One table in a merge: the changes that each side made since the base, and how they are combined.

An entity that only one side changed is taken from that side. An entity that both sides changed in the same way stays as
it is in the target. An entity that the sides changed differently is contested. This module does not read tables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.entities import TableChanges
from omnigraph.records.cached_property import cached_property
from omnigraph.storage.value_equality import same_rows, same_values
from omnigraph.storage.wide_rows import matching_slices, take_positions
from omnigraph.values.table_key import TableKey

Choice = Literal["ours", "theirs"]
Granularity = Literal["entity", "property"]
EntityRows: TypeAlias = tuple[pa.Table | None, pa.Table | None, pa.Table | None]  # (base, ours, theirs)


@dataclass(frozen=True)
class ContestedEntity:
    """An entity that the two sides changed differently. A row is None if the entity does not exist in that state.

    `differing_columns` are the conflicting columns.
    """

    kind: str
    id: str
    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None
    differing_columns: tuple[str, ...]


class MergedRow(NamedTuple):
    """An entity merged property by property, and whether it differs from our row."""

    row: pa.Table
    differs_from_ours: bool


@dataclass(frozen=True)
class TableSides:
    """The changes that each side made to a table since a common base.

    `uncertain_ids` are the ids of entities without a known base value, because several bases disagree. These entities
    are contested wherever the sides differ.
    """

    table_key: TableKey
    ours: TableChanges
    theirs: TableChanges
    granularity: Granularity = "property"
    uncertain_ids: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def shared_ids(self) -> pa.Array:
        """The ids of entities that both sides changed, or whose base value is uncertain."""
        our_ids, their_ids = changed_ids(self.ours), changed_ids(self.theirs)
        common_ids = their_ids.filter(pc.is_in(their_ids, value_set=our_ids))
        return pa.concat_arrays([common_ids, pa.array(sorted(self.uncertain_ids), pa.string())]).unique()

    @cached_property
    def contested_entities(self) -> dict[str, ContestedEntity]:
        """The entities that the two sides changed differently, by id."""
        entities = [*self._contested_updates(), *self._contested_inserts_and_deletes()]
        return {entity.id: entity for entity in sorted(entities, key=lambda candidate: candidate.id)}

    @cached_property
    def combined_rows(self) -> pa.Table:
        """The combined rows of entities in which each side changed different properties."""
        return self._combined_updates[0]

    @cached_property
    def combined_value_count(self) -> int:
        """The number of values in the combined rows that come from the source."""
        return self._combined_updates[2]

    def changes_to_take(self) -> tuple[pa.Table, pa.Table, pa.Array]:
        """Return the changes to take from the source: rows to add, rows to replace, and ids to remove."""
        their_changes = self.theirs
        inserted_rows = _rows_without_ids(their_changes.inserted, self.shared_ids)
        updated_rows = _rows_without_ids(their_changes.updated_after, self.shared_ids)
        deleted_ids = _rows_without_ids(their_changes.deleted, self.shared_ids)["id"].combine_chunks()
        return inserted_rows, pa.concat_tables([updated_rows, self.combined_rows]), deleted_ids

    def row_on(self, side: Choice, entity_id: str) -> pa.Table | None:
        """Return an entity's row on one side.

        The result is None if that side does not have the entity, or if neither side changed it.
        """
        side_changes, opposite_changes = (self.ours, self.theirs) if side == "ours" else (self.theirs, self.ours)
        for table in (side_changes.inserted, side_changes.updated_after):
            row = find_row(table, entity_id)
            if row is not None:
                return row
        if find_row(side_changes.deleted, entity_id) is not None:
            return None
        # This side has not changed the entity since the base.
        row = find_row(opposite_changes.updated_before, entity_id)
        return row if row is not None else find_row(opposite_changes.deleted, entity_id)

    def changes_of(self, side: Choice) -> TableChanges:
        """Return the changes that a side made."""
        return self.ours if side == "ours" else self.theirs

    def is_deleted_on(self, side: Choice, entity_id: str) -> bool:
        """Return whether a side deleted an entity that the base contains."""
        return self.base_row(entity_id) is not None and self.row_on(side, entity_id) is None

    def edges_deleted_only_on(self, side: Choice, nodes_by_endpoint: Mapping[str, pa.Array]) -> pa.Table:
        """Return the edges at the given nodes that one side deleted and the other side left unchanged."""
        deleted_rows = self.changes_of(side).deleted
        opposite_changes = self.changes_of("theirs" if side == "ours" else "ours")
        at_nodes = [
            pc.is_in(deleted_rows[endpoint], value_set=node_ids) for endpoint, node_ids in nodes_by_endpoint.items()
        ]
        unchanged_opposite = pc.invert(pc.is_in(deleted_rows["id"], value_set=changed_ids(opposite_changes)))
        return deleted_rows.filter(pc.and_(pc.or_(*at_nodes), unchanged_opposite))

    def versions_of(self, entity_id: str) -> EntityRows:
        """Return the base row, our row and their row of an entity that either side changed."""
        contested = self.contested_entities.get(entity_id)
        if contested is not None:
            return contested.base, contested.ours, contested.theirs
        return self.base_row(entity_id), self.row_on("ours", entity_id), self.row_on("theirs", entity_id)

    def merges_properties(self, entity_id: str) -> bool:
        """Return whether an entity's properties are merged one by one.

        This requires the granularity `property` and an entity that exists in the base and on both sides.
        """
        return self.granularity == "property" and all(row is not None for row in self.versions_of(entity_id))

    def merged_row(self, entity_id: str, side_by_column: Mapping[str, Choice] | None = None) -> pa.Table | None:
        """Return an entity merged as in `merged_rows`.

        If the entity's properties are not merged one by one, return our row, or their row if our side does not have
        the entity.
        """
        if self.merges_properties(entity_id):
            return self.merged_rows({entity_id: side_by_column or {}})[entity_id].row
        _, our_row, their_row = self.versions_of(entity_id)
        return our_row if our_row is not None else their_row

    def merged_rows(self, side_by_column: Mapping[str, Mapping[str, Choice]]) -> dict[str, MergedRow]:
        """Return entities merged property by property, using the value from the chosen side if a side was chosen.

        All other conflicting properties take our value. `merges_properties` must be true for every entity.
        """
        versions = [self.versions_of(entity_id) for entity_id in side_by_column]
        if not versions:
            return {}
        base_rows, our_rows, their_rows = (
            pa.concat_tables(rows).combine_chunks() for rows in zip(*versions, strict=True)
        )
        take_theirs = {
            column: same_values(base_rows[column], our_rows[column]).copy() for column in our_rows.column_names
        }
        for row_number, chosen_sides in enumerate(side_by_column.values()):
            for column, side in chosen_sides.items():
                take_theirs[column][row_number] = side == "theirs"
        merged_rows = _pick_values(our_rows, their_rows, take_theirs)
        equals_ours = same_rows(merged_rows, our_rows)
        return {
            entity_id: MergedRow(merged_rows.slice(row_number, 1), not equals_ours[row_number])
            for row_number, entity_id in enumerate(side_by_column)
        }

    def is_changed(self, entity_id: str) -> bool:
        """Return whether either side changed an entity."""
        return any(
            find_row(table, entity_id) is not None
            for changes in (self.ours, self.theirs)
            for table in (changes.inserted, changes.updated_after, changes.deleted)
        )

    def base_row(self, entity_id: str) -> pa.Table | None:
        """Return an entity's base row, or None if the entity is new or neither side changed it."""
        base_tables = (
            base_table
            for changes in (self.ours, self.theirs)
            for base_table in (changes.updated_before, changes.deleted)
        )
        return next((row for table in base_tables if (row := find_row(table, entity_id)) is not None), None)

    def added_rows(self) -> tuple[pa.Table, pa.Table]:
        """Return the rows that each side added."""
        return self.ours.inserted, self.theirs.inserted

    def changed_edges_from(self, source_id: str) -> list[str]:
        """Return the ids of a source node's edges that either side added, changed or removed."""
        edge_ids: set[str] = set()
        for changes in (self.ours, self.theirs):
            for table in (changes.inserted, changes.updated_before, changes.updated_after, changes.deleted):
                edge_ids |= set(table.filter(pc.equal(table["src"], source_id))["id"].to_pylist())
        return sorted(edge_ids)

    def to_rule_columns(self, rows: pa.Table) -> pa.Table:
        """Return the rows unchanged, because this process has all of their columns."""
        return rows

    @cached_property
    def _combined_updates(self) -> tuple[pa.Table, list[ContestedEntity], int]:
        """Return the combined rows, contested entities and combined value count for entities updated on both sides."""
        base_rows, our_rows, their_rows = self._updated_by_both()
        changed_by_them, changed_by_us, clashing = {}, {}, {}
        for column in base_rows.column_names:
            changed_by_them[column] = ~same_values(base_rows[column], their_rows[column])
            changed_by_us[column] = ~same_values(base_rows[column], our_rows[column])
            clashing[column] = (
                changed_by_them[column] & changed_by_us[column] & ~same_values(our_rows[column], their_rows[column])
            )
        rows_differ = ~same_rows(our_rows, their_rows)
        if self.granularity == "entity":
            take_theirs = dict.fromkeys(changed_by_them, np.zeros(base_rows.num_rows, bool))
            contested_mask = rows_differ
        else:
            take_theirs = {column: changed_by_them[column] & ~changed_by_us[column] for column in changed_by_them}
            contested_mask = np.any([*clashing.values()], axis=0) if base_rows.num_rows else rows_differ
        mixed_rows = _pick_values(our_rows, their_rows, take_theirs)
        takes_any = np.any([*take_theirs.values()], axis=0) if take_theirs else rows_differ
        combined_mask = pa.array(rows_differ & ~contested_mask & takes_any)
        value_count = sum(
            int((column_mask & rows_differ & ~contested_mask).sum()) for column_mask in take_theirs.values()
        )
        contested = []
        for position in np.flatnonzero(contested_mask):
            row_number = int(position)
            differing_columns = self._differing_columns_at(clashing, our_rows, their_rows, row_number)
            contested.append(_contested_update(base_rows, our_rows, their_rows, row_number, differing_columns))
        return mixed_rows.filter(combined_mask), contested, value_count

    def _differing_columns_at(
        self, clashing: dict[str, Any], our_rows: pa.Table, their_rows: pa.Table, row_number: int
    ) -> tuple[str, ...]:
        if self.granularity == "property":
            return tuple(column for column, mask in clashing.items() if mask[row_number])
        return _differing_columns(our_rows.slice(row_number, 1), their_rows.slice(row_number, 1))

    def _updated_by_both(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        our_ids, their_ids = self.ours.updated_after["id"], self.theirs.updated_after["id"]
        position_in_theirs = pc.index_in(our_ids.combine_chunks(), value_set=their_ids.combine_chunks())
        our_positions = pa.array(np.flatnonzero(pc.is_valid(position_in_theirs).to_numpy(zero_copy_only=False)))
        their_positions = position_in_theirs.drop_null()
        return (
            take_positions(self.ours.updated_before, our_positions),
            take_positions(self.ours.updated_after, our_positions),
            take_positions(self.theirs.updated_after, their_positions),
        )

    def _contested_updates(self) -> Iterator[ContestedEntity]:
        yield from self._combined_updates[1]

    def _contested_inserts_and_deletes(self) -> Iterator[ContestedEntity]:
        """Yield entities that both sides inserted, or that one side deleted and the other changed."""
        our_changes, their_changes = self.ours, self.theirs
        for entity_id in _common_ids(our_changes.inserted, their_changes.inserted):
            our_row = find_row(our_changes.inserted, entity_id)
            their_row = find_row(their_changes.inserted, entity_id)
            if our_row is not None and their_row is not None and not same_rows(our_row, their_row).all():
                differing_columns = _differing_columns(our_row, their_row)
                kind = "divergent_update" if entity_id in self.uncertain_ids else "divergent_insert"
                yield ContestedEntity(kind, entity_id, None, our_row, their_row, differing_columns)
        for entity_id in _common_ids(our_changes.updated_after, their_changes.deleted):
            yield self._delete_conflict(entity_id, find_row(our_changes.updated_after, entity_id), None)
        for entity_id in _common_ids(our_changes.deleted, their_changes.updated_after):
            yield self._delete_conflict(entity_id, None, find_row(their_changes.updated_after, entity_id))
        for entity_id in sorted(self.uncertain_ids):
            our_row = find_row(our_changes.inserted, entity_id)
            their_row = find_row(their_changes.inserted, entity_id)
            if (our_row is None) != (their_row is None):
                yield self._delete_conflict(entity_id, our_row, their_row)

    def _delete_conflict(self, entity_id: str, our_row: pa.Table | None, their_row: pa.Table | None) -> ContestedEntity:
        base_values = self.base_row(entity_id)
        surviving_row = our_row if our_row is not None else their_row
        is_comparable = base_values is not None and surviving_row is not None
        changed_columns = _differing_columns(base_values, surviving_row) if is_comparable else ()
        return ContestedEntity("delete_vs_update", entity_id, base_values, our_row, their_row, changed_columns)


def changed_ids(changes: TableChanges) -> pa.Array:
    """Return the ids of all changed entities."""
    return changes.ids


def find_row(table: pa.Table, entity_id: str) -> pa.Table | None:
    """Return an entity's row, or None if the entity does not exist. The table must be sorted by id."""
    id_column = table["id"]
    lower, upper = 0, len(id_column)
    encoded_id = entity_id.encode()
    while lower < upper:
        middle = (lower + upper) // 2
        if id_column[middle].as_py().encode() < encoded_id:
            lower = middle + 1
        else:
            upper = middle
    is_present = lower < len(id_column) and id_column[lower].as_py() == entity_id
    return table.slice(lower, 1) if is_present else None


def _contested_update(
    base_rows: pa.Table, our_rows: pa.Table, their_rows: pa.Table, row_number: int, differing_columns: tuple[str, ...]
) -> ContestedEntity:
    base_row, our_row, their_row = (rows.slice(row_number, 1) for rows in (base_rows, our_rows, their_rows))
    entity_id = our_rows["id"][row_number].as_py()
    return ContestedEntity("divergent_update", entity_id, base_row, our_row, their_row, differing_columns)


def _pick_values(our_rows: pa.Table, their_rows: pa.Table, take_theirs: dict[str, Any]) -> pa.Table:
    """Return our rows, with each value that `take_theirs` selects replaced by the value in `their_rows`."""
    pieces, piece_start = [], 0
    for our_piece, their_piece in matching_slices(our_rows, their_rows):
        row_count, columns = our_piece.num_rows, []
        for column_name in our_rows.column_names:
            takes_theirs = take_theirs[column_name][piece_start : piece_start + row_count]
            both_values = pa.concat_arrays(
                [_flatten_column(our_piece[column_name]), _flatten_column(their_piece[column_name])]
            )
            columns.append(both_values.take(pa.array(np.arange(row_count) + row_count * takes_theirs)))
        pieces.append(pa.table(columns, schema=our_rows.schema))
        piece_start += row_count
    return pa.concat_tables(pieces)


def _flatten_column(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _differing_columns(row: pa.Table, other_row: pa.Table) -> tuple[str, ...]:
    columns = row.column_names
    return tuple(column for column in columns if not same_values(row[column], other_row[column])[0])


def _common_ids(rows: pa.Table, other_rows: pa.Table) -> list[str]:
    ids = rows["id"].combine_chunks()
    common_ids: list[str] = ids.filter(pc.is_in(ids, value_set=other_rows["id"].combine_chunks())).to_pylist()
    return common_ids


def _rows_without_ids(rows: pa.Table, ids: pa.Array) -> pa.Table:
    if not len(ids) or not rows.num_rows:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))
