"""Resource limits of one query: time, memory, and admission of heavy queries.

Owns the limits, the meter of a running query and the process-wide gate. Operators check between
chunks and before large allocations, so an excessive query ends in a typed error and the handle
stays usable.
"""

import os
import threading
from dataclasses import dataclass, field
from time import monotonic

from omnigraph.errors import ConfigError, QueryTimeout, ResourceLimitExceeded

_DEFAULT_MEMORY = 4 << 30
_HEAVY = 8 << 20  # bytes after which a query counts as heavy
_WAIT = 0.05  # seconds between checks of the timeout (and of Ctrl-C) while waiting

# More threads than cores only evict each other from the processor caches.
_gate = threading.BoundedSemaphore(os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes that one query may use; a `timeout` of None means no limit."""

    timeout: float | None = None
    memory: int = _DEFAULT_MEMORY

    @classmethod
    def default(cls) -> "Limits":
        """Read `OMNIGRAPH_QUERY_TIMEOUT` (seconds) and `OMNIGRAPH_QUERY_MEMORY` (bytes)."""
        timeout = os.environ.get("OMNIGRAPH_QUERY_TIMEOUT")
        memory = os.environ.get("OMNIGRAPH_QUERY_MEMORY")
        if not timeout and not memory:
            return _DEFAULT
        return cls(
            _number("OMNIGRAPH_QUERY_TIMEOUT", timeout) if timeout else None,
            int(_number("OMNIGRAPH_QUERY_MEMORY", memory)) if memory else _DEFAULT_MEMORY,
        )


_DEFAULT = Limits()


@dataclass(slots=True, eq=False)
class Meter:
    """Resources used so far by a running query.

    Call `enter_gate` before taking a lock that other queries may wait for. Otherwise a thread that
    holds the lock while waiting for the gate would block those inside the gate: a deadlock.
    """

    limits: Limits = _DEFAULT
    started: float = field(default_factory=monotonic)
    used: int = 0
    peak: int = 0
    entered: bool = False

    def check(self) -> None:
        """Raise QueryTimeout if the time limit is exceeded."""
        limit = self.limits.timeout
        if limit is None:
            return
        spent = monotonic() - self.started
        if spent > limit:
            raise QueryTimeout(limit=round(limit * 1000), actual=round(spent * 1000))

    def charge(self, size: int) -> None:
        """Reserve bytes before they are allocated; raise if the memory limit is exceeded."""
        wanted = self.used + size
        if wanted > self.limits.memory:
            raise ResourceLimitExceeded(
                resource="query_memory_bytes",
                limit=self.limits.memory,
                actual=wanted,
                effect="none",
                hint="narrow the query, add a limit, or raise OMNIGRAPH_QUERY_MEMORY",
            )
        self.check()
        self.used = wanted
        self.peak = max(self.peak, wanted)
        if wanted > _HEAVY:
            self.enter()

    def release(self, size: int) -> None:
        """Give back bytes that were charged and are now freed."""
        self.used = max(0, self.used - size)

    def enter(self) -> None:
        """Wait for admission as a heavy query; the waiting time counts toward the timeout."""
        while not self.entered:
            self.entered = _gate.acquire(timeout=_WAIT)
            self.check()

    def leave(self) -> None:
        """Leave the gate, if entered."""
        if self.entered:
            self.entered = False
            _gate.release()

    def __del__(self) -> None:
        # An abandoned query must not occupy the gate forever.
        self.leave()


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise ConfigError(f"{name} must be a positive number, not '{text}'")
    return found
