"""What queries of one process share: parsed tables in memory, and neighbour lists on disk.

Owns budgets and eviction. Keys name exact table versions, so nothing in here can be out of date;
what is missing, damaged or not writable costs time and never an answer.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from omnigraph.storage.store import Store

from .arrays import Disk

T = TypeVar("T")
_SETTINGS = (
    "OMNIGRAPH_CACHE_DIR",
    "OMNIGRAPH_CACHE_BYTES",
    "OMNIGRAPH_CACHE_MEMORY",
    "XDG_CACHE_HOME",
)
_MEMORY = 1 << 30
_DISK = 16 << 30


@dataclass(slots=True, eq=False)
class Memory:
    """Values by key within a budget of bytes, the least recently used dropped first.

    >>> memory = Memory(100)
    >>> memory.put("a", 1, 60), memory.put("b", 2, 60), memory.get("a"), memory.get("b")
    (None, None, None, 2)
    """

    budget: int
    _held: OrderedDict[Hashable, tuple[Any, int]] = field(default_factory=OrderedDict)
    _used: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[Hashable, threading.Lock] = field(default_factory=dict)

    def get(self, key: Hashable) -> Any | None:
        """The value, if it is held."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value; one that is larger than the budget alone is not kept."""
        if size > self.budget:
            return
        with self._lock:
            self._used += size - self._held.pop(key, (None, 0))[1]
            self._held[key] = (value, size)
            while self._used > self.budget:
                self._used -= self._held.popitem(last=False)[1][1]

    def make(
        self, key: Hashable, build: Callable[[], T | None], size: Callable[[T], int]
    ) -> T | None:
        """The value, made at most once at a time: other threads wait for the one that makes it.

        What could not be made is None and not held.
        """
        found: T | None = self.get(key)
        if found is not None:
            return found
        with self._lock:
            turn = self._making.setdefault(key, threading.Lock())
        try:
            with turn:
                found = self.get(key)
                if found is None:
                    found = build()
                    if found is not None:
                        self.put(key, found, size(found))
        finally:
            with self._lock:
                self._making.pop(key, None)
        return found

    def recent(self) -> list[Hashable]:
        """All keys, the most recently used first."""
        with self._lock:
            return list(reversed(self._held))

    def drop(self, key: Hashable) -> None:
        """Forget one value."""
        with self._lock:
            self._used -= self._held.pop(key, (None, 0))[1]

    @property
    def used(self) -> int:
        """Bytes in use."""
        return self._used

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()
            self._used = 0


@dataclass(slots=True, eq=False)
class Caches:
    """What is shared between queries: lists and columns in memory, lists on disk."""

    memory: Memory = field(
        default_factory=lambda: Memory(_bytes("OMNIGRAPH_CACHE_MEMORY", _MEMORY))
    )
    disk: Disk | None = None
    # How much was spent on going without: when it exceeds the price, the thing is made.
    spent: Memory = field(default_factory=lambda: Memory(10_000))

    def spend(self, key: Hashable, amount: float) -> float:
        """Add to what was spent under a key; gives the sum so far."""
        total: float = (self.spent.get(key) or 0.0) + amount
        self.spent.put(key, total, 1)
        return total


def open_caches(directory: str | Path | None = None) -> Caches:
    """Caches on a directory: the given one, else `OMNIGRAPH_CACHE_DIR`, else the user's."""
    place = Path(directory) if directory is not None else _user_directory()
    budget = _bytes("OMNIGRAPH_CACHE_BYTES", _DISK)
    return Caches(disk=Disk(place, budget) if place is not None and budget else None)


def cache_directory() -> Path | None:
    """Where the caches of this process are on disk; None when there are none."""
    disk = shared_caches().disk
    return disk.directory if disk is not None else None


def root_name(store: Store) -> str:
    """What tells two roots apart in keys; one with two spellings has its things twice."""
    return f"{store.root.options.get('aws_endpoint', '')}|{store.root.uri}"


_shared: dict[tuple[str | None, ...], Caches] = {}
_shared_lock = threading.Lock()


def shared_caches() -> Caches:
    """The caches of this process, one for each setting of the environment that was met."""
    setting = tuple(os.environ.get(name) for name in _SETTINGS)
    found = _shared.get(setting)
    if found is None:
        with _shared_lock:
            found = _shared.setdefault(setting, open_caches())
    return found


def _user_directory() -> Path | None:
    given = os.environ.get("OMNIGRAPH_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    outer = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # no home directory
        return (Path(outer) if outer else Path.home() / ".cache") / "omnigraph"
    return None


def _bytes(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default
