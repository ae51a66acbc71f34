"""How far a load or an export on Spark is: which step it takes, and how much of it is done.

Owns the seconds of each step. Asks Spark for its tasks in a thread of its own, and only if somebody
wants to know; nothing waits for it.
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

_EVERY = 0.25  # seconds between two questions


@dataclass(frozen=True, slots=True)
class Step:
    """A step under way: tasks done and known of, its seconds so far, about how many rows it has."""

    name: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    rows: int = 0

    @property
    def rate(self) -> float:
        """About how many rows per second.

        >>> Step("stage", 1, 4, 2.0, 800).rate
        100.0
        """
        part = self.done / self.total if self.total else 0.0
        return self.rows * part / self.seconds if self.seconds else 0.0


Told = Callable[[Step], object]


def teller(progress: Any) -> Told | None:
    """Who is told of steps: the method `step` of what a caller gave, or a call with two numbers."""
    if progress is None or hasattr(progress, "step"):
        return getattr(progress, "step", None)
    return lambda one: progress(one.done, one.total)


@dataclass(slots=True)
class Steps:
    """The steps of one piece of work, one after the other."""

    spark: "SparkSession"
    told: Told | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    name: str | None = None
    rows: int = 0
    began: float = 0.0

    def begin(self, name: str, rows: int = 0) -> None:
        """The next step; `rows` is about how many it goes through."""
        self.end()
        self.name, self.rows, self.began = name, rows, ids.monotonic()

    def end(self) -> None:
        """No step is under way."""
        if self.name is not None:
            spent = self.seconds.get(self.name, 0.0)
            self.seconds[self.name] = spent + ids.monotonic() - self.began
        self.name = None

    @contextmanager
    def told_of(self) -> Iterator[None]:
        """Tell of the steps as long as this lasts."""
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
