"""Limit how many writes by one actor, and how many exports of one graph, run concurrently across all workers."""

import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from omnigraph.errors import ResourceLimitExceeded, TooManyRequests
from omnigraph.server.settings import RequestLimits
from omnigraph.values import clock_and_ids

from .shared_usage import SharedUsage

_ANONYMOUS_NAME = "anonymous"
_REMEMBERED_WRITES = 64
_MAX_RETRY_SECONDS = 60
SMALL_REQUEST_BYTES = 256  # the size that is counted for a request without a body


class Admission:
    """Counts running requests and enforces the configured limits."""

    def __init__(self, usage: SharedUsage, limits: RequestLimits) -> None:
        self._usage, self._limits = usage, limits
        self._write_seconds: deque[float] = deque([0.1], _REMEMBERED_WRITES)

    @contextmanager
    def admit_write(self, actor: str | None, size: int) -> Iterator[None]:
        """Count an actor's write while it runs; raise `TooManyRequests` if the actor has too many running writes."""
        limits, name = self._limits, f"actor:{actor or _ANONYMOUS_NAME}"
        excess = self._usage.acquire(name, max_requests=limits.actor_requests, size=size, max_bytes=limits.actor_bytes)
        if excess:
            raise TooManyRequests(retry_after=self._retry_seconds(excess))
        started = clock_and_ids.monotonic()
        try:
            yield
        finally:
            self._usage.release(name, size)
            self._write_seconds.append(clock_and_ids.monotonic() - started)

    def open_export(self, graph_id: str) -> None:
        """Reserve a slot for an export of a graph; raise `ResourceLimitExceeded` if all slots are taken."""
        slots = self._limits.export_slots
        if self._usage.acquire(f"export:{graph_id}", max_requests=slots):
            raise ResourceLimitExceeded(
                resource="stream_export_slots",
                limit=slots,
                actual=slots + 1,
                retry_after=1,
                hint="wait for another export of this graph to finish",
            )

    def close_export(self, graph_id: str) -> None:
        """Release the slot of an export."""
        self._usage.release(f"export:{graph_id}")

    def _retry_seconds(self, excess: int) -> int:
        """Estimate the number of seconds until the actor can write again, from the durations of recent writes."""
        seconds = median(self._write_seconds) * excess / max(self._limits.actor_requests, 1)
        return min(max(math.ceil(seconds), 1), _MAX_RETRY_SECONDS)
