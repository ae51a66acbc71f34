"""Caches shared by the queries of one process: parsed tables in memory, neighbour lists on disk.

Owns budgets and eviction. Keys name exact table versions, so entries are never stale. A missing,
damaged or unwritable entry costs time but must never change a result.
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
    """Values by key within a budget of bytes; the least recently used are evicted first.

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
        """Return the cached value, or None."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Cache a value; a value larger than the whole budget is not stored."""
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
        """Return the value, building it if needed; concurrent callers wait for a single build.

        If `build` returns None, nothing is cached and None is returned.
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
        """Return all keys, most recently used first."""
        with self._lock:
            return list(reversed(self._held))

    def drop(self, key: Hashable) -> None:
        """Remove one value."""
        with self._lock:
            self._used -= self._held.pop(key, (None, 0))[1]

    @property
    def used(self) -> int:
        """Bytes in use."""
        return self._used

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._held.clear()
            self._used = 0


@dataclass(slots=True, eq=False)
class Caches:
    """Caches shared between queries: lists and columns in memory, lists on disk."""

    memory: Memory = field(
        default_factory=lambda: Memory(_bytes("OMNIGRAPH_CACHE_MEMORY", _MEMORY))
    )
    disk: Disk | None = None
    # Accumulated cost of misses per key: once it exceeds the cost of building, the entry is built.
    spent: Memory = field(default_factory=lambda: Memory(10_000))

    def spend(self, key: Hashable, amount: float) -> float:
        """Add to the miss cost of a key; return the sum so far."""
        total: float = (self.spent.get(key) or 0.0) + amount
        self.spent.put(key, total, 1)
        return total


def open_caches(directory: str | Path | None = None) -> Caches:
    """Open caches in `directory`, else `OMNIGRAPH_CACHE_DIR`, else the user's cache folder."""
    place = Path(directory) if directory is not None else _user_directory()
    budget = _bytes("OMNIGRAPH_CACHE_BYTES", _DISK)
    return Caches(disk=Disk(place, budget) if place is not None and budget else None)


def cache_directory() -> Path | None:
    """Return the disk cache directory of this process; None without a disk cache."""
    disk = shared_caches().disk
    return disk.directory if disk is not None else None


def root_name(store: Store) -> str:
    """Return what distinguishes roots in cache keys; two spellings of a root are cached twice."""
    return f"{store.root.options.get('aws_endpoint', '')}|{store.root.uri}"


_shared: dict[tuple[str | None, ...], Caches] = {}
_shared_lock = threading.Lock()


def shared_caches() -> Caches:
    """Return the caches of this process, one set per distinct environment configuration."""
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
    with suppress(RuntimeError):  # the user has no home directory
        return (Path(outer) if outer else Path.home() / ".cache") / "omnigraph"
    return None


def _bytes(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default
