"""Progress of a load or an export on Spark: the current step, and how much of it is done.

Owns the seconds of each step. Polls Spark for its tasks in a thread of its own, and only if a
callback is given; the work itself never waits for it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from omnigraph import ids

from .session import running_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY = 0.25  # seconds between two polls


@dataclass(frozen=True, slots=True)
class Step:
    """A running step: finished and known tasks, its seconds so far, about how many rows it has."""

    name: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    rows: int = 0

    @property
    def rate(self) -> float:
        """Estimated rows per second.

        >>> Step("stage", 1, 4, 2.0, 800).rate
        100.0
        """
        part = self.done / self.total if self.total else 0.0
        return self.rows * part / self.seconds if self.seconds else 0.0


Told = Callable[[Step], object]


def teller(progress: Any) -> Told | None:
    """Return the callback for steps: the caller's method `step`, or a call with two numbers."""
    if progress is None or hasattr(progress, "step"):
        return getattr(progress, "step", None)
    return lambda one: progress(one.done, one.total)


@dataclass(slots=True)
class Steps:
    """Tracks the steps of one operation, which run one after the other."""

    spark: "SparkSession"
    told: Told | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    name: str | None = None
    rows: int = 0
    began: float = 0.0

    def begin(self, name: str, rows: int = 0) -> None:
        """Begin the next step; `step_rows` is about how many rows it processes."""
        self.end()
        self.name, self.rows, self.began = name, rows, ids.monotonic()

    def end(self) -> None:
        """End the current step, if there is one."""
        if self.name is not None:
            spent = self.seconds.get(self.name, 0.0)
            self.seconds[self.name] = spent + ids.monotonic() - self.began
        self.name = None

    @contextmanager
    def told_of(self) -> Iterator[None]:
        """Report progress while the block runs."""
        if self.told is None:
            yield
            return
        over = Event()
        teller = Thread(target=self._tell, args=(over,), daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join(timeout=5)

    def _tell(self, over: Event) -> None:
        while not over.wait(_EVERY):
            name, began = self.name, self.began
            if name is None or self.told is None:
                continue
            done, total = running_tasks(self.spark)
            self.told(Step(name, done, total, ids.monotonic() - began, self.rows))
