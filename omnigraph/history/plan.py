"""What a write wants: effects on tables, and requirements that must hold where it lands.

Owns the small objects of a write. A requirement can be checked again after every lost swap, on the
state that the next attempt is based on; a plan that still holds is replayed, else made anew.
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
    """One pinned base, captured once: everything a write decides is decided on it.

    `again` says that another writer was faster: upkeep that only came along stays away then.
    """

    store: Store
    branch: str
    base: Opened
    commit_id: str
    created_at: int
    again: bool = False

    def entry(self, key: str) -> TableEntry | None:
        """What the base says of a table."""
        return self.base.state.tables.get(key)

    def table(self, key: str) -> Table:
        """A table at the version that the base names."""
        entry = self.entry(key)
        if entry is None:
            raise ReadSetConflict(member="tables", expected=key)
        return open_table(self.store, entry.location, entry.lance_version)


class Requirement(Protocol):
    """Something a write read, and that must still be so where it lands."""

    def to_json(self) -> list[Any]:
        """The kind and the facts, so that somebody else can check it after its owner is gone."""

    def check(self, txn: WriteTxn) -> None:
        """Raise the typed conflict when it does not hold on the base of `txn`."""


@dataclass(frozen=True, slots=True)
class SameContent:
    """A table has not changed logically; maintenance does not count."""

    key: str
    content_id: str
    version: int

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["same_content", self.key, self.content_id, self.version]

    def check(self, txn: WriteTxn) -> None:
        """Compare content ids, never numbers."""
        now = txn.entry(self.key)
        if now is None or now.content_id != self.content_id:
            actual = now.version if now else None
            raise VersionConflict(type_key=self.key, expected=self.version, actual=actual)


@dataclass(frozen=True, slots=True)
class SameVersion:
    """A table is exactly the version that was seen; maintenance counts, too.

    For a write that puts a version of its own in its place, and would undo what came between.
    """

    key: str
    content_id: str
    lance_version: int
    version: int

    def to_json(self) -> list[Any]:
        """The requirement as plain data; the numbers of Lance exceed 2^63, hence text."""
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
    """A condition of a write that also remembers on which contents it was checked last."""

    same: tuple[SameContent, ...] = ()
    base: dict[str, str] = field(default_factory=dict)
    commit_id: str | None = None

    def to_json(self) -> list[Any]:
        """The watched contents as plain data."""
        return ["watch", [one.to_json() for one in self.same]]

    def check(self, txn: WriteTxn) -> None:
        """Compare content ids with those that were shown."""
        for one in self.same:
            one.check(txn)
        self.base = {key: entry.content_id for key, entry in txn.base.state.tables.items()}
        self.commit_id = txn.commit_id


@dataclass(frozen=True, slots=True)
class SameHead:
    """The branch has not moved at all."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["same_head", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Compare the head commit."""
        now = txn.base.state.head.commit_id
        if now != self.commit_id:
            raise ReadSetConflict(member="graph_head", expected=self.commit_id, actual=now)


@dataclass(frozen=True, slots=True)
class SameSchema:
    """The schema that the write was planned with."""

    hash: str

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["same_schema", self.hash]

    def check(self, txn: WriteTxn) -> None:
        """Compare the schema hash."""
        now = txn.base.state.schema.hash
        if now != self.hash:
            raise ReadSetConflict(member="schema", expected=self.hash, actual=now)


@dataclass(frozen=True, slots=True)
class HeadWas:
    """A conditional write: the caller decided on exactly this commit."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["head_was", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Compare the head commit; the answer is final, never retried inside."""
        now = txn.base.state.head.commit_id
        if now != self.commit_id:
            raise PreconditionFailed(expected=self.commit_id, actual=now)


@dataclass(frozen=True, slots=True)
class AbsentIds:
    """No entity of these ids exists: 'not there' is something a write has read."""

    key: str
    ids: tuple[str, ...]

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["absent_ids", self.key, list(self.ids)]

    def check(self, txn: WriteTxn) -> None:
        """Look the ids up; the first that exists is named."""
        found = find_rows(txn.table(self.key), "id", self.ids, ["id"])
        if found.num_rows:
            raise KeyConflict(type_key=self.key, entity_id=found["id"][0].as_py())


@dataclass(frozen=True, slots=True, eq=False)
class SameAnswer:
    """A lookup gives the rows that it gave: absent keys, present ends and counts are reads.

    `where` are the values that were looked for by column, `answer` what was found, or its digest.
    """

    key: str
    content_id: str
    where: tuple[tuple[str, Any], ...]
    answer: Any
    columns: tuple[str, ...] = ()

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        asked = [[name, plain_values(values)] for name, values in self.where]
        names = list(self.columns or self.answer.column_names)
        return ["same_answer", self.key, self.content_id, asked, digest(self.answer), names]

    def check(self, txn: WriteTxn) -> None:
        """Ask again, unless the table has not changed."""
        now = txn.entry(self.key)
        if now is not None and now.content_id == self.content_id:
            return
        names = self.columns or tuple(self.answer.column_names)
        found = find(txn.table(self.key), dict(self.where), names)
        if digest(found) != digest(self.answer):
            raise ReadSetConflict(member=self.key, expected=self.content_id)


@dataclass(frozen=True, slots=True)
class AbsentTable:
    """A table does not exist: somebody else may register it first."""

    key: str

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["absent_table", self.key]

    def check(self, txn: WriteTxn) -> None:
        """Look for the table."""
        now = txn.entry(self.key)
        if now is not None:
            raise VersionConflict(type_key=self.key, expected=None, actual=now.version)


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """Everything one publish will make visible, complete before anything is.

    `writes` are staged changes by table key; `registered` are new tables, `dropped` tables that
    go. `foreign` are commits of another branch that a merge brings along, `merged` its head,
    `details` how it was decided.
    `maintenance` preserves content, so content ids stay. `epoch` is the collector's epoch under
    which files were staged, by default that of the base; it does not matter to files that are
    `protected` by the operation's own intent.
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
        """The same plan, with what it takes for granted of its base written down.

        It puts tables in the place of others, or of none: those are read by it. And its files are
        safe in the collector's epoch of the base only.
        """
        placed = sorted({*self.registered, *self.adopted, *self.dropped})
        reads = tuple(_as_it_is(key, txn.entry(key)) for key in placed)
        epoch = txn.base.state.head.gc_epoch if self.epoch is None else self.epoch
        return replace(self, requirements=(*self.requirements, *reads), epoch=epoch)


def _as_it_is(key: str, entry: TableEntry | None) -> Requirement:
    return AbsentTable(key) if entry is None else SameContent(key, entry.content_id, entry.version)


@dataclass(frozen=True, slots=True)
class Signature:
    """Who writes, why, and the key under which a repetition is recognised."""

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
    """A requirement from plain data."""
    kind, *rest = facts
    return _KINDS[kind](*rest)


def hold(requirements: Sequence[Requirement], txn: WriteTxn) -> None:
    """Check all requirements on a base; raises the first conflict."""
    for one in requirements:
        one.check(txn)
