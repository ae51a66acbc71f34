"""The plan of a write: its effects on tables, and its requirements on the state it is published on.

This module owns the small objects of a write. After a lost swap, every requirement is checked again
on the next base. A plan that still holds is replayed there; otherwise a new one is prepared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from omnigraph.errors import KeyConflict, PreconditionFailed, ReadSetConflict, VersionConflict
from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.history.manifest import LoadedManifest
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.find import find, json_values, rows_digest
from omnigraph.storage.scan import find_rows
from omnigraph.storage.store import Store
from omnigraph.storage.table import StagedChange, Table, open_table
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class WriteTxn:
    """The pinned base of a write. Every decision of the write is based on this one state.

    `is_retry` is True if another writer won the previous attempt. Optional maintenance attached to
    the write is then dropped, so that it cannot make the write lose again.
    """

    store: Store
    branch: str
    base: LoadedManifest
    commit_id: str
    created_at: int
    is_retry: bool = False

    def table_entry(self, table_key: TableKey) -> TableEntry | None:
        """Return the base's entry for a table, or None."""
        return self.base.state.tables.get(table_key)

    def table(self, table_key: TableKey) -> Table:
        """Open a table at the version that the base references."""
        entry = self.table_entry(table_key)
        if entry is None:
            raise ReadSetConflict(member="tables", expected=table_key)
        return open_table(self.store, entry.location, entry.lance_version)


class Requirement(Protocol):
    """Something that a write has read and that must still hold on the base it is published on."""

    def to_json(self) -> list[Any]:
        """Return the kind and arguments, so that another process can check the requirement after a crash."""

    def check(self, txn: WriteTxn) -> None:
        """Raise the typed conflict if the requirement does not hold on the base of `txn`."""


@dataclass(frozen=True, slots=True)
class SameContent:
    """The rows of a table have not changed; maintenance in between is allowed."""

    table_key: TableKey
    content_id: str
    version: int

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_content", self.table_key, self.content_id, self.version]

    def check(self, txn: WriteTxn) -> None:
        """Compare content ids rather than version numbers, because maintenance changes the latter too."""
        current_entry = txn.table_entry(self.table_key)
        if current_entry is None or current_entry.content_id != self.content_id:
            actual_version = current_entry.version if current_entry else None
            raise VersionConflict(type_key=self.table_key, expected=self.version, actual=actual_version)


@dataclass(frozen=True, slots=True)
class SameVersion:
    """A table is still at the exact version that was read; intervening maintenance is a conflict.

    This is for a write that replaces the table with its own version, which would undo anything
    published in between.
    """

    table_key: TableKey
    content_id: str
    lance_version: int
    version: int

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data; Lance versions exceed 2^63 and are stored as strings."""
        return ["same_version", self.table_key, self.content_id, str(self.lance_version), self.version]

    def check(self, txn: WriteTxn) -> None:
        """Compare the content id and the Lance version."""
        current_entry = txn.table_entry(self.table_key)
        expected_version = (self.content_id, int(self.lance_version))
        if current_entry is None or (current_entry.content_id, current_entry.lance_version) != expected_version:
            actual_version = current_entry.version if current_entry else None
            raise VersionConflict(type_key=self.table_key, expected=self.version, actual=actual_version)


@dataclass(frozen=True, slots=True)
class SameHead:
    """The branch has no new commit at all."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_head", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Compare the head commit."""
        current_head = txn.base.state.head.commit_id
        if current_head != self.commit_id:
            raise ReadSetConflict(member="graph_head", expected=self.commit_id, actual=current_head)


@dataclass(frozen=True, slots=True)
class SameSchema:
    """The schema is still the one that the write was planned with."""

    schema_hash: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_schema", self.schema_hash]

    def check(self, txn: WriteTxn) -> None:
        """Compare the schema hash."""
        current_hash = txn.base.state.schema.hash
        if current_hash != self.schema_hash:
            raise ReadSetConflict(member="schema", expected=self.schema_hash, actual=current_hash)


@dataclass(frozen=True, slots=True)
class ExpectedHead:
    """A conditional write whose caller based its decision on exactly this commit."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["head_was", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Compare the head commit. A mismatch is final, because a retry would ignore the condition."""
        current_head = txn.base.state.head.commit_id
        if current_head != self.commit_id:
            raise PreconditionFailed(expected=self.commit_id, actual=current_head)


@dataclass(frozen=True, slots=True)
class AbsentIds:
    """No entity with any of these ids exists. Observing that a row is absent counts as a read."""

    table_key: TableKey
    ids: tuple[str, ...]

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["absent_ids", self.table_key, list(self.ids)]

    def check(self, txn: WriteTxn) -> None:
        """Look the ids up and raise `KeyConflict` for the first one that exists."""
        existing_rows = find_rows(txn.table(self.table_key), "id", self.ids, ["id"])
        if existing_rows.num_rows:
            raise KeyConflict(type_key=self.table_key, entity_id=existing_rows["id"][0].as_py())


@dataclass(frozen=True, slots=True, eq=False)
class SameLookupResult:
    """A lookup still returns the same rows; absent keys, existing endpoints and counts are reads too.

    `lookup_values` holds the values searched for, by column; `expected_rows` is the result or its digest.
    """

    table_key: TableKey
    content_id: str
    lookup_values: tuple[tuple[str, Any], ...]
    expected_rows: Any
    column_names: tuple[str, ...] = ()

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        encoded_lookup = [[column_name, json_values(values)] for column_name, values in self.lookup_values]
        result_columns = list(self.column_names or self.expected_rows.column_names)
        return [
            "same_answer",
            self.table_key,
            self.content_id,
            encoded_lookup,
            rows_digest(self.expected_rows),
            result_columns,
        ]

    def check(self, txn: WriteTxn) -> None:
        """Repeat the lookup, unless the table has not changed."""
        current_entry = txn.table_entry(self.table_key)
        if current_entry is not None and current_entry.content_id == self.content_id:
            return
        result_columns = self.column_names or tuple(self.expected_rows.column_names)
        current_rows = find(txn.table(self.table_key), dict(self.lookup_values), result_columns)
        if rows_digest(current_rows) != rows_digest(self.expected_rows):
            raise ReadSetConflict(member=self.table_key, expected=self.content_id)


@dataclass(frozen=True, slots=True)
class AbsentTable:
    """A table does not exist; another writer might create it first."""

    table_key: TableKey

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["absent_table", self.table_key]

    def check(self, txn: WriteTxn) -> None:
        """Raise `VersionConflict` if the table exists."""
        existing_entry = txn.table_entry(self.table_key)
        if existing_entry is not None:
            raise VersionConflict(type_key=self.table_key, expected=None, actual=existing_entry.version)


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """Everything that one publish makes visible, complete before any of it is visible.

    `writes` are the staged changes by table key, `new_tables` are the tables to register,
    `dropped_tables` are those to remove, and `adopted_tables` are existing versions taken over from
    another state. For a merge, `incoming_commits` are the commits of the other branch, `merged_head`
    is its head, and `details` records how conflicts were resolved.
    `maintenance` means that the content, and therefore the content ids, stay the same. `gc_epoch` is
    the collector epoch in which the files were staged, by default that of the base; in a later epoch
    a collector may have removed them. With `protected_by_intent`, the epoch does not matter.
    """

    operation: str
    writes: Mapping[TableKey, StagedChange] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()
    maintenance: bool = False
    new_tables: Mapping[TableKey, TableEntry] = field(default_factory=dict)
    dropped_tables: frozenset[TableKey] = frozenset()
    adopted_tables: Mapping[TableKey, TableEntry] = field(default_factory=dict)
    schema: SchemaRow | None = None
    incoming_commits: tuple[Commit, ...] = ()
    merged_head: str | None = None
    streams: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    file_checksums: FileChecksums = field(default_factory=dict)
    gc_epoch: int | None = None
    protected_by_intent: bool = False

    def with_base_requirements(self, txn: WriteTxn) -> "PublishPlan":
        """Return the plan with its implicit assumptions about the base as explicit requirements.

        A plan that replaces tables, or assumes that they do not exist, has read them. Its files are
        safe only in the collector epoch of the base.
        """
        replaced_keys = sorted({*self.new_tables, *self.adopted_tables, *self.dropped_tables})
        base_requirements = tuple(
            _require_unchanged(table_key, txn.table_entry(table_key)) for table_key in replaced_keys
        )
        gc_epoch = txn.base.state.head.gc_epoch if self.gc_epoch is None else self.gc_epoch
        return replace(self, requirements=(*self.requirements, *base_requirements), gc_epoch=gc_epoch)


def _require_unchanged(table_key: TableKey, entry: TableEntry | None) -> Requirement:
    return AbsentTable(table_key) if entry is None else SameContent(table_key, entry.content_id, entry.version)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The author, the message, and the idempotency key that identifies a repeated request."""

    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None


PreparePlan = Callable[[WriteTxn], PublishPlan | None]


def check_requirements(requirements: Sequence[Requirement], txn: WriteTxn) -> None:
    """Check all requirements against a base and raise the first conflict."""
    for requirement in requirements:
        requirement.check(txn)
