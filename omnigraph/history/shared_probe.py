"""Share one freshness probe among the reads that arrive while another probe is running.

Every read must see all commits that were acknowledged before the read began, so a read never uses a probe that was
already running when the read arrived. Instead, the read waits for the next probe, which starts when the running one
ends or after a few milliseconds. This probe serves all reads that have arrived by then. A read that arrives alone
probes immediately.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
_WINDOW_SECONDS = 0.005  # maximum time that a read waits for other reads before its probe starts


class _PendingProbe(Generic[Outcome]):
    """A probe that has not started yet, and the reads that wait for it."""

    def __init__(self) -> None:
        self.finished = threading.Event()
        self.outcomes: list[Outcome] = []  # empty if the probe failed


class SharedProbe(Generic[Outcome]):
    """Runs one probe for several callers. A probe starts only after its callers have requested it.

    All callers pass the same probe. The probe is not stored, because it usually refers to the owner of this object.

    >>> SharedProbe().run(lambda: 7)
    7
    """

    def __init__(self, window_seconds: float = _WINDOW_SECONDS) -> None:
        self._window_seconds = window_seconds
        self._condition = threading.Condition()
        self._running_count = 0
        self._pending: _PendingProbe[Outcome] | None = None

    def run(self, probe: Callable[[], Outcome]) -> Outcome:
        """Return the outcome of a probe that starts after this call, or raise the probe's error."""
        with self._condition:
            pending = self._pending
            if pending is None:
                leading = self._pending = _PendingProbe[Outcome]()
        if pending is None:
            return self._lead(leading, probe)
        pending.finished.wait()
        # After a failure, each caller probes for itself, so that no two threads raise the same exception object.
        return pending.outcomes[0] if pending.outcomes else probe()

    def _lead(self, pending: _PendingProbe[Outcome], probe: Callable[[], Outcome]) -> Outcome:
        try:
            with self._condition:
                self._condition.wait_for(lambda: self._running_count == 0, self._window_seconds)
                self._pending = None
                self._running_count += 1
            return self._run_pending(pending, probe)
        finally:
            pending.finished.set()

    def _run_pending(self, pending: _PendingProbe[Outcome], probe: Callable[[], Outcome]) -> Outcome:
        try:
            outcome = probe()
            pending.outcomes.append(outcome)
            return outcome
        finally:
            with self._condition:
                self._running_count -= 1
                self._condition.notify_all()
