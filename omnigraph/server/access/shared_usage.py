"""Counts of running requests, shared by all workers of a server.

The counts are in an anonymous file that every worker maps into memory. Each worker has a row of counters and changes it
under a lock that the kernel releases when the process dies. The supervisor clears the row of a dead worker, so no count
leaks. This module makes no decisions: `admission.py` defines the limits.
"""

import fcntl
import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

_KEYS_PER_WORKER = 1024
_COUNTER = [("key", "<u8"), ("requests", "<i8"), ("bytes", "<i8")]
ROW_BYTES = _KEYS_PER_WORKER * 24  # three 8-byte counters per key


def create_usage_file(worker_count: int) -> int:
    """Return the file descriptor of an empty table for this number of workers."""
    descriptor = os.memfd_create("omnigraph-usage")
    os.ftruncate(descriptor, worker_count * ROW_BYTES)
    return descriptor


def clear_worker_row(descriptor: int, worker_index: int) -> None:
    """Set the counters of a dead worker to zero."""
    with _hold_lock(descriptor):
        os.pwrite(descriptor, bytes(ROW_BYTES), worker_index * ROW_BYTES)


@contextmanager
def _hold_lock(descriptor: int) -> Iterator[None]:
    fcntl.lockf(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.lockf(descriptor, fcntl.LOCK_UN)


class SharedUsage:
    """One worker's view of the counters of all workers."""

    def __init__(self, descriptor: int, worker_index: int) -> None:
        self._descriptor = descriptor
        import numpy as np  # imported here so that the supervisor, which only creates the file, does not load NumPy

        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        rows = np.frombuffer(self._memory, np.dtype(_COUNTER)).reshape(-1, _KEYS_PER_WORKER)
        self._all_rows, self._own_row = rows, rows[worker_index]

    def acquire(self, name: str, *, max_requests: int, size: int = 0, max_bytes: int = 0) -> int:
        """Count a running request under a name, unless the request would exceed a limit.

        Return 0 if the request was counted. Otherwise, return how many requests must finish first, or 1 if unknown.

        >>> usage = SharedUsage(create_usage_file(1), 0)
        >>> usage.acquire("ann", max_requests=1), usage.acquire("ann", max_requests=1)
        (0, 1)
        """
        key = _key_of(name)
        with _hold_lock(self._descriptor):
            counters = self._all_rows[self._all_rows["key"] == key]
            excess_requests = int(counters["requests"].sum()) + 1 - max_requests if max_requests else 0
            excess_bytes = int(counters["bytes"].sum()) + size - max_bytes if max_bytes else 0
            if excess_requests > 0 or excess_bytes > 0:
                return max(excess_requests, 1)
            return 0 if self._change_counter(key, 1, size) else 1

    def release(self, name: str, size: int = 0) -> None:
        """Stop counting a request that has finished."""
        with _hold_lock(self._descriptor):
            self._change_counter(_key_of(name), -1, -size)

    def _change_counter(self, key: int, requests: int, size: int) -> bool:
        """Change a key's counters in this worker's row; return False if the row is full."""
        (positions,) = (self._own_row["key"] == key).nonzero()
        if not len(positions):
            (positions,) = (self._own_row["requests"] == 0).nonzero()
            if not len(positions):
                return False
            self._own_row[positions[0]] = (key, 0, 0)
        counter = self._own_row[positions[0] : positions[0] + 1]
        counter["requests"] += requests
        counter["bytes"] += size
        if counter["requests"][0] <= 0:
            self._own_row[positions[0]] = (0, 0, 0)
        return True


def _key_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()) | 1
