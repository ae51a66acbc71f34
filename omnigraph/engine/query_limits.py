"""Query resource limits: time, memory, and admission control for heavy queries.

This module implements the limits, the usage meter for a running query, and a process-wide gate that limits the number
of concurrent heavy queries. Operators check the limits between chunks and before large allocations. A query that
exceeds a limit therefore fails with a typed error, and the graph handle stays usable.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from omnigraph.errors import Cancelled, ConfigError, QueryTimeout, ResourceLimitExceeded
from omnigraph.records.frozen import record
from omnigraph.values.cancellation import STOP_EVENT

from .environment import Variables

_LIMIT_VARIABLES = Variables("OMNIGRAPH_QUERY_TIMEOUT", "OMNIGRAPH_QUERY_MEMORY")
_DEFAULT_MEMORY_BYTES = 4 << 30
_HEAVY_BYTES = 8 << 20  # a query that uses more than 8 MiB counts as heavy
_GATE_POLL_SECONDS = 0.05  # seconds between checks for a timeout or Ctrl-C while a query waits

# With more threads than cores, threads would only evict each other's data from the processor caches.
_heavy_query_gate = threading.BoundedSemaphore(os.cpu_count() or 1)


@record
class QueryLimits:
    """The time limit in seconds and the memory limit in bytes for a query; a `timeout` of None means no time limit."""

    timeout: float | None = None
    memory: int = _DEFAULT_MEMORY_BYTES

    @classmethod
    def default(cls) -> "QueryLimits":
        """Return the limits from `OMNIGRAPH_QUERY_TIMEOUT` (seconds) and `OMNIGRAPH_QUERY_MEMORY` (bytes)."""
        if _LIMIT_VARIABLES.current() == (None, None):
            return _DEFAULT_LIMITS
        timeout_text = os.environ.get("OMNIGRAPH_QUERY_TIMEOUT")
        memory_text = os.environ.get("OMNIGRAPH_QUERY_MEMORY")
        return cls(
            _positive_number("OMNIGRAPH_QUERY_TIMEOUT", timeout_text) if timeout_text else None,
            int(_positive_number("OMNIGRAPH_QUERY_MEMORY", memory_text)) if memory_text else _DEFAULT_MEMORY_BYTES,
        )


_DEFAULT_LIMITS = QueryLimits()


@dataclass(slots=True, eq=False)
class QueryMeter:
    """The resources that a running query has used so far.

    `started` is the time at which the query started, plus the time in which it was suspended.

    Call `enter_gate` before taking a lock that other queries may wait for. A thread that waited for the gate while
    holding the lock would deadlock with the queries that have already been admitted.
    """

    limits: QueryLimits = _DEFAULT_LIMITS
    started: float = field(default_factory=monotonic)
    used_bytes: int = 0
    peak_bytes: int = 0
    in_gate: bool = False
    stop_event: threading.Event | None = field(default_factory=STOP_EVENT.get)

    def check_timeout(self) -> None:
        """Raise QueryTimeout if the time limit is exceeded, or Cancelled if the caller has stopped waiting."""
        if self.stop_event is not None and self.stop_event.is_set():
            raise Cancelled("the query was cancelled")
        timeout = self.limits.timeout
        if timeout is None:
            return
        elapsed = monotonic() - self.started
        if elapsed > timeout:
            raise QueryTimeout(limit=round(timeout * 1000), actual=round(elapsed * 1000))

    def restart_time(self) -> None:
        """Measure the time limit from now on."""
        self.started = monotonic()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Exclude the duration of the block from the time limit, because the query waits for its reader."""
        suspended_at = monotonic()
        try:
            yield
        finally:
            self.started += monotonic() - suspended_at

    def charge_bytes(self, byte_count: int) -> None:
        """Reserve bytes before they are allocated; raise an error if the memory limit is exceeded."""
        total_bytes = self.used_bytes + byte_count
        if total_bytes > self.limits.memory:
            raise ResourceLimitExceeded(
                resource="query_memory_bytes",
                limit=self.limits.memory,
                actual=total_bytes,
                effect="none",
                hint="narrow the query, add a limit, or increase OMNIGRAPH_QUERY_MEMORY",
            )
        self.check_timeout()
        self.used_bytes = total_bytes
        self.peak_bytes = max(self.peak_bytes, total_bytes)
        if total_bytes > _HEAVY_BYTES:
            self.enter_gate()

    def release_bytes(self, byte_count: int) -> None:
        """Release bytes that were reserved and have since been freed."""
        self.used_bytes = max(0, self.used_bytes - byte_count)

    def enter_gate(self) -> None:
        """Wait until this query is admitted as a heavy query. The time spent waiting counts toward the timeout."""
        while not self.in_gate:
            self.in_gate = _heavy_query_gate.acquire(timeout=_GATE_POLL_SECONDS)
            self.check_timeout()

    def leave_gate(self) -> None:
        """Leave the gate if this query has entered it."""
        if self.in_gate:
            self.in_gate = False
            _heavy_query_gate.release()

    def __del__(self) -> None:
        # An abandoned query must not block the gate forever.
        self.leave_gate()


def _positive_number(variable_name: str, variable_text: str) -> float:
    try:
        number = float(variable_text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise ConfigError(f"{variable_name} must be a positive number, not '{variable_text}'")
    return number
