"""One table of a merge: what each side changed since the base, and what follows from both.

Owns the truth table. An entity that one side changed is taken from that side; one that both changed
alike stays; one that both changed differently is contested. Must not read any table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.entities import TableChanges
from omnigraph.storage.equality import same_rows, same_values

Choice = Literal["ours", "theirs"]
Granularity = Literal["entity", "property"]


@dataclass(frozen=True)
class Contested:
    """An entity that both sides changed differently; None where a side does not have it.

    `row_by_choice` is the resulting row for each choice; `differing_columns` are in conflict.
    """

    kind: str
    id: str
    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None
    clashing: tuple[str, ...]
    mixed: dict[Choice, pa.Table | None]


@dataclass(frozen=True)
class Sides:
    """The changes of both sides of one table, from one base.

    `uncertain_ids` are entities without a known base value, because several bases disagree: they
    are contested wherever the sides differ.
    """

    key: str
    ours: TableChanges
    theirs: TableChanges
    granularity: Granularity = "entity"
    doubtful: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def shared(self) -> pa.Array:
        """Ids that both sides changed, or whose base value is uncertain."""
        mine, other = ids_of(self.ours), ids_of(self.theirs)
        both = other.filter(pc.is_in(other, value_set=mine))
        return pa.concat_arrays([both, pa.array(sorted(self.doubtful), pa.string())]).unique()

    @cached_property
    def contested(self) -> dict[str, Contested]:
        """Entities that both sides changed differently, by id."""
        found = [*self._updates(), *self._others()]
        return {one.id: one for one in sorted(found, key=lambda each: each.id)}

    @cached_property
    def combined(self) -> pa.Table:
        """Rows in which each side changed other properties, combined."""
        return self._mixed[0]

    @cached_property
    def combined_properties(self) -> int:
        """How many values of the combined rows come from the other side."""
        return self._mixed[2]

    def taken(self) -> tuple[pa.Table, pa.Table, pa.Array]:
        """Return what only the other side changed: rows to add, rows to replace, ids to remove."""
        other = self.theirs
        fresh, after = _without(other.inserted, self.shared), _without(other.after, self.shared)
        gone = _without(other.deleted, self.shared)["id"].combine_chunks()
        return fresh, pa.concat_tables([after, self.combined]), gone

    def state(self, side: Choice, entity: str) -> pa.Table | None:
        """Return an entity on a side, if either changed it; None if that side lacks it."""
        mine, other = (self.ours, self.theirs) if side == "ours" else (self.theirs, self.ours)
        for table in (mine.inserted, mine.after):
            row = row_of(table, entity)
            if row is not None:
                return row
        if row_of(mine.deleted, entity) is not None:
            return None
        # This side left it unchanged since the base.
        row = row_of(other.before, entity)
        return row if row is not None else row_of(other.deleted, entity)

    def of(self, side: Choice) -> TableChanges:
        """Return what a side changed."""
        return self.ours if side == "ours" else self.theirs

    def gone_on(self, side: Choice, entity: str) -> bool:
        """Whether a side deleted an entity of the base."""
        return self.base_row(entity) is not None and self.state(side, entity) is None

    def only_gone_on(self, side: Choice, ends: Mapping[str, pa.Array]) -> pa.Table:
        """Return edges at some nodes that one side deleted and the other left unchanged."""
        gone, other = self.of(side).deleted, self.of("theirs" if side == "ours" else "ours")
        at = [pc.is_in(gone[end], value_set=nodes) for end, nodes in ends.items()]
        alone = pc.invert(pc.is_in(gone["id"], value_set=ids_of(other)))
        return gone.filter(pc.and_(pc.or_(*at), alone))

    def chosen(self, entity: str, side: Choice) -> pa.Table | None:
        """Return the row of an entity if a side is chosen; None if that removes the entity."""
        found = self.contested.get(entity)
        return found.mixed[side] if found is not None else self.state(side, entity)

    def knows(self, entity: str) -> bool:
        """Whether either side changed an entity."""
        return any(
            row_of(table, entity) is not None
            for one in (self.ours, self.theirs)
            for table in (one.inserted, one.after, one.deleted)
        )

    def base_row(self, entity: str) -> pa.Table | None:
        """Return an entity as it was in the base, if either side changed it."""
        tables = (one for s in (self.ours, self.theirs) for one in (s.before, s.deleted))
        return next((row for table in tables if (row := row_of(table, entity)) is not None), None)

    def added(self) -> tuple[pa.Table, pa.Table]:
        """Return what each side added."""
        return self.ours.inserted, self.theirs.inserted

    def edges_from(self, source: str) -> list[str]:
        """Return the edges that either side added, changed or removed at a node."""
        found: set[str] = set()
        for one in (self.ours, self.theirs):
            for table in (one.inserted, one.before, one.after, one.deleted):
                found |= set(table.filter(pc.equal(table["src"], source))["id"].to_pylist())
        return sorted(found)

    def slim(self, rows: pa.Table) -> pa.Table:
        """Limit rows to the columns of the rows that are taken: here these are whole rows, too."""
        return rows

    @cached_property
    def _mixed(self) -> tuple[pa.Table, list[Contested], int]:
        """Entities that both sides updated: combined rows, contested ones, combined value count."""
        base, ours, theirs = self._updated_by_both()
        ours, theirs = ours.combine_chunks(), theirs.combine_chunks()
        moved, mine, clash = {}, {}, {}
        for name in base.column_names:
            moved[name] = ~same_values(base[name], theirs[name])
            mine[name] = ~same_values(base[name], ours[name])
            clash[name] = moved[name] & mine[name] & ~same_values(ours[name], theirs[name])
        differ = ~same_rows(ours, theirs)
        if self.granularity == "entity":
            wanted, broken = dict.fromkeys(moved, np.zeros(base.num_rows, bool)), differ
        else:
            wanted = {name: moved[name] & ~mine[name] for name in moved}
            broken = np.any([*clash.values()], axis=0) if base.num_rows else differ
        mixed = _picked(ours, theirs, wanted)
        useful = np.any([*wanted.values()], axis=0) if wanted else differ
        plain = pa.array(differ & ~broken & useful)
        count = sum(int((one & differ & ~broken).sum()) for one in wanted.values())
        found = []
        for at in np.flatnonzero(broken):
            row = int(at)
            names = self._clashing(clash, ours, theirs, row)
            chosen = self._chosen(mixed, theirs, clash, row)
            found.append(_contested(base, ours, theirs, row, names, chosen))
        return mixed.filter(plain), found, count

    def _chosen(
        self, mixed: pa.Table, theirs: pa.Table, clash: dict[str, Any], at: int
    ) -> dict[Choice, pa.Table | None]:
        ours, other = mixed.slice(at, 1), theirs.slice(at, 1)
        if self.granularity == "property":
            one = {name: mask[at : at + 1] for name, mask in clash.items()}
            other = _picked(ours.combine_chunks(), other.combine_chunks(), one)
        return {"ours": ours, "theirs": other}

    def _clashing(
        self, clash: dict[str, Any], ours: pa.Table, theirs: pa.Table, at: int
    ) -> tuple[str, ...]:
        if self.granularity == "property":
            return tuple(name for name, mask in clash.items() if mask[at])
        return _differing(ours.slice(at, 1), theirs.slice(at, 1))

    def _updated_by_both(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        mine, other = self.ours.after["id"], self.theirs.after["id"]
        place = pc.index_in(mine.combine_chunks(), value_set=other.combine_chunks())
        here = pa.array(np.flatnonzero(pc.is_valid(place).to_numpy(zero_copy_only=False)))
        there = place.drop_null()
        return (
            self.ours.before.take(here),
            self.ours.after.take(here),
            self.theirs.after.take(there),
        )

    def _updates(self) -> Iterator[Contested]:
        yield from self._mixed[1]

    def _others(self) -> Iterator[Contested]:
        """Inserted by both, or deleted on one side and changed on the other."""
        ours, theirs = self.ours, self.theirs
        for entity in _both(ours.inserted, theirs.inserted):
            mine, other = row_of(ours.inserted, entity), row_of(theirs.inserted, entity)
            if mine is not None and other is not None and not same_rows(mine, other).all():
                names = _differing(mine, other)
                kind = "divergent_update" if entity in self.doubtful else "divergent_insert"
                yield Contested(kind, entity, None, mine, other, names, _sides(mine, other))
        for entity in _both(ours.after, theirs.deleted):
            yield self._deleted(entity, row_of(ours.after, entity), None)
        for entity in _both(ours.deleted, theirs.after):
            yield self._deleted(entity, None, row_of(theirs.after, entity))
        for entity in sorted(self.doubtful):
            mine, other = row_of(ours.inserted, entity), row_of(theirs.inserted, entity)
            if (mine is None) != (other is None):
                yield self._deleted(entity, mine, other)

    def _deleted(self, entity: str, mine: pa.Table | None, other: pa.Table | None) -> Contested:
        base, kept = self.base_row(entity), mine if mine is not None else other
        known = base is not None and kept is not None
        names = _differing(base, kept) if known else ()
        return Contested("delete_vs_update", entity, base, mine, other, names, _sides(mine, other))


def ids_of(one: TableChanges) -> pa.Array:
    """Return the ids of all changed entities."""
    return one.ids


def row_of(table: pa.Table, entity: str) -> pa.Table | None:
    """Return the row of an entity in a table sorted by id; None if absent."""
    column = table["id"]
    low, high = 0, len(column)
    wanted = entity.encode()
    while low < high:
        middle = (low + high) // 2
        if column[middle].as_py().encode() < wanted:
            low = middle + 1
        else:
            high = middle
    found = low < len(column) and column[low].as_py() == entity
    return table.slice(low, 1) if found else None


def _contested(
    base: pa.Table,
    ours: pa.Table,
    theirs: pa.Table,
    at: int,
    names: tuple[str, ...],
    mixed: dict[Choice, pa.Table | None],
) -> Contested:
    first, mine, other = (one.slice(at, 1) for one in (base, ours, theirs))
    entity = ours["id"][at].as_py()
    return Contested("divergent_update", entity, first, mine, other, names, mixed)


def _sides(ours: pa.Table | None, theirs: pa.Table | None) -> dict[Choice, pa.Table | None]:
    return {"ours": ours, "theirs": theirs}


def _picked(ours: pa.Table, theirs: pa.Table, wanted: dict[str, Any]) -> pa.Table:
    """Replace some values of our rows by theirs, column by column."""
    count, columns = ours.num_rows, []
    for name in ours.column_names:
        both = pa.concat_arrays([_flat(ours[name]), _flat(theirs[name])])
        columns.append(both.take(pa.array(np.arange(count) + count * wanted[name])))
    return pa.table(columns, schema=ours.schema)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _differing(one: pa.Table, other: pa.Table) -> tuple[str, ...]:
    names = one.column_names
    return tuple(name for name in names if not same_values(one[name], other[name])[0])


def _both(one: pa.Table, other: pa.Table) -> list[str]:
    ids = one["id"].combine_chunks()
    found: list[str] = ids.filter(pc.is_in(ids, value_set=other["id"].combine_chunks())).to_pylist()
    return found


def _without(rows: pa.Table, ids: pa.Array) -> pa.Table:
    if not len(ids) or not rows.num_rows:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))
