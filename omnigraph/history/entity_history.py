"""The history of one entity: its versions, and the commit that set each property value.

This module walks the commit graph. A version belongs to the commit that created it, on any branch. A merge creates a
version only if it decided between the two sides, not if it merely carried a version over. Likewise, if a merge made a
decision about a property, the merge counts as the commit that set the property, whichever side it chose. All rows are
compared in the current schema. Each distinct content of the table is read only once, and only the entity's row is read.
Commits that did not change the table require no reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.errors import ChangeSchemaBoundary, EntityNotFound, HistoryReclaimed, StorageError
from omnigraph.history.merge_bases import find_merge_bases
from omnigraph.lang.schema.catalog import ENDPOINT_COLUMNS
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.records.cached_property import cached_property
from omnigraph.storage.arrow import table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find
from omnigraph.storage.table import Table, open_table
from omnigraph.values.table_key import TableKey

from .commit import Commit, SchemaRow, TableEntry
from .commit_log import sort_newest_first
from .decided_properties import is_decided, same_property
from .diff import match_rows_by_id, snapshot_at
from .entities import EntityChange, Op
from .matched_types import TypeTransition
from .schema_boundary import check_expressible
from .snapshot import Snapshot
from .traced_table import trace_table


@dataclass(frozen=True, slots=True)
class EntityVersion:
    """The change that one commit made to an entity. `values` is None if the commit removed the entity.

    `before` holds the values at the first parent, `changed` lists the properties that an update changed, and
    `endpoints` holds an edge's source and target.
    """

    commit: Commit
    op: Op
    values: dict[str, Any] | None
    before: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    endpoints: dict[str, str] | None = None


class EntityHistory(list[EntityVersion]):
    """The versions of an entity, newest first.

    All values are converted to the current schema. `gap` is None if the history is complete. Otherwise, it is the
    newest commit that changed the type but cannot be compared with its predecessor: either a cleanup removed the
    predecessor, or the predecessor's values cannot be converted to the current schema. In the second case, `boundary`
    is the error that explains why. Versions before the gap are not listed.
    """

    gap: Commit | None = None
    boundary: ChangeSchemaBoundary | None = None

    @property
    def complete(self) -> bool:
        """Whether the history reaches back to the first version."""
        return self.gap is None

    def describe_gap(self) -> str:
        """Return why earlier versions are not listed, or an empty string if all versions are listed."""
        if self.gap is None:
            return ""
        if self.boundary is not None:
            return f"the history before commit {self.gap.id} cannot be converted to the current schema"
        return f"a cleanup removed the history before commit {self.gap.id}"

    def __repr__(self) -> str:
        gap_text = "" if self.gap is None else f"; {self.describe_gap()}"
        return f"<EntityHistory: {len(self)} version{'s'[: len(self) != 1]}{gap_text}>"


@dataclass(frozen=True, slots=True)
class Blamed:
    """A property, its current value, and the commit that set the value. `commit` is None if a cleanup removed it."""

    name: str
    value: Any
    commit: Commit | None

    @property
    def actor(self) -> str | None:
        """The actor that set the value, or None if the actor is unknown."""
        return self.commit.actor if self.commit is not None else None


@dataclass(frozen=True, slots=True)
class _EntityRow:
    """The entity's row in one table version (empty if there is none), and how to convert it to the current schema."""

    stored_rows: pa.Table
    transition: TypeTransition

    @property
    def is_absent(self) -> bool:
        return not int(self.stored_rows.num_rows)

    def express(self, *, with_defaults: bool) -> pa.Table:
        """Return the row with the current columns.

        With `with_defaults=False`, properties that the row did not have yet are null.
        """
        return self.transition.convert(self.stored_rows, with_defaults=with_defaults)


class EntityTracer:
    """Traces an entity through all ancestors of a snapshot."""

    def __init__(self, snapshot: Snapshot, table_key: TableKey, entity_id: str) -> None:
        snapshot.table_entry(table_key)
        self._snapshot, self._table_key, self._entity_id = snapshot, table_key, entity_id
        self._commits = sort_newest_first(snapshot.log.ancestors(snapshot.commit_id).values())
        self._versions = trace_table(snapshot, table_key, self._commits)
        self._erased_directories = frozenset(snapshot.schema.erased_directories)
        self._row_cache: dict[tuple[str, SchemaRow], _EntityRow] = {}

    def versions(self, max_versions: int | None = None) -> EntityHistory:
        """Return at most `max_versions` versions, newest first, stopping where a cleanup removed the history."""
        history = EntityHistory()
        for commit in self._commits:
            if max_versions is not None and len(history) >= max_versions:
                break
            if not any(self._table_differs(commit, parent_id) for parent_id in commit.parents or ("",)):
                continue
            try:
                change = self._find_change(commit)
            except HistoryReclaimed:
                history.gap = commit
                break
            except ChangeSchemaBoundary as boundary:
                history.gap, history.boundary = commit, boundary
                break
            if change is not None:
                history.append(_build_version(commit, change))
        return history

    def blame(self) -> dict[str, Blamed]:
        """Return each property of the entity with the commit that set its current value."""
        current_row = self._expressed_row(self._snapshot.commit_id)
        if current_row is None:
            type_name = self._table_key.type_name
            raise EntityNotFound(f"no {type_name} '{self._entity_id}' found")
        property_names = [property_name for property_name in current_row.column_names if property_name != "id"]
        pending_properties = {self._snapshot.commit_id: set(property_names)}
        blamed_commits: dict[str, Commit | None] = {}
        for commit in self._commits:
            properties = pending_properties.pop(commit.id, None)
            if properties:
                self._trace_to_parents(commit, properties, pending_properties, blamed_commits, current_row)
        values = current_row.to_pylist()[0]
        return {
            property_name: Blamed(property_name, values[property_name], blamed_commits.get(property_name))
            for property_name in property_names
        }

    def _trace_to_parents(
        self,
        commit: Commit,
        properties: set[str],
        pending_properties: dict[str, set[str]],
        blamed_commits: dict[str, Commit | None],
        current_row: pa.Table,
    ) -> None:
        """Attribute each value to the parent that already had it, or to this commit if no parent had it.

        If a merge made a decision about a value, the value is attributed to the merge, even if a parent already had it.
        A property that no parent had is attributed to this commit, which added it to the schema.
        """
        decided = self._decided_properties(commit, properties, current_row)
        blamed_commits.update(dict.fromkeys(decided, commit))
        properties = properties - decided
        try:
            for parent_id in commit.parents:
                declared = self._declared_properties(parent_id, properties)
                inherited = (
                    declared
                    if not self._table_differs(commit, parent_id)
                    else self._unchanged_properties(parent_id, declared, current_row)
                )
                pending_properties.setdefault(parent_id, set()).update(inherited)
                properties = properties - inherited
        except HistoryReclaimed:
            return
        except ChangeSchemaBoundary:
            # The parents' values cannot be converted to the current schema, so this commit counts as the source of all
            # values.
            pass
        blamed_commits.update(dict.fromkeys(properties, commit))

    def _declared_properties(self, commit_id: str, property_names: set[str]) -> set[str]:
        """Return the given properties that the schema at a commit declares, including an edge's endpoints."""
        version = self._versions.get(commit_id)
        if version is None:
            return set()
        return property_names.intersection((*version.transition.old_property_names, *ENDPOINT_COLUMNS))

    def _decided_properties(self, commit: Commit, property_names: set[str], current_row: pa.Table) -> set[str]:
        """Return the properties that a merge made a decision about, or none if the past rows cannot be compared."""
        if len(commit.parents) < 2:
            return set()
        differing_ids = [parent_id for parent_id in commit.parents if self._table_differs(commit, parent_id)]
        base_ids = self._merge_bases(commit) if differing_ids else ()
        if not self._may_have_decided(differing_ids, base_ids):
            return set()
        try:
            # A default that a schema change filled in is not an edit, so the rows are compared with their defaults.
            parents = [self._expressed_row(parent_id, with_defaults=True) for parent_id in commit.parents]
            bases = [self._expressed_row(base_id, with_defaults=True) for base_id in base_ids]
        except (HistoryReclaimed, ChangeSchemaBoundary):
            return set()
        return {
            property_name for property_name in property_names if is_decided(property_name, current_row, parents, bases)
        }

    def _may_have_decided(self, differing_ids: Sequence[str], base_ids: Sequence[str]) -> bool:
        """Return whether the table's content id in any of the given parents differs from that in every merge base."""
        return any(
            all(self._content_id(base_id) != self._content_id(parent_id) for base_id in base_ids)
            for parent_id in differing_ids
        )

    def _merge_bases(self, merge_commit: Commit) -> tuple[str, ...]:
        our_snapshot, their_snapshot = (
            replace(self._snapshot, commit_id=parent_id) for parent_id in merge_commit.parents
        )
        return find_merge_bases(our_snapshot, their_snapshot)[0]

    def _expressed_row(self, commit_id: str, *, with_defaults: bool = False) -> pa.Table | None:
        """Return the entity at a commit, with the current columns, or None if the commit does not contain the entity.

        With `with_defaults=False`, properties that the entity did not have yet are null, so a default is attributed to
        the commit that added the property.
        """
        past_row = self._row_at_commit(commit_id)
        return None if past_row is None or past_row.is_absent else past_row.express(with_defaults=with_defaults)

    def _unchanged_properties(self, commit_id: str, property_names: set[str], current_row: pa.Table) -> set[str]:
        """Return the properties that already had their current value at a commit."""
        past_row = self._expressed_row(commit_id)
        if past_row is None:
            return set()
        return {
            property_name for property_name in property_names if same_property(property_name, past_row, current_row)
        }

    def _table_differs(self, commit: Commit, parent_id: str) -> bool:
        """Return whether the table differs between a commit and a parent, comparing only content ids."""
        return self._content_id(commit.id) != self._content_id(parent_id)

    def _content_id(self, commit_id: str) -> str | None:
        version = self._versions.get(commit_id)
        return None if version is None else version.entry.content_id

    def _find_change(self, commit: Commit) -> EntityChange | None:
        """Return a commit's change to the entity, or None if a parent already had the same values.

        A merge counts as a change if it took one side's value over a change made on the other side.
        """
        commit_row = self._row_at_commit(commit.id)
        changes = [self._compare_with_parent(parent_id, commit_row) for parent_id in commit.parents or ("",)]
        differs_from_all = all(change is not None for change in changes)
        return changes[0] if differs_from_all or (changes[0] is not None and self._merge_decided(commit)) else None

    def _merge_decided(self, merge_commit: Commit) -> bool:
        """Return whether a merge's first parent had changed the entity since the merge base."""
        our_row = self._row_at_commit(merge_commit.parents[0])
        return all(
            self._compare_with_parent(merge_base_id, our_row) is not None
            for merge_base_id in self._merge_bases(merge_commit)
        )

    def _compare_with_parent(self, parent_id: str, commit_row: _EntityRow | None) -> EntityChange | None:
        parent_row = self._row_at_commit(parent_id)
        if commit_row is None and parent_row is None:
            return None
        row_layout = self._row_layout
        old_rows, new_rows = (
            row_layout.empty_table() if row is None else row.express(with_defaults=True)
            for row in (parent_row, commit_row)
        )
        return next(match_rows_by_id(self._table_key, old_rows, new_rows, row_layout).records(), None)

    @cached_property
    def _row_layout(self) -> pa.Schema:
        ir = self._snapshot.schema.ir
        return row_schema(table_schema(ir, type_for_key(ir.catalog, self._table_key)))

    def _row_at_commit(self, commit_id: str) -> _EntityRow | None:
        """Return the entity's row at a commit, or None if the commit does not contain the table.

        Raises `ChangeSchemaBoundary` if the entity's row cannot be converted to the current schema.
        """
        version = self._versions.get(commit_id)
        if version is None:
            return None
        row_key = version.entry.content_id, version.schema_row
        if row_key not in self._row_cache:
            table = self._open_version(version.entry, commit_id)
            rows, transition = self._read_row(table, version.entry, commit_id), version.transition
            if transition.find_obstacle(rows) is not None:
                past_snapshot = snapshot_at(self._snapshot, self._snapshot.log, commit_id)
                check_expressible(past_snapshot, self._snapshot, transition, rows)
            self._row_cache[row_key] = _EntityRow(rows, transition)
        return self._row_cache[row_key]

    def _read_row(self, table: Table, entry: TableEntry, commit_id: str) -> pa.Table:
        id_lookup = {"id": pa.array([self._entity_id], pa.string())}
        try:
            return find(table, id_lookup, table.schema.names)
        except (OSError, StorageError, pa.ArrowException) as error:
            if self._snapshot.store.has_version(entry.location, entry.lance_version):
                raise
            raise HistoryReclaimed(first_unreadable_commit_id=commit_id) from error

    def _open_version(self, entry: TableEntry, commit_id: str) -> Table:
        try:
            if entry.location not in self._erased_directories:
                return open_table(self._snapshot.store, entry.location, entry.lance_version)
        except FileNotFoundError:
            pass
        raise HistoryReclaimed(first_unreadable_commit_id=commit_id)


def _build_version(commit: Commit, change: EntityChange) -> EntityVersion:
    change_fields = (change.after, change.before, change.changed, change.endpoints)
    return EntityVersion(commit, change.op, *change_fields)
