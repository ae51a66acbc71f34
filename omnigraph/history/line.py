"""One branch as this process knows it: its newest known state, and whose turn it is to write.

Owns the memory of states and the fair queue of writers. It saves requests and avoids lost swaps
between threads; against other processes only the swap itself decides.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from omnigraph import ids
from omnigraph.storage.store import Store

from .manifest import Opened, is_newest, read_manifest

# By root, branch, and what a store promises and may do: nobody writes by the leave of another.
_lines: "WeakValueDictionary[tuple[str, int, str, str, bool], Line]" = WeakValueDictionary()
_registry = threading.Lock()


class Line:
    """A branch by its ULID. All handles of a process on one branch share one."""

    def __init__(self, store: Store, name: str, ulid: str) -> None:
        self.store = store
        self.name = name
        self.ulid = ulid
        # What is done before a write: who opens for writing puts the look for cut-off work here.
        self.tend: Callable[[], object] = _nothing
        self._opened: Opened | None = None
        self._waiting: deque[threading.Event] = deque()
        self._queue = threading.Lock()

    def base(self) -> Opened:
        """The newest state this process knows; read when it knows none."""
        opened = self._opened
        return opened if opened is not None else self.reload()

    def reload(self) -> Opened:
        """Read the newest state. What another thread learned meanwhile is not forgotten again."""
        before = self._opened
        read = read_manifest(self.store, self.ulid)
        with self._queue:
            now = self._opened
            if now is before or now is None or now.version < read.version:
                self._opened = now = read
        return now

    def refresh(self) -> Opened:
        """The newest state there is: one listing when nothing moved."""
        opened = self._opened
        if opened is not None and is_newest(opened):
            return opened
        return self.reload()

    def advance(self, opened: Opened) -> None:
        """Remember an acknowledged state."""
        with self._queue:
            self._opened = opened

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
        key = (root.identity, root.access, ulid, store.durability, effects.read_only)
        found = _lines.get(key)
        if found is None:
            found = _lines[key] = Line(store, name, ulid)
        return found
