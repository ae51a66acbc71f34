"""The state of an open graph: its store, branch and snapshot, and the caller's read set.

`Graph` and every facet hold one `Handle`. Unless it is pinned, the handle gives each read the newest snapshot. It also
runs the checks that precede each call, and records what the caller has read, so that strict writes can detect
conflicts. A handle can be pickled (without secrets), and raises an error if it is used after a fork. The handle itself
reads no tables.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.api.actors import reject_reserved_actor, resolve_actor
from omnigraph.errors import GraphClosed, ReadOnlyError, ReadSetConflict, UsageError
from omnigraph.errors.caller_warning import report_warning
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.refs import name_not_found_error
from omnigraph.history.revisions import Revision, resolve_revision
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.storage.store import Store
from omnigraph.values.name_rules import strip_name
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from omnigraph.api.write_options import WriteOptions
    from omnigraph.history.manifest import LoadedManifest
    from omnigraph.maintenance.health_thresholds import LimitWarning
    from omnigraph.publish.read_set import ReadSet, UnchangedReads
    from omnigraph.publish.unread_changes import RowFilter
    from omnigraph.storage.external_blobs import BlobLocation
    from omnigraph.storage.pending_blobs import PendingBlobs

_SECRET_WORDS = ("secret", "token", "password", "access_key", "credential")


@contextmanager
def report_missing_branch(branch_state: BranchState) -> Iterator[None]:
    """Raise `BranchNotFound` if a write fails because its branch was deleted. Retrying cannot help in that case."""
    try:
        yield
    except ReadSetConflict as error:
        if error.member != "branch":
            raise
        raise name_not_found_error(branch_state.store, branch_state.name) from error


class Handle:
    """An open branch of a graph, or a pinned snapshot.

    `warnings` are the limits that writes through this handle have exceeded. Handles derived from this one for other
    branches share the list, so that each warning is reported only once.
    """

    def __init__(
        self,
        store: Store,
        branch_state: BranchState,
        *,
        read_only: bool = False,
        actor: str | None = None,
        pinned: Snapshot | None = None,
        external_blobs: "tuple[BlobLocation, ...]" = (),
    ) -> None:
        self.store = store
        self.branch_state = branch_state
        self.pinned = pinned is not None
        self.read_only = read_only or self.pinned
        self.actor = actor
        self.external_blobs = external_blobs
        self.closed = False
        self.warnings: list[LimitWarning] = []
        self._process_id = os.getpid()
        if not self.read_only:
            from omnigraph.publish.recover import install_recovery_hook

            install_recovery_hook(branch_state)
        manifest = branch_state.last_known()
        self._latest: tuple[LoadedManifest, Snapshot] = (manifest, manifest_snapshot(store, branch_state, manifest))
        self.snapshot = pinned or self._latest[1]
        # The first write creates the read set from the tables that have been read so far.
        self._tables_read = dict(self.snapshot.tables)
        self._read_set: ReadSet | None = None
        self._read_set_lock = threading.Lock()

    @property
    def uri(self) -> str:
        """The graph's location."""
        return self.store.root.uri

    @property
    def branch_name(self) -> str:
        """The branch's name."""
        return self.branch_state.name

    def describe(self) -> str:
        """Describe the graph, branch and commit in one line."""
        position = f"branch={self.branch_name!r}, head={self.snapshot.commit_id!r}"
        return f"Graph({self.uri!r}, {position}{', read_only=True' if self.read_only else ''})"

    def result_target(self) -> dict[str, str | None]:
        """The branch or commit that a result was read from."""
        if self.pinned:
            return {"branch": None, "snapshot": self.snapshot.commit_id}
        return {"branch": self.branch_name, "snapshot": None}

    # Other handles ------------------------------------------------------------------------------

    def on_branch(self, branch_state: BranchState) -> "Handle":
        """Return a handle on another branch, with this handle's permissions and warnings."""
        other = Handle(
            self.store, branch_state, read_only=self.read_only, actor=self.actor, external_blobs=self.external_blobs
        )
        other.warnings = self.warnings
        return other

    def acting(self, actor: str | None) -> "Handle":
        """Return a handle on the same branch or commit, with its own actor, read set and warnings."""
        self.require_open()
        other = self.pin(self.snapshot) if self.pinned else self.on_branch(self.branch_state)
        other.actor = reject_reserved_actor(actor)
        other.warnings = []
        return other

    def checkout(self, branch: str) -> "Handle":
        """Return a handle on the head of a branch."""
        self.require_open()
        return self.on_branch(open_branch(self.store, branch))

    def for_branch(self, branch: str | None) -> "Handle":
        """Return the handle to use for a call that has a `branch` option."""
        self.require_open()
        if branch is None or branch == self.branch_name:
            return self
        return self.checkout(branch)

    def pin(self, snapshot: Snapshot) -> "Handle":
        """Return a read-only handle on a snapshot."""
        return Handle(self.store, self.branch_state, actor=self.actor, pinned=snapshot)

    def at(self, revision: Revision) -> "Handle":
        """Return a read-only handle on a revision, which is resolved relative to this handle's commit."""
        self.require_open()
        return self.pin(resolve_revision(self.store, self.branch_state, self.snapshot, revision))

    def for_read(self, branch: str | None, revision: Revision | None) -> "Handle":
        """Return the handle to use for a read that has `branch` and `at` options."""
        handle = self if branch is None else self.checkout(branch)
        return handle if revision is None else handle.at(revision)

    def open_branch_state(self, name: str | None) -> BranchState:
        """Return the state of the named branch, or of this handle's branch if no name is given."""
        self.require_open()
        if name is None or strip_name(name) == self.branch_name:
            return self.branch_state
        return open_branch(self.store, name)

    # Freshness and the read set -----------------------------------------------------------------

    def latest_snapshot(self) -> Snapshot:
        """Move to the branch's newest snapshot, unless the handle is pinned, and return the snapshot."""
        self.require_open()
        if self.pinned:
            return self.snapshot
        manifest, latest = self.branch_state.cached_head(), self._latest
        if latest[0] is not manifest:
            if manifest.state.head.closed:
                raise name_not_found_error(self.store, self.branch_name)
            latest = self._latest = (manifest, manifest_snapshot(self.store, self.branch_state, manifest))
        self.snapshot = latest[1]
        return latest[1]

    def refresh(self) -> None:
        """Move to the newest snapshot, and treat all of its data as read by the caller."""
        self._record_tables_read(self.latest_snapshot().tables)

    def pause_before_retry(self, attempt: int) -> None:
        """Wait for a random time that tends to grow with each attempt, then move to the newest snapshot."""
        self.branch_state.back_off(attempt)
        self.refresh()

    def record_read(self, snapshot: Snapshot, table_keys: Iterable[TableKey]) -> None:
        """Add the tables that a query read to the read set."""
        tables = snapshot.tables
        self._record_tables_read({key: tables[key] for key in table_keys if key in tables})

    def _record_tables_read(self, tables: Mapping[TableKey, TableEntry]) -> None:
        with self._read_set_lock:
            if self._read_set is None:
                self._tables_read.update(tables)
            else:
                self._read_set.record_read(tables)

    def _open_read_set(self) -> "ReadSet":
        from omnigraph.publish.read_set import ReadSet

        with self._read_set_lock:
            if self._read_set is None:
                self._read_set = ReadSet(self._tables_read)
            return self._read_set

    def require_unchanged(self, keys: "Iterable[TableKey] | Mapping[TableKey, RowFilter | None]") -> "UnchangedReads":
        """Return the requirement that the tables, or the given rows, have not changed since the caller read them."""
        return self._open_read_set().require_unchanged(keys)

    def record_write(self, commit: Commit | None, requirement: "UnchangedReads") -> Commit | None:
        """Move to a commit that this handle published, and return it. If the commit is None, do nothing."""
        if commit is None:
            return None
        self._open_read_set().record_write(commit, requirement)
        manifest = self.branch_state.last_known()
        self._latest = (manifest, manifest_snapshot(self.store, self.branch_state, manifest))
        self.snapshot = self._latest[1]
        self._warn_about_size(manifest, commit)
        return commit

    def record_table_read(self, snapshot: Snapshot, table_key: TableKey) -> None:
        """Add one table to the read set."""
        self._record_tables_read({table_key: snapshot.tables[table_key]})

    def with_actor(self, options: "WriteOptions") -> "WriteOptions":
        """Return the options for a write, with this handle's actor if no actor is given."""
        return replace(options, actor=resolve_actor(options.actor) if options.actor else self.actor)

    def accept_blobs(self) -> AbstractContextManager[None]:
        """Return a context in which a write accepts files and allowed external blobs as values."""
        from omnigraph.storage.pending_blobs import pending_blobs

        return pending_blobs(self.external_blobs, self.store.root.options)

    def new_pending_blobs(
        self, report: Callable[[int, int], None] | None = None, *, copies_files: bool = False
    ) -> "PendingBlobs":
        """Return a collection for blobs in a multi-step write. The caller must close the collection."""
        from omnigraph.storage.pending_blobs import PendingBlobs

        return PendingBlobs(self.external_blobs, self.store.root.options, report, copies_files=copies_files)

    def _warn_about_size(self, manifest: "LoadedManifest", commit: Commit) -> None:
        """Report each exceeded write limit once, in the log and in `warnings`."""
        from omnigraph.api.log_events import LOGGER
        from omnigraph.maintenance.commit_warnings import commit_warnings
        from omnigraph.maintenance.write_warnings import periodic_warnings

        reported = {(warning.what, warning.type_key) for warning in self.warnings}
        current = commit_warnings(self.store, manifest.state, commit)
        for warning in (*current, *periodic_warnings(self.store, manifest, commit)):
            if (warning.what, warning.type_key) not in reported:
                self.warnings.append(warning)
                report_warning(type(warning).__name__, str(warning), warning.to_json())
                event = {"operation": "upkeep", "branch": self.branch_name, **warning.to_json()}
                LOGGER.warning("%s", warning, extra={"event": event})

    # Checks before a call -----------------------------------------------------------------------

    def require_open(self) -> None:
        """Raise `GraphClosed` if the handle is closed, or `UsageError` in a forked process."""
        if self.closed:
            raise GraphClosed(f"this handle on {self.uri} is closed")
        if self._process_id != os.getpid():
            # Using Lance after a fork usually works, but sometimes crashes the process.
            raise UsageError(
                reason="this handle was opened before this process was forked; Lance, which reads"
                " and writes the tables, cannot be used after a fork",
                hint="start processes with spawn or forkserver; a graph can be pickled and passed to them",
            )

    def require_branch(self, action: str) -> None:
        """Raise `ReadOnlyError` if the handle is pinned, and therefore has no branch to write to."""
        self.require_open()
        if self.pinned:
            shown = self.snapshot.commit_id
            message = f"{action} is not allowed: the handle is at commit {shown}, not on a branch"
            raise ReadOnlyError(message, what=action)

    def require_writable(self, action: str) -> None:
        """Raise `ReadOnlyError` if the handle is pinned or was opened read-only."""
        self.require_branch(action)
        if self.read_only:
            raise ReadOnlyError(what=action)

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen_handle, self._reopening_arguments(self._public_options())

    def reader_arguments(self) -> tuple[Any, ...]:
        """Return the arguments that a child process needs to open the same graph for reading.

        Unlike a pickled handle, the arguments may contain secrets.
        """
        uri, settings, commit_id = self._reopening_arguments(dict(self.store.root.options))
        return uri, {**settings, "read_only": True}, commit_id

    def _reopening_arguments(self, storage_options: dict[str, Any]) -> tuple[Any, ...]:
        settings = {
            "branch": self.branch_name,
            "actor": self.actor,
            "read_only": self.store.effects.read_only,
            "durability": self.store.durability,
            "verify": self.store.table_verifier is not None,
            "external_blobs": [base.uri for base in self.external_blobs],
            "storage_options": None if self.store.root.is_local else storage_options,
        }
        return self.uri, settings, self.snapshot.commit_id if self.pinned else None

    def _public_options(self) -> dict[str, Any]:
        options = self.store.root.options.items()
        return {
            name: value
            for name, value in options
            if not any(secret_word in name.lower() for secret_word in _SECRET_WORDS)
        }


def reopen_handle(uri: str, settings: dict[str, Any], commit_id: str | None) -> Handle:
    """Reopen a pickled handle from its arguments."""
    from omnigraph.api.opening import open_handle

    handle = open_handle(uri, **settings)
    return handle if commit_id is None else handle.at(commit_id)
