"""The changes on a branch as blocks, one per commit, in order of publication.

A block contains the differences between a commit and its first parent, in a fixed order. This module defines the
contents of a block, the changes that a filter selects, and the order in which commits are visited. A block is returned
in full or not at all: data that a cleanup removed is reported as a gap, never as an empty block.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.errors import (
    ChangeFeedGap,
    CommitHasNoParent,
    CommitNotFound,
    HistoryReclaimed,
    InputError,
    StorageError,
)
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import unknown_type_error
from omnigraph.storage.failures import DamagedError, to_storage_error
from omnigraph.values.name_rules import quote_name, require_names
from omnigraph.values.table_key import TableKey

from .commit import Commit, TableEntry
from .cursor import hash_facts
from .diff import changed_table_keys, diff_table, snapshot_at
from .entities import OPS, TableChanges
from .schema_changes import SchemaChange, TypeName, compare_schemas
from .snapshot import Snapshot

ENTITY_KINDS = ("node", "edge")
_MAX_CACHED_BYTES = 16 << 20  # maximum size in bytes for caching a block between pages


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """A filter for changes, in which None selects everything. Types are listed by id, because ids survive renames."""

    kinds: frozenset[str] | None = None
    type_ids: frozenset[int] | None = None
    ops: frozenset[str] | None = None

    @property
    def digest(self) -> str:
        """Return the filter's hash. A cursor contains this hash and cannot be used with any other filter."""
        filter_facts = {"kinds": self.kinds, "types": self.type_ids, "ops": self.ops}
        return hash_facts(
            {member_name: None if members is None else sorted(members) for member_name, members in filter_facts.items()}
        )

    def includes_type(self, kind: str, type_id: int) -> bool:
        """Return whether the filter includes changes to a type."""
        return (self.kinds is None or kind in self.kinds) and (self.type_ids is None or type_id in self.type_ids)


def build_change_filter(
    schemas: Iterable[SchemaIR],
    *,
    type_names: Collection[str] | None = None,
    kinds: Collection[str] | None = None,
    ops: Collection[str] | None = None,
) -> ChangeFilter:
    """Build a filter from user-visible names. A type may be declared in any of the given schemas."""
    return ChangeFilter(
        _parse_choices("kind", kinds, ENTITY_KINDS),
        None if type_names is None else _resolve_type_ids(list(schemas), type_names),
        _parse_choices("op", ops, OPS),
    )


def _parse_choices(
    option_name: str, requested_names: Collection[str] | None, valid_names: tuple[str, ...]
) -> frozenset[str] | None:
    if requested_names is None:
        return None
    chosen_names = set(require_names(requested_names, option_name))
    for unknown_name in sorted(chosen_names - set(valid_names)):
        expected_names = f"{', '.join(valid_names[:-1])} or {valid_names[-1]}"
        raise InputError(reason=f"unknown {option_name} {quote_name(unknown_name)}; expected {expected_names}")
    return None if chosen_names == set(valid_names) else frozenset(chosen_names)


def _resolve_type_ids(schemas: list[SchemaIR], requested_names: Collection[str]) -> frozenset[int]:
    type_ids: set[int] = set()
    for type_name in require_names(requested_names):
        matches_by_schema = (
            [
                schema_type.type_id
                for schema_type in schema.type_identities
                if schema_type.kind in ENTITY_KINDS and schema_type.name == type_name
            ]
            for schema in schemas
        )
        matching_ids = next((type_id_matches for type_id_matches in matches_by_schema if type_id_matches), None)
        if matching_ids is None:
            known_names = {
                declared_type.name
                for schema in schemas
                for declared_type in schema.type_identities
                if declared_type.kind in ENTITY_KINDS
            }
            raise unknown_type_error(type_name, known_names)
        type_ids.update(matching_ids)
    return frozenset(type_ids)


@dataclass(frozen=True, slots=True)
class TypeChanges:
    """The changes to one type in a block, together with the type's id."""

    type_id: int
    changes: TableChanges


@dataclass(frozen=True, slots=True)
class CommitBlock:
    """The changes from a commit's first parent to the commit, ordered by kind (nodes first), type and id.

    `schema_change` describes how the commit changed the schema, or is None.
    """

    commit: Commit
    type_changes: tuple[TypeChanges, ...]
    schema_change: SchemaChange | None = None


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits after a given commit on a snapshot's first-parent path, oldest first."""

    snapshot: Snapshot
    after_commit_id: str
    commits: tuple[Commit, ...] = field(default=(), repr=False)

    def truncate_at(self, last_commit_id: str) -> "CommitRange | None":
        """Return the range up to and including a commit, or None if that commit is not in the range."""
        matching_counts = (position for position, commit in enumerate(self.commits, 1) if commit.id == last_commit_id)
        commit_count = next(matching_counts, 0 if last_commit_id == self.after_commit_id else None)
        return None if commit_count is None else replace(self, commits=self.commits[:commit_count])


def commits_after(snapshot: Snapshot, after_commit_id: str) -> CommitRange | None:
    """Return the commits after a given commit up to the snapshot, or None if that commit is not on the path."""
    newer_commits: list[Commit] = []
    commit_id: str | None = snapshot.commit_id
    while commit_id is not None and commit_id != after_commit_id:
        try:
            newer_commits.append(snapshot.log.get(commit_id))
        except (CommitNotFound, HistoryReclaimed) as error:
            raise ChangeFeedGap(first_unreadable_commit_id=commit_id) from error
        commit_id = newer_commits[-1].parent
    return None if commit_id is None else CommitRange(snapshot, after_commit_id, tuple(reversed(newer_commits)))


def iter_blocks(commit_range: CommitRange, change_filter: ChangeFilter) -> Iterator[CommitBlock]:
    """Yield the blocks for a commit range.

    Only the state before the first commit is looked up. Each later state is derived from the previous state and the
    changes recorded in its commit.
    """
    if not commit_range.commits:
        return
    old_snapshot = _snapshot_before(commit_range)
    for commit in commit_range.commits:
        new_snapshot = _snapshot_after(old_snapshot, commit)
        yield _load_block(old_snapshot, new_snapshot, commit, change_filter)
        old_snapshot = new_snapshot


def cache_block(snapshot: Snapshot, block: CommitBlock, change_filter: ChangeFilter) -> None:
    """Cache a block that was only partially returned, because the next page starts inside it."""
    block_bytes = sum(_count_bytes(type_changes.changes) for type_changes in block.type_changes)
    if block_bytes <= _MAX_CACHED_BYTES:
        cache_key = _cache_key(block.commit, change_filter)
        snapshot.store.object_cache.put(cache_key, block, weight=1 + block_bytes // 1024)


def _count_bytes(changes: TableChanges) -> int:
    row_tables = (changes.inserted, changes.updated_before, changes.updated_after, changes.deleted)
    return sum(rows.nbytes for rows in row_tables)


def _cache_key(commit: Commit, change_filter: ChangeFilter) -> str:
    return f"changes:{commit.id}:{change_filter.digest}"


def _load_block(
    old_snapshot: Snapshot, new_snapshot: Snapshot, commit: Commit, change_filter: ChangeFilter
) -> CommitBlock:
    cached_block: CommitBlock | None = new_snapshot.store.object_cache.get(_cache_key(commit, change_filter))
    if cached_block is not None:
        return cached_block
    try:
        schema_change = compare_schemas(
            old_snapshot, new_snapshot, _included_types(old_snapshot, new_snapshot, change_filter)
        )
        return CommitBlock(commit, tuple(_diff_types(old_snapshot, new_snapshot, change_filter)), schema_change)
    except (HistoryReclaimed, OSError, StorageError, pa.ArrowInvalid) as error:
        if not isinstance(error, HistoryReclaimed) and not _are_files_missing(old_snapshot, new_snapshot, error):
            raise to_storage_error(error, effect="none") from error
        raise ChangeFeedGap(first_unreadable_commit_id=new_snapshot.commit_id) from error


def _are_files_missing(old_snapshot: Snapshot, new_snapshot: Snapshot, error: Exception) -> bool:
    """Return whether an error was caused by missing files.

    Reading a table that is already open can fail with several kinds of errors if its files are missing.
    """
    is_damage = isinstance(error, DamagedError)  # an existing version is damaged, which a cleanup never causes
    if isinstance(error, StorageError) and error.kind == "not_found" and not is_damage:
        return True
    old_entries, new_entries = set(old_snapshot.tables.values()), set(new_snapshot.tables.values())
    return any(
        not new_snapshot.store.has_version(entry.location, entry.lance_version) for entry in old_entries ^ new_entries
    )


def commit_block(snapshot: Snapshot, change_filter: ChangeFilter) -> CommitBlock:
    """Return the block for a snapshot's commit."""
    commit = snapshot.commit
    if commit.parent is None:
        raise CommitHasNoParent(graph_commit_id=commit.id)
    (block,) = iter_blocks(CommitRange(snapshot, commit.parent, (commit,)), change_filter)
    return block


def _snapshot_before(commit_range: CommitRange) -> Snapshot:
    snapshot = commit_range.snapshot
    try:
        first_parent_snapshot = snapshot_at(snapshot, snapshot.log, commit_range.after_commit_id)
    except (CommitNotFound, HistoryReclaimed) as error:
        raise ChangeFeedGap(first_unreadable_commit_id=commit_range.commits[0].id) from error
    return replace(
        first_parent_snapshot,
        is_past=True,
        erased_directories=snapshot.erased_directories.union(snapshot.schema.erased_directories),
    )


def _snapshot_after(old_snapshot: Snapshot, commit: Commit) -> Snapshot:
    merged_tables: dict[TableKey, TableEntry | None] = {**old_snapshot.tables, **commit.tables}
    return replace(
        old_snapshot,
        commit_id=commit.id,
        manifest_version=commit.manifest_version,
        schema_row=commit.schema or old_snapshot.schema_row,
        tables={table_key: entry for table_key, entry in merged_tables.items() if entry is not None},
    )


def _diff_types(old_snapshot: Snapshot, new_snapshot: Snapshot, change_filter: ChangeFilter) -> Iterator[TypeChanges]:
    for _, type_id, table_key in _changed_types(old_snapshot, new_snapshot):
        if change_filter.includes_type(table_key.kind, type_id):
            table_changes = diff_table(old_snapshot, new_snapshot, table_key)
            included_changes = (
                table_changes if change_filter.ops is None else table_changes.select_ops(tuple(change_filter.ops))
            )
            if not included_changes.is_empty:
                yield TypeChanges(type_id, included_changes)


def _included_types(
    old_snapshot: Snapshot, new_snapshot: Snapshot, change_filter: ChangeFilter
) -> frozenset[TypeName] | None:
    """Return the kind and name of each type that a filter includes, from both schemas, or None to include all types."""
    if change_filter.kinds is None and change_filter.type_ids is None:
        return None
    schemas = () if old_snapshot.schema_row == new_snapshot.schema_row else (old_snapshot.schema, new_snapshot.schema)
    return frozenset(
        (identity.kind, identity.name)
        for schema in schemas
        for identity in schema.ir.type_identities
        if change_filter.includes_type(identity.kind, identity.type_id)
    )


def _changed_types(old_snapshot: Snapshot, new_snapshot: Snapshot) -> list[tuple[int, int, TableKey]]:
    """Return the tables that differ, ordered by kind (nodes first) and type id."""
    changed_tables = []
    for table_key in changed_table_keys(old_snapshot, new_snapshot):
        kind, type_name = table_key.kind, table_key.type_name
        schema = (new_snapshot if table_key in new_snapshot.tables else old_snapshot).schema.ir
        changed_tables.append((ENTITY_KINDS.index(kind), schema.type_id(kind, type_name), table_key))
    return sorted(changed_tables)
