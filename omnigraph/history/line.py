"""One branch as this process knows it: its newest known state, and whose turn it is to write.

Owns the memory of states and the fair queue of writers. It saves requests and avoids lost swaps
between threads; against other processes only the swap itself decides. What it knows belongs to one
graph: when its root is removed and made again, the line ends, whatever the numbers say.
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

# By root, branch, and what a store promises and may do: nobody writes by the leave of another.
_lines: "WeakValueDictionary[tuple[str, int, str, str, bool, bool], Line]" = WeakValueDictionary()
_registry = threading.Lock()


class ReplacedError(ReadSetConflict):
    """The graph of a line is gone: its root was removed, and another graph may stand there."""

    code = "ReadSetConflict"
    hint = "the handle is of no use any more: open it again, and look what is there"


def _after_fork() -> None:
    # The connections of the parent are not ours, and a thread that is not here may hold the lock.
    global _registry  # noqa: PLW0603
    _registry = threading.Lock()
    _lines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Line:
    """A branch by its ULID. All handles of a process on one branch share one."""

    def __init__(self, store: Store, name: str, ulid: str) -> None:
        self.store = store
        self.name = name
        self.ulid = ulid
        # What is done before a write: who opens for writing puts the look for cut-off work here.
        self.tend: Callable[[], object] = _nothing
        self.ended = False
        self._opened: Opened | None = None
        self._rest: tuple[Opened, object] | None = None
        self._waiting: deque[threading.Event] = deque()
        self._queue = threading.Lock()

    def base(self) -> Opened:
        """The newest state this process knows; read when it knows none."""
        opened = None if self.ended else self._opened
        return opened if opened is not None else self.reload()

    def reload(self) -> Opened:
        """Read the newest state. What another thread learned meanwhile is not forgotten again."""
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
        """The newest state; a branch keeps its last version for ever, so none at all is damage."""
        try:
            return read_manifest(self.store, self.ulid)
        except GraphNotInitialized as error:
            if self.ulid == MAIN or self._opened is None:
                raise
            raise lost_versions(self.store, self.ulid, branch=f"branch '{self.name}'") from error

    def _continues(self, before: Opened, now: Opened) -> bool:
        """Whether a state comes after one that was known: it has that head in its log."""
        try:
            head = before.state.head.commit_id
            return Log(self.store, now.state).find(head) is not None
        except HistoryReclaimed:  # pieces of the log were merged and collected meanwhile
            return True

    def refresh(self) -> Opened:
        """The newest state there is: one listing when nothing moved."""
        opened = None if self.ended else self._opened
        if opened is not None and is_newest(opened):
            return opened
        return self.reload()

    def glance(self) -> Opened:
        """The newest state, for a read: nothing is listed while the directory of versions rests."""
        opened = None if self.ended else self._opened
        still = stillness(opened) if opened is not None else None
        rest = self._rest
        if opened is not None and rest is not None and rest[0] is opened and rest[1] == still:
            return opened
        found = self.refresh()
        self._rest = (found, still) if still is not None and found is opened else None
        return found

    def advance(self, opened: Opened) -> Opened:
        """Remember a state that was acknowledged or read, unless a newer one is known: that one."""
        with self._queue:
            if self._opened is None or self._opened.version < opened.version:
                self._opened = opened
            return self._opened

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn to write; first come, first served."""
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
        """Step back after a lost race, longer each time, never in step with the others."""
        threading.Event().wait(min(0.5, 0.002 * 2**lost) * ids.random_fraction())


def _nothing() -> None:
    """Nothing to be done."""


def line_of(store: Store, name: str, ulid: str) -> Line:
    """The line of a branch, shared by everything in this process that writes to it."""
    with _registry:
        root, effects = store.root, store.effects
        verifies = store.verifier is not None
        key = (root.identity, root.access, ulid, store.durability, effects.read_only, verifies)
        found = _lines.get(key)
        if found is None or found.ended:
            found = _lines[key] = Line(store, name, ulid)
        return found


def lines_at(store: Store) -> list[Line]:
    """What this process remembers of a root: over, once a new graph was made there."""
    with _registry:
        return [line for key, line in _lines.items() if key[0] == store.root.identity]
