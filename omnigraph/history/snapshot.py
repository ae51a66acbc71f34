"""A snapshot of a graph: one commit, its schema, and its tables at exact versions.

This module selects commits by id, version or time. A snapshot never changes, even if its branch advances. A past
commit's state is read from the log, with that commit's schema.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from omnigraph.errors import BranchNotFound, HistoryReclaimed, InputError, OmnigraphError, SnapshotNotFound
from omnigraph.records.frozen import record
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.table_key import TableKey

from .branch_state import BranchState
from .branches import list_branches, open_branch
from .commit import Commit, SchemaRow, TableEntry
from .commit_log import HistoryLog
from .manifest import LoadedManifest
from .missing_table_files import missing_files_error

if TYPE_CHECKING:
    from omnigraph.storage.table import Table

    from .schemas import StoredSchema

REVISION_HINT = (
    "use a commit id or its beginning, a tag, a branch, a version number, a time (2024-01-31T12:00:00Z, 2024-01-31 or"
    " '2 hours ago'), HEAD, or an ancestor (HEAD~3, main~3 or HEAD^)"
)


@record
class Snapshot:
    """The graph at one commit on one branch."""

    store: Store
    branch: str
    commit_id: str
    manifest_version: int
    schema_row: SchemaRow
    tables: dict[TableKey, TableEntry]
    log: HistoryLog
    is_past: bool = False
    erased_directories: frozenset[str] = frozenset()  # directories of tables that were dropped along with their history

    @property
    def commit(self) -> Commit:
        """The snapshot's commit, read from the log on demand."""
        return self.log.get(self.commit_id)

    @property
    def schema(self) -> "StoredSchema":
        """The schema that this state was written with."""
        from .schemas import read_schema

        return read_schema(self.store, self.schema_row)

    def table_entry(self, table_key: TableKey) -> TableEntry:
        """Return a table's entry; raise `InputError` if the snapshot has no such type."""
        entry = self.tables.get(table_key)
        if entry is None:
            from omnigraph.lang.schema.type_names import unknown_type_error

            kind = table_key.kind
            known_names = [key.type_name for key in self.tables if key.kind == kind]
            raise unknown_type_error(table_key.type_name, known_names, kind)
        return entry

    def checked_version(self, table_key: TableKey) -> tuple[str, int]:
        """Return a table's location and version. The table is opened and checked only if it is not open yet.

        Raises the same errors as `table`.
        """
        entry = self.table_entry(table_key)
        if entry.location in self.erased_directories or not self.store.dataset_cache.is_checked(
            entry.location, entry.lance_version
        ):
            self.table(table_key)
        return entry.location, entry.lance_version

    def table(self, table_key: TableKey) -> "Table":
        """Open a table at its pinned version.

        Raises `HistoryReclaimed` if a cleanup removed the version. A cleanup never removes files that the newest state
        references. If such files are missing, they were lost, and `DamagedError` is raised.
        """
        from omnigraph.storage.table import open_table

        entry = self.table_entry(table_key)
        if entry.location in self.erased_directories:
            from .schemas import dropped_history_error

            raise dropped_history_error(table_key, self.commit_id)
        try:
            return open_table(self.store, entry.location, entry.lance_version)
        except FileNotFoundError as error:
            if self.is_superseded():
                raise HistoryReclaimed(
                    f"cannot read {table_key} as of commit {self.commit_id}: a cleanup removed its files",
                    first_unreadable_commit_id=self.commit_id,
                    hint="read a newer commit; before the next cleanup, tag the commits to keep",
                ) from error
            version_file = f"{entry.location}/_versions/d{entry.lance_version}.manifest"
            raise missing_files_error(self.store, table_key, [version_file]) from error

    def is_superseded(self) -> bool:
        """Return whether the branch has newer commits. Only then can a cleanup have removed this state."""
        try:
            newest_state = open_branch(self.store, self.branch).refresh().state
        except BranchNotFound:
            return True
        except OmnigraphError:
            return self.is_past
        return newest_state.head.commit_id != self.commit_id


SnapshotSelector = str | int | datetime | None


def load_snapshot(store: Store, branch_state: BranchState, selector: SnapshotSelector = None) -> Snapshot:
    """Open a branch's newest state, or a past state by commit id, manifest version or time."""
    if selector is None:
        return manifest_snapshot(store, branch_state, branch_state.refresh())
    manifest = branch_state.refresh()
    log = HistoryLog(store, manifest.state)
    if isinstance(selector, datetime):
        return _commit_snapshot(store, branch_state, log, _commit_at_time(log, manifest, selector))
    if isinstance(selector, int):
        return _commit_snapshot(store, branch_state, log, _commit_at_version(log, manifest, selector))
    return _snapshot_by_id(store, branch_state, log, selector)


def find_commit(store: Store, branch_state: BranchState, commit_id: str) -> tuple[BranchState, HistoryLog, Commit]:
    """Find a commit by id, first on this branch and then on all other branches."""
    log = HistoryLog(store, branch_state.refresh().state)
    commit = log.find(commit_id)
    if commit is not None:
        return branch_state, log, commit
    branch_damage: DamagedError | None = None
    for branch_name in list_branches(store):
        try:
            other_branch = open_branch(store, branch_name)
        except BranchNotFound:  # the branch was deleted after the listing
            continue
        # Another branch may contain the commit, so raise an error only after searching all branches.
        except DamagedError as error:
            branch_damage = error
            continue
        log = HistoryLog(store, other_branch.last_known().state)
        commit = log.find(commit_id)
        if commit is not None:
            return other_branch, log, commit
    raise branch_damage or SnapshotNotFound(f"commit {commit_id} not found", commit_id=commit_id)


def _snapshot_by_id(store: Store, branch_state: BranchState, log: HistoryLog, snapshot_id: str) -> Snapshot:
    if snapshot_id.startswith("manifest:"):
        return _snapshot_by_manifest_id(store, snapshot_id)
    if not is_ulid(snapshot_id):
        raise InputError(f"unknown revision '{snapshot_id}'", reason="expected a 26-character ULID", hint=REVISION_HINT)
    commit_branch, log, commit = find_commit(store, branch_state, snapshot_id)
    return _commit_snapshot(store, commit_branch, log, commit)


def _snapshot_by_manifest_id(store: Store, snapshot_id: str) -> Snapshot:
    """Open a snapshot by an id of the form `manifest:<branch>:v<version>`.

    Such ids identify versions that have no commit of their own.
    """
    _, _, branch_and_version = snapshot_id.partition(":")
    branch_name, _, version_text = branch_and_version.partition(":v")
    if not branch_name or not version_text.isdecimal():
        raise InputError(f"'{snapshot_id}' is not a snapshot id", reason="expected manifest:<branch>:v<n>")
    return load_snapshot(store, open_branch(store, branch_name), int(version_text))


def manifest_snapshot(store: Store, branch_state: BranchState, manifest: LoadedManifest) -> Snapshot:
    """Return the snapshot for a loaded manifest without reading the branch again."""
    state = manifest.state
    head_commit_id, table_entries = state.head.commit_id, dict(state.tables)
    log = HistoryLog(store, state)
    return Snapshot(store, branch_state.name, head_commit_id, manifest.version, state.schema, table_entries, log)


def _commit_snapshot(store: Store, branch_state: BranchState, log: HistoryLog, commit: Commit) -> Snapshot:
    from .schemas import read_erased_directories

    table_entries, schema_row = log.tables_and_schema_at(commit.id)
    manifest_version, erased_directories = (
        commit.manifest_version,
        read_erased_directories(store, branch_state.last_known().state),
    )
    return Snapshot(
        store, branch_state.name, commit.id, manifest_version, schema_row, table_entries, log, True, erased_directories
    )


def _commit_at_time(log: HistoryLog, manifest: LoadedManifest, timestamp: datetime) -> Commit:
    """Find the newest first-parent commit published at or before a given time."""
    if timestamp.tzinfo is None:
        raise InputError("the timestamp has no time zone", reason="specify an offset or UTC")
    timestamp_micros = round((timestamp - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    for commit in log.first_parents(manifest.state.head.commit_id):
        if commit.published_at <= timestamp_micros:
            return commit
    message = f"the graph did not exist at {timestamp.isoformat()}"
    raise SnapshotNotFound(message, hint="run `omnigraph log --all` to see the times of the commits")


def _commit_at_version(log: HistoryLog, manifest: LoadedManifest, manifest_version: int) -> Commit:
    """Find the commit that was current at a manifest version: the newest commit published at or before that version."""
    if manifest_version > manifest.version or manifest_version < 1:
        raise SnapshotNotFound(f"manifest version {manifest_version} does not exist", version=manifest_version)
    head = manifest.state.head
    for commit in log.first_parents(head.commit_id):
        # Commits before the fork were published in a different manifest, with unrelated version numbers.
        if commit.id == head.fork or commit.manifest_version <= manifest_version:
            return commit
    raise SnapshotNotFound(f"manifest version {manifest_version} does not exist", version=manifest_version)
