"""One branch's state in this process: its newest known manifest, and the queue of its writers.

This module manages the cached states and the fair writer queue. The cache saves requests, and the queue avoids swap
conflicts between threads. Only the swap itself detects conflicts between processes. A cached state belongs to one
graph: if the root is removed and recreated, the state becomes invalid, even if the new graph has the same version
number.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from omnigraph.errors import GraphNotInitialized, HistoryReclaimed, ReadSetConflict
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .activity import report_activity
from .commit_log import HistoryLog
from .machine_queue import MachineQueue
from .manifest import LoadedManifest, change_token, is_newest, read_manifest
from .missing_manifest import lost_versions_error
from .shared_probe import SharedProbe

# States are keyed by root, branch and store settings, because read-only and writable handles never share state.
_branch_states: "WeakValueDictionary[tuple[str, int, str, str, bool, bool], BranchState]" = WeakValueDictionary()
_registry_lock = threading.Lock()


class GraphReplacedError(ReadSetConflict):
    """The branch's graph no longer exists: its root was removed and may now contain a different graph."""

    code = "ReadSetConflict"
    hint = "this handle is no longer usable: open the graph again"


def _reset_after_fork() -> None:
    # After a fork, the child must not use the parent's connections. The lock may be held by a thread that does not
    # exist in the child.
    global _registry_lock  # noqa: PLW0603
    _registry_lock = threading.Lock()
    _branch_states.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class BranchState:
    """The state of a branch, identified by the branch's ULID.

    All handles on the branch in this process share the state.
    """

    def __init__(self, store: Store, name: str, ulid: str) -> None:
        self.store = store
        self.name = name
        self.ulid = ulid
        # Hook that runs before each write; writable handles install crash recovery in it.
        self.recover_if_needed: Callable[[], object] = _do_nothing
        self.is_replaced = False
        self.machine_queue = MachineQueue(store.root.identity, ulid)
        self._newest_known: LoadedManifest | None = None
        self._manifest_with_token: tuple[LoadedManifest, object] | None = None
        self._waiting_writers: deque[threading.Event] = deque()
        self._lock = threading.Lock()
        self._refresh_for_reads = SharedProbe[LoadedManifest]()

    def last_known(self) -> LoadedManifest:
        """Return the newest state known to this process, or read the newest state if none is cached."""
        known_manifest = None if self.is_replaced else self._newest_known
        return known_manifest if known_manifest is not None else self.reload()

    def reload(self) -> LoadedManifest:
        """Read the newest state, without replacing a newer one that another thread has read."""
        previous_manifest = self._newest_known
        newest_manifest = None if self.is_replaced else self._read_newest()
        if newest_manifest is None or (
            previous_manifest is not None and not self._is_successor(previous_manifest, newest_manifest)
        ):
            self.is_replaced = True
            raise GraphReplacedError(
                f"the graph at {self.store.root.uri} has been replaced since it was opened", member="graph"
            )
        return self.advance(newest_manifest)

    def _read_newest(self) -> LoadedManifest:
        """Read the newest state. A missing state means damage, because cleanups keep a branch's newest version."""
        try:
            return read_manifest(self.store, self.ulid)
        except GraphNotInitialized as error:
            if self.ulid == MAIN or self._newest_known is None:
                raise
            raise lost_versions_error(self.store, self.ulid, branch_label=f"branch '{self.name}'") from error

    def _is_successor(self, previous_manifest: LoadedManifest, newer_manifest: LoadedManifest) -> bool:
        """Return whether the newer log contains the previous head. If not, the graph has been replaced."""
        try:
            previous_head = previous_manifest.state.head.commit_id
            return HistoryLog(self.store, newer_manifest.state).find(previous_head) is not None
        except HistoryReclaimed:  # log chunks were merged and removed in the meantime
            return True

    def refresh(self) -> LoadedManifest:
        """Return the newest state. This takes one list request if nothing has changed."""
        known_manifest = None if self.is_replaced else self._newest_known
        if known_manifest is not None:
            report_activity("freshness_probe")
            if is_newest(known_manifest):
                return known_manifest
        return self.reload()

    def cached_head(self) -> LoadedManifest:
        """Return the newest state for a read. Versions are listed only if the version directory has changed."""
        known_manifest = None if self.is_replaced else self._newest_known
        token = change_token(known_manifest) if known_manifest is not None else None
        manifest_with_token = self._manifest_with_token
        if (
            known_manifest is not None
            and manifest_with_token is not None
            and manifest_with_token[0] is known_manifest
            and manifest_with_token[1] == token
        ):
            return known_manifest
        newest_manifest = self._refresh_for_reads.run(self.refresh)
        self._manifest_with_token = (
            (newest_manifest, token) if token is not None and newest_manifest is known_manifest else None
        )
        return newest_manifest

    def advance(self, manifest: LoadedManifest) -> LoadedManifest:
        """Cache a state that was acknowledged or read, and return the newest known state."""
        with self._lock:
            if self._newest_known is None or self._newest_known.version < manifest.version:
                self._newest_known = manifest
            return self._newest_known

    @contextmanager
    def writer_slot(self) -> Iterator[None]:
        """Wait for this branch's writer slot, which is granted on a first-come, first-served basis."""
        slot_event = threading.Event()
        with self._lock:
            self._waiting_writers.append(slot_event)
            if self._waiting_writers[0] is slot_event:
                slot_event.set()
        try:
            slot_event.wait()
            yield
        finally:
            self._release_slot(slot_event)

    def _release_slot(self, slot_event: threading.Event) -> None:
        with self._lock:
            self._waiting_writers.remove(slot_event)
            if self._waiting_writers:
                self._waiting_writers[0].set()

    @staticmethod
    def back_off(conflict_count: int) -> None:
        """Wait a random time after a swap conflict. The maximum wait grows with each conflict."""
        threading.Event().wait(min(0.5, 0.002 * 2**conflict_count) * clock_and_ids.random_fraction())


def _do_nothing() -> None:
    """Skip recovery. Read-only handles use this function as their recovery hook."""


def branch_state_of(store: Store, branch_name: str, ulid: str) -> BranchState:
    """Return a branch's state, which all writers to the branch in this process share."""
    with _registry_lock:
        root, effects = store.root, store.effects
        verifies_files = store.table_verifier is not None
        registry_key = (root.identity, root.access_hash, ulid, store.durability, effects.read_only, verifies_files)
        branch_state = _branch_states.get(registry_key)
        if branch_state is None or branch_state.is_replaced:
            branch_state = _branch_states[registry_key] = BranchState(store, branch_name, ulid)
        return branch_state


def branch_states_at(store: Store) -> list[BranchState]:
    """Return all branch states cached for a root. These states become invalid if a new graph is created there."""
    with _registry_lock:
        return [
            branch_state
            for registry_key, branch_state in _branch_states.items()
            if registry_key[0] == store.root.identity
        ]
