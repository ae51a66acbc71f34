"""The phases of a request: when each began and ended.

The phases become the `Server-Timing` header and, if tracing is enabled, spans. Phase names are constants in the
code, so they never contain data from a request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

ENGINE_PHASE = "engine"
# The names of engine phases in the header and in spans.
_ENGINE_PHASES = {"state": "probe", "compile": "plan", "run": "execute", "write": "execute"}


@record
class PhaseInterval:
    """A phase with its start and its end, in seconds on the monotonic clock."""

    phase: str
    started: float
    ended: float


@dataclass(slots=True)
class Timing:
    """The phases of one request, in the order in which they ended."""

    intervals: list[PhaseInterval] = field(default_factory=list)

    def add(self, phase: str, started: float, ended: float) -> None:
        """Add a phase that has ended."""
        self.intervals.append(PhaseInterval(phase, started, ended))

    def add_engine_phase(self, phase: str, seconds: float) -> None:
        """Add a phase of an engine operation that has just ended."""
        ended = clock_and_ids.monotonic()
        self.add(_ENGINE_PHASES.get(phase, phase), ended - seconds, ended)

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Record a `with` block as a phase."""
        started = clock_and_ids.monotonic()
        try:
            yield
        finally:
            self.add(phase, started, clock_and_ids.monotonic())

    def to_header(self) -> str:
        """Return the value of the `Server-Timing` header, in milliseconds.

        >>> timing = Timing()
        >>> timing.add("plan", 1.0, 1.0123)
        >>> timing.add("plan", 2.0, 2.0002)
        >>> timing.to_header()
        'plan;dur=12.5'
        """
        totals: dict[str, float] = {}
        for interval in self.intervals:
            totals[interval.phase] = totals.get(interval.phase, 0.0) + interval.ended - interval.started
        return ", ".join(f"{phase};dur={seconds * 1000:.1f}" for phase, seconds in totals.items())
