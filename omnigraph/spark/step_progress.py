"""Report the progress of a load or export on Spark: the current step, and how much of it is complete.

This module measures the duration of each step. If a callback is given, a separate thread polls the status of the Spark
tasks. The work itself does not wait for this thread.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from omnigraph.values import clock_and_ids

from .session import running_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.25  # seconds between two polls


@dataclass(frozen=True, slots=True)
class StepProgress:
    """A running step, with its finished and total task counts, elapsed seconds, and estimated row count."""

    name: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    rows: int = 0

    @property
    def rate(self) -> float:
        """The estimated number of rows per second.

        >>> StepProgress("stage", 1, 4, 2.0, 800).rate
        100.0
        """
        finished_share = self.done / self.total if self.total else 0.0
        return self.rows * finished_share / self.seconds if self.seconds else 0.0


StepProgressCallback = Callable[[StepProgress], object]


def progress_callback(progress: Any) -> StepProgressCallback | None:
    """Return the `step` method of `progress`, or a function that calls `progress` with two numbers."""
    if progress is None or hasattr(progress, "step"):
        return getattr(progress, "step", None)
    return lambda step: progress(step.done, step.total)


@dataclass(slots=True)
class StepTracker:
    """Tracks the steps in one operation, which run one after another."""

    spark: "SparkSession"
    on_progress: StepProgressCallback | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    step_name: str | None = None
    step_rows: int = 0
    started_at: float = 0.0

    def begin(self, step_name: str, step_rows: int = 0) -> None:
        """Begin the next step; `step_rows` is the approximate number of rows to process."""
        self.end()
        self.step_name, self.step_rows, self.started_at = step_name, step_rows, clock_and_ids.monotonic()

    def end(self) -> None:
        """End the current step, if any."""
        if self.step_name is not None:
            previous_seconds = self.seconds.get(self.step_name, 0.0)
            self.seconds[self.step_name] = previous_seconds + clock_and_ids.monotonic() - self.started_at
        self.step_name = None

    @contextmanager
    def report_progress(self) -> Iterator[None]:
        """Report progress while the block runs."""
        if self.on_progress is None:
            yield
            return
        finished = Event()
        poller = Thread(target=self._poll_progress, args=(finished,), daemon=True)
        poller.start()
        try:
            yield
        finally:
            finished.set()
            poller.join(timeout=5)

    def _poll_progress(self, finished: Event) -> None:
        while not finished.wait(_POLL_SECONDS):
            step_name, started_at = self.step_name, self.started_at
            if step_name is None or self.on_progress is None:
                continue
            done_tasks, all_tasks = running_tasks(self.spark)
            self.on_progress(
                StepProgress(step_name, done_tasks, all_tasks, clock_and_ids.monotonic() - started_at, self.step_rows)
            )
