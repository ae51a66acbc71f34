"""The phases of a request: when each began and ended.

The phases become the `Server-Timing` header and, if tracing is enabled, spans. Phase names are constants in the
code, so they never contain data from a request.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from omnigraph.values import clock_and_ids

ENGINE_PHASE = "engine"
# The names of engine phases in the header and in spans.
_ENGINE_PHASES = {"state": "probe", "compile": "plan", "run": "execute", "write": "execute"}


class PhaseInterval(NamedTuple):
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

    def measure(self, phase: str) -> "MeasuredPhase":
        """Record a `with` block as a phase."""
        return MeasuredPhase(self, phase)

    def to_header(self) -> str:
        """Return the value of the `Server-Timing` header, with durations in milliseconds.

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


class MeasuredPhase:
    """A `with` block that is recorded as a phase."""

    __slots__ = ("_phase", "_started", "_timing")

    def __init__(self, timing: Timing, phase: str) -> None:
        self._timing, self._phase = timing, phase

    def __enter__(self) -> None:
        self._started = clock_and_ids.monotonic()

    def __exit__(self, *_: object) -> None:
        self._timing.add(self._phase, self._started, clock_and_ids.monotonic())
