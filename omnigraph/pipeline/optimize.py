"""Upkeep of tables on executors: fragments put together, segments of indexes built.

Executors write files that no version names. The driver makes versions of them and publishes, as it
does for work of its own: a task that fails or is killed leaves nothing that anybody sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.storage.compact import run_task
from omnigraph.storage.index import Build, build
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .jobs import run_jobs
from .place import Place, place_of

LARGE = 1 << 30  # bytes to read from which on executors are worth their start
_PART = 1 << 22  # rows of a segment of an index


@dataclass(frozen=True, slots=True)
class SparkHands:
    """Hands of `omnigraph.storage.hands`, on a Spark session."""

    spark: Any
    name: str = "spark"
    part_rows: int | None = _PART

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that put fragments together."""
        place, keyed = _sent(store, jobs)
        return run_jobs(self.spark, partial(_rewrite, place), keyed)

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Any]:
        """Build segments of indexes."""
        place, keyed = _sent(store, jobs)
        return run_jobs(self.spark, partial(_index, place), keyed)


def _sent(store: Store, jobs: Sequence[tuple[Table, Any]]) -> tuple[Place, list[tuple[str, Any]]]:
    tables = {table.location: (table.location, table.version) for table, _ in jobs}
    return place_of(store, tables), [(table.location, one) for table, one in jobs]


def _rewrite(place: Place, job: tuple[str, str]) -> str:
    return run_task(place.store(), place.table(job[0]), job[1])


def _index(place: Place, job: tuple[str, Build]) -> Any:
    return build(place.store(), place.table(job[0]), job[1])
