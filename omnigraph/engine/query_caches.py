"""Caches shared by all queries in a process: neighbor lists and columns in memory, and neighbor lists on disk.

This module manages cache budgets and eviction. Keys identify exact table versions, so entries are never stale. A
missing, damaged or unwritable entry may slow down a query but must never change its result.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from omnigraph.storage.store import Store

from .adjacency.array_files import ArrayFileCache
from .environment import Variables

if TYPE_CHECKING:
    from .execution_context import ExecutionContext

T = TypeVar("T")
_CACHE_VARIABLES = Variables("OMNIGRAPH_CACHE_DIR", "OMNIGRAPH_CACHE_BYTES", "OMNIGRAPH_CACHE_MEMORY", "XDG_CACHE_HOME")
_DEFAULT_MEMORY_BYTES = 1 << 30
_DEFAULT_DISK_BYTES = 16 << 30
_MAX_MISS_COSTS = 4_000  # maximum number of keys; without a limit, every new table version would add keys
VERSIONS_PER_FAMILY = 8  # enough for programs that alternate between several states


@dataclass(slots=True, eq=False)
class MemoryCache:
    """A least-recently-used cache with a budget in bytes.

    Entries that differ only in their table version form a family, and only the `VERSIONS_PER_FAMILY` most recently used
    entries in a family stay in memory. Without this limit, a process that follows a changing graph would fill the whole
    budget with versions that it never reads again.

    >>> memory = MemoryCache(100)
    >>> memory.put("a", 1, 60), memory.put("b", 2, 60), memory.get("a"), memory.get("b")
    (None, None, None, 2)
    """

    budget: int
    _entries: OrderedDict[Hashable, tuple[Any, int]] = field(default_factory=OrderedDict)
    _family_by_key: dict[Hashable, Hashable] = field(default_factory=dict)
    _keys_by_family: dict[Hashable, set[Hashable]] = field(default_factory=dict)
    _used_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _build_locks: dict[Hashable, threading.Lock] = field(default_factory=dict)

    def get(self, cache_key: Hashable) -> Any | None:
        """Return the cached value, or None if there is none."""
        with self._lock:
            entry = self._entries.get(cache_key)
            if entry is None:
                return None
            self._entries.move_to_end(cache_key)
            return entry[0]

    def get_all(self, cache_keys: Iterable[Hashable]) -> list[Any | None]:
        """Return the cached value for each key, or None for a key without one. The lock is taken only once."""
        entries = self._entries
        cached_values: list[Any | None] = []
        with self._lock:
            for cache_key in cache_keys:
                entry = entries.get(cache_key)
                if entry is None:
                    cached_values.append(None)
                    continue
                entries.move_to_end(cache_key)
                cached_values.append(entry[0])
        return cached_values

    def put(self, cache_key: Hashable, value: Any, byte_count: int, family: Hashable = None) -> None:
        """Cache a value unless it is larger than the whole budget."""
        if byte_count > self.budget:
            return
        with self._lock:
            self._remove(cache_key)
            self._used_bytes += byte_count
            self._entries[cache_key] = (value, byte_count)
            if family is not None:
                self._add_to_family(cache_key, family)
            while self._used_bytes > self.budget:
                self._remove(next(iter(self._entries)))

    def _add_to_family(self, cache_key: Hashable, family: Hashable) -> None:
        family_keys = self._keys_by_family.setdefault(family, set())
        family_keys.add(cache_key)
        self._family_by_key[cache_key] = family
        if len(family_keys) > VERSIONS_PER_FAMILY:
            self._remove(next(entry_key for entry_key in self._entries if entry_key in family_keys))

    def _remove(self, cache_key: Hashable) -> None:
        self._used_bytes -= self._entries.pop(cache_key, (None, 0))[1]
        family = self._family_by_key.pop(cache_key, None)
        if family is not None:
            self._keys_by_family[family].discard(cache_key)
            if not self._keys_by_family[family]:
                del self._keys_by_family[family]

    def get_or_build(
        self,
        cache_key: Hashable,
        build: Callable[[], T | None],
        measure_bytes: Callable[[T], int],
        family: Hashable = None,
    ) -> T | None:
        """Return the cached value, building it if needed. Concurrent callers share a single build.

        If `build` returns None, this method caches nothing and returns None.
        """
        cached_value: T | None = self.get(cache_key)
        if cached_value is not None:
            return cached_value
        with self.building(cache_key):
            cached_value = self.get(cache_key)
            if cached_value is None:
                cached_value = build()
                if cached_value is not None:
                    self.put(cache_key, cached_value, measure_bytes(cached_value), family)
        return cached_value

    @contextmanager
    def building(self, cache_key: Hashable) -> Iterator[None]:
        """Wait until no other thread is building a value for the same key, then run the block."""
        with self._lock:
            build_lock = self._build_locks.setdefault(cache_key, threading.Lock())
        try:
            with build_lock:
                yield
        finally:
            with self._lock:
                self._build_locks.pop(cache_key, None)

    def recent_keys(self) -> list[Hashable]:
        """Return all keys, most recently used first."""
        with self._lock:
            return list(reversed(self._entries))

    def drop(self, cache_key: Hashable) -> None:
        """Remove the cached value for a key."""
        with self._lock:
            self._remove(cache_key)

    @property
    def used_bytes(self) -> int:
        """The number of bytes in use."""
        return self._used_bytes

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self._family_by_key.clear()
            self._keys_by_family.clear()
            self._used_bytes = 0


@dataclass(slots=True, eq=False)
class QueryCaches:
    """Caches shared between queries: neighbor lists and columns in memory, and neighbor lists on disk."""

    memory: MemoryCache = field(
        default_factory=lambda: MemoryCache(_bytes_from_environment("OMNIGRAPH_CACHE_MEMORY", _DEFAULT_MEMORY_BYTES))
    )
    disk: ArrayFileCache | None = None
    # The accumulated cost of cache misses per key. An entry is built once this cost exceeds the cost of building it.
    miss_costs: MemoryCache = field(default_factory=lambda: MemoryCache(_MAX_MISS_COSTS))

    def add_miss_cost(self, cache_key: Hashable, cost: float, family: Hashable = None) -> float:
        """Add to the total cost of cache misses for a key, and return the new total."""
        total_cost: float = (self.miss_costs.get(cache_key) or 0.0) + cost
        self.miss_costs.put(cache_key, total_cost, 1, family)
        return total_cost


def open_caches(directory: str | Path | None = None) -> QueryCaches:
    """Open the caches in `directory`, which defaults to `OMNIGRAPH_CACHE_DIR` and then to the user's cache folder."""
    cache_path = Path(directory) if directory is not None else _configured_directory()
    budget = _bytes_from_environment("OMNIGRAPH_CACHE_BYTES", _DEFAULT_DISK_BYTES)
    return QueryCaches(disk=ArrayFileCache(cache_path, budget) if cache_path is not None and budget else None)


def cache_directory() -> Path | None:
    """Return this process's disk cache directory, or None if there is no disk cache."""
    disk = shared_caches().disk
    return disk.directory if disk is not None else None


def root_identity(store: Store) -> str:
    """Return the string that identifies a root in cache keys.

    If the same root is opened under different spellings of its location, each spelling has its own entries.
    """
    return store.root.spelling


_process_caches: dict[tuple[object, ...], QueryCaches] = {}
_process_caches_lock = threading.Lock()


def shared_caches() -> QueryCaches:
    """Return the process-wide caches. Each distinct combination of environment settings has its own caches."""
    environment = _CACHE_VARIABLES.current()
    process_caches = _process_caches.get(environment)
    if process_caches is None:
        with _process_caches_lock:
            process_caches = _process_caches.setdefault(environment, open_caches())
    return process_caches


def caches_of(context: "ExecutionContext") -> QueryCaches:
    """Return the execution's own caches if it has any, or the process-wide caches otherwise."""
    return context.caches if isinstance(context.caches, QueryCaches) else shared_caches()


def _configured_directory() -> Path | None:
    configured_path = os.environ.get("OMNIGRAPH_CACHE_DIR")
    if configured_path is not None:
        return Path(configured_path) if configured_path else None
    xdg_cache_home = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # the user has no home directory
        return (Path(xdg_cache_home) if xdg_cache_home else Path.home() / ".cache") / "omnigraph"
    return None


def _bytes_from_environment(variable_name: str, default: int) -> int:
    variable_text = os.environ.get(variable_name, "")
    return int(variable_text) if variable_text.isdecimal() else default
