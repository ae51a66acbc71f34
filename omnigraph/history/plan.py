"""The plan of a write: effects on tables, and requirements on the state it is published on.

Owns the small objects of a write. After a lost swap every requirement is checked again on the next
base; a plan that still holds is replayed there, otherwise it is prepared again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from omnigraph.errors import KeyConflict, PreconditionFailed, ReadSetConflict, VersionConflict
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.find import digest, find, plain_values
from omnigraph.storage.scan import find_rows
from omnigraph.storage.store import Store
from omnigraph.storage.table import Staged, Table, open_table

from .commit import Commit, SchemaRow, TableEntry
from .manifest import Opened


@dataclass(frozen=True, slots=True)
class WriteTxn:
    """The pinned base of a write. Every decision of the write is made on this one state.

    `is_retry` says that another writer won the previous attempt. Optional maintenance that was
    attached to the write is dropped then, so that it cannot make the write lose again.
    """

    store: Store
    branch: str
    base: Opened
    commit_id: str
    created_at: int
    again: bool = False

    def entry(self, key: str) -> TableEntry | None:
        """Return the base's entry of a table, or None."""
        return self.base.state.tables.get(key)

    def table(self, key: str) -> Table:
        """Open a table at the version that the base references."""
        entry = self.entry(key)
        if entry is None:
            raise ReadSetConflict(member="tables", expected=key)
        return open_table(self.store, entry.location, entry.lance_version)


class Requirement(Protocol):
    """Something that a write has read and that must still hold on the base it is published on."""

    def to_json(self) -> list[Any]:
        """Return kind and arguments, so that another process can check it after a crash."""

    def check(self, txn: WriteTxn) -> None:
        """Raise the typed conflict if the requirement does not hold on the base of `txn`."""


@dataclass(frozen=True, slots=True)
class SameContent:
    """The rows of a table have not changed; maintenance in between is allowed."""

    key: str
    content_id: str
    version: int

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_content", self.key, self.content_id, self.version]

    def check(self, txn: WriteTxn) -> None:
        """Compare content ids, never version numbers: maintenance changes those, too."""
        now = txn.entry(self.key)
        if now is None or now.content_id != self.content_id:
            actual = now.version if now else None
            raise VersionConflict(type_key=self.key, expected=self.version, actual=actual)


@dataclass(frozen=True, slots=True)
class SameVersion:
    """A table is still at the exact version that was read; maintenance in between is a conflict.

    For a write that replaces the table with a version of its own, which would undo whatever was
    published in between.
    """

    key: str
    content_id: str
    lance_version: int
    version: int

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data; Lance version numbers exceed 2^63, hence text."""
        return ["same_version", self.key, self.content_id, str(self.lance_version), self.version]

    def check(self, txn: WriteTxn) -> None:
        """Compare content id and Lance version."""
        now = txn.entry(self.key)
        seen = (self.content_id, int(self.lance_version))
        if now is None or (now.content_id, now.lance_version) != seen:
            actual = now.version if now else None
            raise VersionConflict(type_key=self.key, expected=self.version, actual=actual)


@dataclass(slots=True)
class Watch:
    """The contents that a caller has read, and the contents on which they were last checked."""

    same: tuple[SameContent, ...] = ()
    base: dict[str, str] = field(default_factory=dict)
    commit_id: str | None = None

    def to_json(self) -> list[Any]:
        """Return the read contents as JSON data."""
        return ["watch", [one.to_json() for one in self.same]]

    def check(self, txn: WriteTxn) -> None:
        """Compare the current content ids with those that the caller has read."""
        for one in self.same:
            one.check(txn)
        self.base = {key: entry.content_id for key, entry in txn.base.state.tables.items()}
        self.commit_id = txn.commit_id


@dataclass(frozen=True, slots=True)
class SameHead:
    """The branch has no new commit at all."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_head", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Compare the head commit."""
        now = txn.base.state.head.commit_id
        if now != self.commit_id:
            raise ReadSetConflict(member="graph_head", expected=self.commit_id, actual=now)


@dataclass(frozen=True, slots=True)
class SameSchema:
    """The schema is still the one that the write was planned with."""

    hash: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_schema", self.hash]

    def check(self, txn: WriteTxn) -> None:
        """Compare the schema hash."""
        now = txn.base.state.schema.hash
        if now != self.hash:
            raise ReadSetConflict(member="schema", expected=self.hash, actual=now)


@dataclass(frozen=True, slots=True)
class HeadWas:
    """A conditional write: the caller decided on the basis of exactly this commit."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["head_was", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Compare the head commit. A mismatch is final: retrying would ignore the condition."""
        now = txn.base.state.head.commit_id
        if now != self.commit_id:
            raise PreconditionFailed(expected=self.commit_id, actual=now)


@dataclass(frozen=True, slots=True)
class AbsentIds:
    """No entity with these ids exists. The absence of a row is a read, too."""

    key: str
    ids: tuple[str, ...]

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["absent_ids", self.key, list(self.ids)]

    def check(self, txn: WriteTxn) -> None:
        """Look the ids up and raise `KeyConflict` for the first one that exists."""
        found = find_rows(txn.table(self.key), "id", self.ids, ["id"])
        if found.num_rows:
            raise KeyConflict(type_key=self.key, entity_id=found["id"][0].as_py())


@dataclass(frozen=True, slots=True, eq=False)
class SameAnswer:
    """A lookup still returns the same rows: absent keys, existing endpoints and counts are reads.

    `lookup_values` are the searched values by column, `expected_rows` the result or its digest.
    """

    key: str
    content_id: str
    where: tuple[tuple[str, Any], ...]
    answer: Any
    columns: tuple[str, ...] = ()

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        asked = [[name, plain_values(values)] for name, values in self.where]
        names = list(self.columns or self.answer.column_names)
        return ["same_answer", self.key, self.content_id, asked, digest(self.answer), names]

    def check(self, txn: WriteTxn) -> None:
        """Repeat the lookup, unless the table has not changed."""
        now = txn.entry(self.key)
        if now is not None and now.content_id == self.content_id:
            return
        names = self.columns or tuple(self.answer.column_names)
        found = find(txn.table(self.key), dict(self.where), names)
        if digest(found) != digest(self.answer):
            raise ReadSetConflict(member=self.key, expected=self.content_id)


@dataclass(frozen=True, slots=True)
class AbsentTable:
    """A table does not exist; another writer may create it first."""

    key: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["absent_table", self.key]

    def check(self, txn: WriteTxn) -> None:
        """Raise `VersionConflict` if the table exists."""
        now = txn.entry(self.key)
        if now is not None:
            raise VersionConflict(type_key=self.key, expected=None, actual=now.version)


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """Everything that one publish makes visible, complete before any of it is visible.

    `writes` are staged changes by table key, `new_tables` the tables to register, `dropped_tables`
    those to remove, `adopted_tables` existing versions taken over from another state. For a merge,
    `incoming_commits` are the commits of the other branch, `merged_head` is its head, and
    `details` says how conflicts were resolved.
    `maintenance` keeps the content, so content ids stay. `gc_epoch` is the collector epoch in which
    the files were staged, by default that of the base: a later epoch means that a collector may
    have removed them. Files `protected_by_intent` are exempt, whatever the epoch.
    """

    operation: str
    writes: Mapping[str, Staged] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()
    maintenance: bool = False
    registered: Mapping[str, TableEntry] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    adopted: Mapping[str, TableEntry] = field(default_factory=dict)
    schema: SchemaRow | None = None
    foreign: tuple[Commit, ...] = ()
    merged: str | None = None
    streams: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    files: FileChecksums = field(default_factory=dict)
    epoch: int | None = None
    protected: bool = False

    def standing_on(self, txn: WriteTxn) -> "PublishPlan":
        """Return the plan with its implicit assumptions about the base as explicit requirements.

        The plan replaces tables, or assumes that they do not exist, so it has read them. Its files
        are safe only in the collector epoch of the base.
        """
        placed = sorted({*self.registered, *self.adopted, *self.dropped})
        reads = tuple(_as_it_is(key, txn.entry(key)) for key in placed)
        epoch = txn.base.state.head.gc_epoch if self.epoch is None else self.epoch
        return replace(self, requirements=(*self.requirements, *reads), epoch=epoch)


def _as_it_is(key: str, entry: TableEntry | None) -> Requirement:
    return AbsentTable(key) if entry is None else SameContent(key, entry.content_id, entry.version)


@dataclass(frozen=True, slots=True)
class Signature:
    """Author, message, and the idempotency key that identifies a repeated request."""

    actor: str | None = None
    message: str | None = None
    key: str | None = None
    request: str | None = None


Prepare = Callable[[WriteTxn], PublishPlan | None]


_KINDS: dict[str, Callable[..., Requirement]] = {
    "same_content": SameContent,
    "same_version": SameVersion,
    "same_head": SameHead,
    "same_schema": SameSchema,
    "head_was": HeadWas,
    "absent_ids": lambda key, values: AbsentIds(key, tuple(values)),
    "absent_table": AbsentTable,
    "same_answer": lambda key, content, where, answer, columns: SameAnswer(
        key, content, tuple((name, values) for name, values in where), answer, tuple(columns)
    ),
    "watch": lambda same: Watch(tuple(SameContent(*one[1:]) for one in same)),
}


def requirement_from_json(facts: Sequence[Any]) -> Requirement:
    """Parse a requirement from JSON data."""
    kind, *rest = facts
    return _KINDS[kind](*rest)


def hold(requirements: Sequence[Requirement], txn: WriteTxn) -> None:
    """Check all requirements on a base; raise the first conflict."""
    for one in requirements:
        one.check(txn)
