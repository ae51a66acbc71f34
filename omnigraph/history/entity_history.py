"""History of one entity: its versions, and the commit that set each property value.

This module walks the commit graph. A version belongs to the commit that created it, on
any branch. A merge that only carried a version over did not create it; a merge that decided between
the two sides did create it. Likewise, a merge sets the properties that it made a decision about,
regardless of the side that it chose. Each distinct table content is read once, for a single row.
Commits that did not touch the table cost nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.errors import EntityNotFound, HistoryReclaimed, StorageError
from omnigraph.history.merge_bases import find_merge_bases
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find
from omnigraph.storage.table import Table, open_table
from omnigraph.values.table_key import TableKey

from .commit import Commit, TableEntry
from .commit_log import sort_newest_first
from .decided_properties import is_decided, same_property
from .diff import align_columns, match_rows_by_id
from .entities import EntityChange, Op
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EntityVersion:
    """The change that one commit made to an entity; `values` is None if it removed the entity.

    `before` holds the values at the first parent, `changed` lists the properties that an update
    changed, and `endpoints` holds the source and target of an edge.
    """

    commit: Commit
    op: Op
    values: dict[str, Any] | None
    before: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    endpoints: dict[str, str] | None = None


class EntityHistory(list[EntityVersion]):
    """The versions of an entity, newest first.

    `gap` is the newest commit that changed the type and cannot be compared with its predecessor,
    because the predecessor was cleaned up. Earlier versions are not listed. If the history is
    complete, `gap` is None.
    """

    gap: Commit | None = None

    @property
    def complete(self) -> bool:
        """Whether the history reaches back to the first version."""
        return self.gap is None

    def __repr__(self) -> str:
        gap_text = "" if self.gap is None else f"; a cleanup removed the history before commit {self.gap.id}"
        return f"<EntityHistory: {len(self)} version{'s'[: len(self) != 1]}{gap_text}>"


@dataclass(frozen=True, slots=True)
class Blamed:
    """A property with its current value and the commit that set it; `commit` is None if a cleanup removed it."""

    name: str
    value: Any
    commit: Commit | None

    @property
    def actor(self) -> str | None:
        """The actor that set the value, or None if the actor is unknown."""
        return self.commit.actor if self.commit is not None else None


@dataclass(frozen=True, slots=True)
class _EntityRow:
    """The entity's row in one version of its table (empty if there is none), with the table's columns."""

    matched_rows: pa.Table
    table_schema: pa.Schema


class EntityTracer:
    """Traces an entity through all ancestors of a snapshot."""

    def __init__(self, snapshot: Snapshot, table_key: TableKey, entity_id: str) -> None:
        newest_entry = snapshot.table_entry(table_key)
        self._snapshot, self._table_key, self._entity_id = snapshot, table_key, entity_id
        self._commits = sort_newest_first(snapshot.log.ancestors(snapshot.commit_id).values())
        self._entries = _entries_by_commit(self._commits, newest_entry)
        self._erased_directories = frozenset(snapshot.schema.erased_directories)
        self._row_cache: dict[str, _EntityRow] = {}

    def versions(self, max_versions: int | None = None) -> EntityHistory:
        """Return the versions, newest first, up to a limit, stopping where history was cleaned up."""
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
            if change is not None:
                history.append(_build_version(commit, change))
        return history

    def blame(self) -> dict[str, Blamed]:
        """Return, for each property of the entity, the commit that set its current value."""
        current_row = self._row_at_commit(self._snapshot.commit_id)
        if current_row is None or not current_row.matched_rows.num_rows:
            type_name = self._table_key.type_name
            raise EntityNotFound(f"no {type_name} '{self._entity_id}' found")
        property_names = [
            property_name for property_name in current_row.matched_rows.column_names if property_name != "id"
        ]
        pending_properties = {self._snapshot.commit_id: set(property_names)}
        blamed_commits: dict[str, Commit | None] = {}
        for commit in self._commits:
            properties = pending_properties.pop(commit.id, None)
            if properties:
                self._trace_to_parents(commit, properties, pending_properties, blamed_commits, current_row)
        values = current_row.matched_rows.to_pylist()[0]
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
        current_row: _EntityRow,
    ) -> None:
        """Attribute values that a parent already had to that parent, and all others to this commit.

        Values that a merge made a decision about are attributed to the merge, even if a parent
        already had them.
        """
        decided = self._decided_properties(commit, properties, current_row)
        blamed_commits.update(dict.fromkeys(decided, commit))
        properties = properties - decided
        try:
            for parent_id in commit.parents:
                inherited = (
                    properties
                    if not self._table_differs(commit, parent_id)
                    else self._unchanged_properties(parent_id, properties, current_row)
                )
                pending_properties.setdefault(parent_id, set()).update(inherited)
                properties = properties - inherited
        except HistoryReclaimed:
            return
        blamed_commits.update(dict.fromkeys(properties, commit))

    def _decided_properties(self, commit: Commit, property_names: set[str], current_row: _EntityRow) -> set[str]:
        """Return the properties that a merge made a decision about, or nothing if its merge base was cleaned up."""
        if len(commit.parents) < 2:
            return set()
        differing_ids = [parent_id for parent_id in commit.parents if self._table_differs(commit, parent_id)]
        base_ids = self._merge_bases(commit) if differing_ids else ()
        if not self._may_have_decided(differing_ids, base_ids):
            return set()
        try:
            parents = [self._converted_row(parent_id, current_row) for parent_id in commit.parents]
            bases = [self._converted_row(base_id, current_row) for base_id in base_ids]
        except HistoryReclaimed:
            return set()
        return {
            property_name
            for property_name in property_names
            if is_decided(property_name, current_row.matched_rows, parents, bases)
        }

    def _may_have_decided(self, differing_ids: Sequence[str], base_ids: Sequence[str]) -> bool:
        """Return whether a parent that differs from the merge had changed the table, comparing only content ids."""
        return any(
            all(self._content_id(base_id) != self._content_id(parent_id) for base_id in base_ids)
            for parent_id in differing_ids
        )

    def _merge_bases(self, merge_commit: Commit) -> tuple[str, ...]:
        our_snapshot, their_snapshot = (
            replace(self._snapshot, commit_id=parent_id) for parent_id in merge_commit.parents
        )
        return find_merge_bases(our_snapshot, their_snapshot)[0]

    def _converted_row(self, commit_id: str, current_row: _EntityRow) -> pa.Table | None:
        """Return the entity at a commit with the current columns, or None if it is absent there."""
        past_row = self._row_at_commit(commit_id)
        if past_row is None or not past_row.matched_rows.num_rows:
            return None
        return align_columns(past_row.matched_rows, past_row.table_schema, current_row.table_schema).cast(
            current_row.matched_rows.schema
        )

    def _unchanged_properties(self, commit_id: str, property_names: set[str], current_row: _EntityRow) -> set[str]:
        """Return the properties that already had their current value at a commit."""
        converted_row = self._converted_row(commit_id, current_row)
        if converted_row is None:
            return set()
        return {
            property_name
            for property_name in property_names
            if same_property(property_name, converted_row, current_row.matched_rows)
        }

    def _table_differs(self, commit: Commit, parent_id: str) -> bool:
        """Return whether the table differs between a commit and a parent, comparing only content ids."""
        return self._content_id(commit.id) != self._content_id(parent_id)

    def _content_id(self, commit_id: str) -> str | None:
        entry = self._entries.get(commit_id)
        return None if entry is None else entry.content_id

    def _find_change(self, commit: Commit) -> EntityChange | None:
        """Return a commit's change to the entity, or None if a parent already had that value.

        A merge counts as a change if it took one side's value over a change made on the other side.
        """
        commit_row = self._row_at_commit(commit.id)
        changes = [self._compare_with_parent(parent_id, commit_row) for parent_id in commit.parents or ("",)]
        differs_from_all = all(change is not None for change in changes)
        return changes[0] if differs_from_all or (changes[0] is not None and self._merge_decided(commit)) else None

    def _merge_decided(self, merge_commit: Commit) -> bool:
        """Return whether the first parent of a merge had changed the entity since the merge base."""
        our_row = self._row_at_commit(merge_commit.parents[0])
        return all(
            self._compare_with_parent(merge_base_id, our_row) is not None
            for merge_base_id in self._merge_bases(merge_commit)
        )

    def _compare_with_parent(self, parent_id: str, commit_row: _EntityRow | None) -> EntityChange | None:
        parent_row = self._row_at_commit(parent_id)
        layout_row = commit_row or parent_row
        if layout_row is None:
            return None
        row_layout = row_schema(layout_row.table_schema)
        old_rows = row_layout.empty_table() if parent_row is None else _convert_row(parent_row, layout_row)
        new_rows = row_layout.empty_table() if commit_row is None else commit_row.matched_rows
        return next(match_rows_by_id(self._table_key, old_rows, new_rows, row_layout).records(), None)

    def _row_at_commit(self, commit_id: str) -> _EntityRow | None:
        """Read the entity at a commit, or return None if the table does not exist there."""
        entry = self._entries.get(commit_id)
        if entry is None:
            return None
        if entry.content_id not in self._row_cache:
            table = self._open_version(entry, commit_id)
            self._row_cache[entry.content_id] = _EntityRow(self._read_row(table, entry, commit_id), table.schema)
        return self._row_cache[entry.content_id]

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


def _convert_row(row: _EntityRow, layout_row: _EntityRow) -> pa.Table:
    return align_columns(row.matched_rows, row.table_schema, layout_row.table_schema).cast(
        row_schema(layout_row.table_schema)
    )


def _build_version(commit: Commit, change: EntityChange) -> EntityVersion:
    change_fields = (change.after, change.before, change.changed, change.endpoints)
    return EntityVersion(commit, change.op, *change_fields)


def _entries_by_commit(commits: list[Commit], current_entry: TableEntry) -> Mapping[str, TableEntry | None]:
    """Return the table's entry at each commit, regardless of the table's name at the time."""
    entries_by_id: dict[str, TableEntry | None] = {}
    for commit in reversed(commits):
        parent_entry = entries_by_id.get(commit.parents[0]) if commit.parents else None
        entries_by_id[commit.id] = _entry_at_commit(commit, parent_entry, current_entry)
    return entries_by_id


def _entry_at_commit(commit: Commit, parent_entry: TableEntry | None, current_entry: TableEntry) -> TableEntry | None:
    commit_entries = [entry for entry in commit.tables.values() if entry is not None]
    same_table = next((entry for entry in commit_entries if entry.location == current_entry.location), None)
    if same_table is not None:
        return same_table
    named_entry = commit.tables.get(current_entry.key, parent_entry)
    is_dropped = parent_entry is not None and commit.tables.get(parent_entry.key, parent_entry) is None
    return None if is_dropped and named_entry is parent_entry else named_entry
