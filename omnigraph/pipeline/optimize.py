"""Table maintenance on executors: compact fragments, build index segments, verify files.

Executors write files that no version names. The driver turns them into versions and publishes, as
for local work: a task that fails or is killed leaves nothing visible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any

from omnigraph.storage.checksums import FileChecksum, FileChecksums
from omnigraph.storage.compact import run_task
from omnigraph.storage.hands import Here as LocalExecutor
from omnigraph.storage.index import Build, build
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .jobs import run_jobs
from .place import Place, place_of
from .session import parallelism

LARGE = 1 << 30  # bytes to read from which executors are worth starting
_PART = 1 << 22  # rows of an index segment
_GROUPS = 4  # groups of files per task that can run at once


@dataclass(frozen=True, slots=True)
class SparkHands:
    """`MaintenanceExecutor` of `omnigraph.storage`, on a Spark session."""

    spark: Any
    name: str = "spark"
    part_rows: int | None = _PART

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that compact fragments."""
        place, keyed = _sent(store, jobs)
        return run_jobs(self.spark, partial(_rewrite, place), keyed)

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Any]:
        """Build index segments."""
        place, keyed = _sent(store, jobs)
        return run_jobs(self.spark, partial(_index, place), keyed)

    def verify(self, store: Store, files: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums, a few large groups of them per task."""
        groups = _group_by_size(files, parallelism(self.spark))
        place = place_of(store, {})
        results = run_jobs(self.spark, partial(_verify, place), groups)
        return {name: reason for result in results for name, reason in result.items()}


def _group_by_size(files: FileChecksums, tasks: int) -> list[dict[str, FileChecksum]]:
    """Files in groups of about the same size, the largest files first."""
    groups: list[dict[str, FileChecksum]] = [{} for _ in range(max(1, _GROUPS * tasks))]
    heap = [(0, number) for number in range(len(groups))]
    for name, checksum in sorted(files.items(), key=lambda item: -item[1].size):
        size, number = heappop(heap)
        groups[number][name] = checksum
        heappush(heap, (size + checksum.size, number))
    return [group for group in groups if group]


def _verify(place: Place, files: FileChecksums) -> dict[str, str]:
    """Job of an executor: verify one group of files."""
    return LocalExecutor().verify(place.store(), files)


def _sent(store: Store, jobs: Sequence[tuple[Table, Any]]) -> tuple[Place, list[tuple[str, Any]]]:
    """Pin the tables of jobs, and replace each table by its location, which can be shipped."""
    tables = {table.location: (table.location, table.version) for table, _ in jobs}
    return place_of(store, tables), [(table.location, one) for table, one in jobs]


def _rewrite(place: Place, job: tuple[str, str]) -> str:
    """Job of an executor: compact fragments of a table."""
    return run_task(place.store(), place.table(job[0]), job[1])


def _index(place: Place, job: tuple[str, Build]) -> Any:
    """Job of an executor: build an index segment of a table."""
    return build(place.store(), place.table(job[0]), job[1])
