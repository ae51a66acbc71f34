"""What one query may use: time, memory, and a place among the heavy ones.

Owns the limits, the meter of a running query and the process-wide gate. Operators ask between
chunks and before they make something large, so that a query that is too much ends in a typed error
and the handle stays usable.
"""

import os
import threading
from dataclasses import dataclass, field
from time import monotonic

from omnigraph.errors import ConfigError, QueryTimeout, ResourceLimitExceeded

_DEFAULT_MEMORY = 4 << 30
_HEAVY = 8 << 20  # bytes after which a query counts as heavy
_WAIT = 0.05  # seconds between two looks at the clock (and at Ctrl-C) while waiting

# Threads beyond the cores only push each other out of the caches.
_gate = threading.BoundedSemaphore(os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes that one query may use; `timeout` None is no limit."""

    timeout: float | None = None
    memory: int = _DEFAULT_MEMORY

    @classmethod
    def default(cls) -> "Limits":
        """From `OMNIGRAPH_QUERY_TIMEOUT` (seconds) and `OMNIGRAPH_QUERY_MEMORY` (bytes)."""
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
    """What one running query has used so far.

    Whoever takes a lock that others may wait for calls `enter` first: a thread that holds such a
    lock and waits for the gate would stop those that are inside.
    """

    limits: Limits = _DEFAULT
    started: float = field(default_factory=monotonic)
    used: int = 0
    peak: int = 0
    entered: bool = False

    def check(self) -> None:
        """Raise when the time is over."""
        limit = self.limits.timeout
        if limit is None:
            return
        spent = monotonic() - self.started
        if spent > limit:
            raise QueryTimeout(limit=round(limit * 1000), actual=round(spent * 1000))

    def charge(self, size: int) -> None:
        """Say that `size` bytes are about to be made; raise instead when they are too many."""
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
        """Say that bytes charged before are gone."""
        self.used = max(0, self.used - size)

    def enter(self) -> None:
        """Wait for a place among the heavy queries; the time spent here counts."""
        while not self.entered:
            self.entered = _gate.acquire(timeout=_WAIT)
            self.check()

    def leave(self) -> None:
        """Give the place back."""
        if self.entered:
            self.entered = False
            _gate.release()

    def __del__(self) -> None:
        # A query that was given up half-way must not keep others out for ever.
        self.leave()


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise ConfigError(f"{name} must be a positive number, not '{text}'")
    return found
