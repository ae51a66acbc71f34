"""Snapshot of a graph: one commit, its schema, and its tables at exact versions.

Owns how a commit is selected by id, version or time. A snapshot never changes and never follows its
branch. The state of a past commit is read from the log, with the schema of that commit.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.errors import (
    BranchNotFound,
    EntityNotFound,
    HistoryReclaimed,
    InputError,
    OmnigraphError,
    SnapshotNotFound,
)
from omnigraph.ids import is_ulid
from omnigraph.naming import shorten_name
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table

from .branches import list_branches, open_line
from .commit import Commit, SchemaRow, TableEntry
from .line import Line
from .log import Log
from .manifest import Opened
from .missing import missing
from .schemas import Contract, dropped_for_good, erased_by, read_schema

WAYS = (
    "give a commit id, a tag, a branch, a version number, a timestamp such as"
    " 2024-01-31T12:00:00Z, HEAD, or HEAD~3 and main~3 for the third commit before one"
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graph at one commit of one branch."""

    store: Store
    branch: str
    commit_id: str
    manifest_version: int
    schema_row: SchemaRow
    tables: dict[str, TableEntry]
    log: Log
    past: bool = False
    erased: frozenset[str] = frozenset()  # directories of tables dropped with their history

    @property
    def commit(self) -> Commit:
        """The commit of the snapshot; read from the log on demand."""
        return self.log.get(self.commit_id)

    @property
    def schema(self) -> Contract:
        """The schema that this state was written with."""
        return read_schema(self.store, self.schema_row)

    def table(self, key: str) -> Table:
        """Open a table at its pinned version.

        Raises `HistoryReclaimed` if a cleanup removed it. A cleanup never removes what the newest
        state references: if such files are missing, they were lost, and that is `DamagedError`.
        """
        entry = self.tables.get(key)
        if entry is None:
            raise EntityNotFound(f"there is no {shorten_name(key).replace(':', ' type ')} here")
        if entry.location in self.erased:
            raise dropped_for_good(key, self.commit_id)
        try:
            return open_table(self.store, entry.location, entry.lance_version)
        except FileNotFoundError as error:
            if self.is_superseded():
                raise HistoryReclaimed(
                    f"{key} as of commit {self.commit_id} was removed by a cleanup",
                    first_unreadable_commit_id=self.commit_id,
                    hint="read a newer commit; tag what must stay before the next cleanup",
                ) from error
            name = f"{entry.location}/_versions/d{entry.lance_version}.manifest"
            raise missing(self.store, key, [name]) from error

    def is_superseded(self) -> bool:
        """Whether the branch has newer commits; only then may a cleanup have removed this state."""
        try:
            newest = open_line(self.store, self.branch).refresh().state
        except BranchNotFound:
            return True
        except OmnigraphError:
            return self.past
        return newest.head.commit_id != self.commit_id


Point = str | int | datetime | None


def snapshot(store: Store, line: Line, at: Point = None) -> Snapshot:
    """Open the newest state of a branch, or a past one: by commit id, manifest version or time."""
    if at is None:
        return of_state(store, line, line.refresh())
    opened = line.refresh()
    log = Log(store, opened.state)
    if isinstance(at, datetime):
        return _of_commit(store, line, log, _before(log, opened, at))
    if isinstance(at, int):
        return _of_commit(store, line, log, _published_as(log, opened, at))
    return _by_id(store, line, log, at)


def find_commit(store: Store, line: Line, commit_id: str) -> tuple[Line, Log, Commit]:
    """Find a commit by id: on this branch first, then on all others."""
    log = Log(store, line.refresh().state)
    found = log.find(commit_id)
    if found is not None:
        return line, log, found
    damage: DamagedError | None = None
    for name in list_branches(store):
        try:
            other = open_line(store, name)
        except BranchNotFound:  # deleted since the listing
            continue
        except DamagedError as error:  # another branch may have the commit; report it only if none
            damage = error
            continue
        log = Log(store, other.base().state)
        found = log.find(commit_id)
        if found is not None:
            return other, log, found
    raise damage or SnapshotNotFound(f"no commit {commit_id}", commit_id=commit_id)


def _by_id(store: Store, line: Line, log: Log, text: str) -> Snapshot:
    if text.startswith("manifest:"):
        return _synthetic(store, text)
    if not is_ulid(text):
        raise InputError(
            f"unknown revision '{text}'",
            reason="expected a ULID of 26 characters",
            hint=WAYS,
        )
    where, log, found = find_commit(store, line, text)
    return _of_commit(store, where, log, found)


def _synthetic(store: Store, text: str) -> Snapshot:
    """Open `manifest:<branch>:v<version>`, the id of a head without a commit of its own."""
    _, _, rest = text.partition(":")
    branch, _, version = rest.partition(":v")
    if not branch or not version.isdecimal():
        raise InputError(f"'{text}' is not a snapshot id", reason="expected manifest:<branch>:v<n>")
    return snapshot(store, open_line(store, branch), int(version))


def of_state(store: Store, line: Line, opened: Opened) -> Snapshot:
    """Return the snapshot of a loaded manifest; the branch is not read again."""
    state = opened.state
    head, tables = state.head.commit_id, dict(state.tables)
    log = Log(store, state)
    return Snapshot(store, line.name, head, opened.version, state.schema, tables, log)


def _of_commit(store: Store, line: Line, log: Log, commit: Commit) -> Snapshot:
    tables, schema = log.state_of(commit.id)
    version, erased = commit.manifest_version, erased_by(store, line.base().state)
    return Snapshot(store, line.name, commit.id, version, schema, tables, log, True, erased)


def _before(log: Log, opened: Opened, at: datetime) -> Commit:
    """Find the newest first-parent commit that was published at or before a time."""
    if at.tzinfo is None:
        raise InputError("the timestamp has no time zone", reason="give an offset or UTC")
    micros = round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    for one in log.first_parents(opened.state.head.commit_id):
        if one.published_at <= micros:
            return one
    raise SnapshotNotFound(f"the graph did not exist at {at.isoformat()}")


def _published_as(log: Log, opened: Opened, version: int) -> Commit:
    """Find the commit that a manifest version showed: the newest one published at or below it."""
    if version > opened.version or version < 1:
        raise SnapshotNotFound(f"manifest version {version} does not exist", version=version)
    head = opened.state.head
    for one in log.first_parents(head.commit_id):
        # From the fork downwards, commits were published in another manifest with other numbers.
        if one.id == head.fork or one.manifest_version <= version:
            return one
    raise SnapshotNotFound(f"manifest version {version} does not exist", version=version)
