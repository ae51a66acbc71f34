"""One branch as this process knows it: its newest known state, and the queue of its writers.

Owns the cached states and the fair queue of writers. Both save requests and avoid swap conflicts
between threads; between processes only the swap itself decides. The cache belongs to one graph: if
its root is removed and created again, it becomes invalid, whatever the version numbers say.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from omnigraph import ids
from omnigraph.errors import GraphNotInitialized, HistoryReclaimed, ReadSetConflict
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Store

from .log import Log
from .manifest import Opened, is_newest, read_manifest, stillness
from .remains import lost_versions

# By root, branch, and store guarantees: read-only and writable handles never share state.
_lines: "WeakValueDictionary[tuple[str, int, str, str, bool, bool], Line]" = WeakValueDictionary()
_registry = threading.Lock()


class ReplacedError(ReadSetConflict):
    """The graph of a branch is gone: its root was removed, and may hold another graph now."""

    code = "ReadSetConflict"
    hint = "this handle is no longer usable: open the graph again"


def _after_fork() -> None:
    # The parent's connections are not ours, and a thread that was not forked may hold the lock.
    global _registry  # noqa: PLW0603
    _registry = threading.Lock()
    _lines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Line:
    """The state of a branch, by its ULID. All handles of a process on one branch share it."""

    def __init__(self, store: Store, name: str, ulid: str) -> None:
        self.store = store
        self.name = name
        self.ulid = ulid
        # Hook run before each write; writable handles install crash recovery here.
        self.tend: Callable[[], object] = _nothing
        self.ended = False
        self._opened: Opened | None = None
        self._rest: tuple[Opened, object] | None = None
        self._waiting: deque[threading.Event] = deque()
        self._queue = threading.Lock()

    def base(self) -> Opened:
        """Return the newest state known to this process; read it if there is none."""
        opened = None if self.ended else self._opened
        return opened if opened is not None else self.reload()

    def reload(self) -> Opened:
        """Read the newest state; never replaces a newer one that another thread has read."""
        before = self._opened
        read = None if self.ended else self._read()
        if read is None or (before is not None and not self._continues(before, read)):
            self.ended = True
            raise ReplacedError(
                f"the graph at {self.store.root.uri} was replaced since it was opened",
                member="graph",
            )
        return self.advance(read)

    def _read(self) -> Opened:
        """Read the newest state; a branch never loses its last version, so none means damage."""
        try:
            return read_manifest(self.store, self.ulid)
        except GraphNotInitialized as error:
            if self.ulid == MAIN or self._opened is None:
                raise
            raise lost_versions(self.store, self.ulid, branch=f"branch '{self.name}'") from error

    def _continues(self, before: Opened, now: Opened) -> bool:
        """Return whether a state succeeds a known one: its log contains that head."""
        try:
            head = before.state.head.commit_id
            return Log(self.store, now.state).find(head) is not None
        except HistoryReclaimed:  # chunks of the log were merged and removed meanwhile
            return True

    def refresh(self) -> Opened:
        """Return the newest state: one listing if nothing changed."""
        opened = None if self.ended else self._opened
        if opened is not None and is_newest(opened):
            return opened
        return self.reload()

    def glance(self) -> Opened:
        """Return the newest state for a read; lists only if the version directory changed."""
        opened = None if self.ended else self._opened
        still = stillness(opened) if opened is not None else None
        rest = self._rest
        if opened is not None and rest is not None and rest[0] is opened and rest[1] == still:
            return opened
        found = self.refresh()
        self._rest = (found, still) if still is not None and found is opened else None
        return found

    def advance(self, opened: Opened) -> Opened:
        """Cache a state that was acknowledged or read; return it, or a newer one if known."""
        with self._queue:
            if self._opened is None or self._opened.version < opened.version:
                self._opened = opened
            return self._opened

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the slot of this branch's writer; first come, first served."""
        mine = threading.Event()
        with self._queue:
            self._waiting.append(mine)
            if self._waiting[0] is mine:
                mine.set()
        try:
            mine.wait()
            yield
        finally:
            self._leave(mine)

    def _leave(self, mine: threading.Event) -> None:
        with self._queue:
            self._waiting.remove(mine)
            if self._waiting:
                self._waiting[0].set()

    @staticmethod
    def pause(lost: int) -> None:
        """Back off after a swap conflict, longer each time, with jitter."""
        threading.Event().wait(min(0.5, 0.002 * 2**lost) * ids.random_fraction())


def _nothing() -> None:
    """Do nothing."""


def line_of(store: Store, name: str, ulid: str) -> Line:
    """Return the state of a branch, shared by everything in this process that writes to it."""
    with _registry:
        root, effects = store.root, store.effects
        verifies = store.verifier is not None
        key = (root.identity, root.access, ulid, store.durability, effects.read_only, verifies)
        found = _lines.get(key)
        if found is None or found.ended:
            found = _lines[key] = Line(store, name, ulid)
        return found


def lines_at(store: Store) -> list[Line]:
    """Return all branch states cached for a root; a new graph created there invalidates them."""
    with _registry:
        return [line for key, line in _lines.items() if key[0] == store.root.identity]
