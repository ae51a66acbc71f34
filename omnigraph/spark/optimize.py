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
from omnigraph.storage.index import SegmentBuild, build_segment
from omnigraph.storage.maintenance_executor import LocalMaintenanceExecutor as LocalExecutor
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .jobs import run_jobs
from .pinned_graph import PinnedGraph, pin_graph
from .session import parallelism

SPARK_MIN_BYTES = 1 << 30  # bytes to read from which executors are worth starting
_SEGMENT_ROWS = 1 << 22  # rows of an index segment
_GROUPS_PER_SLOT = 4  # groups of files per task that can run at once


@dataclass(frozen=True, slots=True)
class SparkMaintenanceExecutor:
    """`MaintenanceExecutor` of `omnigraph.storage`, on a Spark session."""

    spark: Any
    name: str = "spark"
    index_part_rows: int | None = _SEGMENT_ROWS

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that compact fragments."""
        pinned_graph, located_jobs = _locate_jobs(store, jobs)
        return run_jobs(self.spark, partial(_rewrite, pinned_graph), located_jobs)

    def build_segments(self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]) -> list[Any]:
        """Build index segments."""
        pinned_graph, located_jobs = _locate_jobs(store, jobs)
        return run_jobs(self.spark, partial(_index, pinned_graph), located_jobs)

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums, a few large groups of them per task."""
        groups = _group_by_size(expected_checksums, parallelism(self.spark))
        pinned_graph = pin_graph(store, {})
        results = run_jobs(self.spark, partial(_verify, pinned_graph), groups)
        return {name: reason for result in results for name, reason in result.items()}


def _group_by_size(files: FileChecksums, task_slots: int) -> list[dict[str, FileChecksum]]:
    """Files in groups of about the same size, the largest files first."""
    groups: list[dict[str, FileChecksum]] = [
        {} for _ in range(max(1, _GROUPS_PER_SLOT * task_slots))
    ]
    heap = [(0, number) for number in range(len(groups))]
    for name, checksum in sorted(files.items(), key=lambda item: -item[1].size):
        size, number = heappop(heap)
        groups[number][name] = checksum
        heappush(heap, (size + checksum.size, number))
    return [group for group in groups if group]


def _verify(pinned_graph: PinnedGraph, files: FileChecksums) -> dict[str, str]:
    """Job of an executor: verify one group of files."""
    return LocalExecutor().verify_files(pinned_graph.store(), files)


def _locate_jobs(
    store: Store, jobs: Sequence[tuple[Table, Any]]
) -> tuple[PinnedGraph, list[tuple[str, Any]]]:
    """Pin the tables of jobs, and replace each table by its location, which can be shipped."""
    pinned_tables = {table.location: (table.location, table.version) for table, _ in jobs}
    return pin_graph(store, pinned_tables), [(table.location, job) for table, job in jobs]


def _rewrite(pinned_graph: PinnedGraph, job: tuple[str, str]) -> str:
    """Job of an executor: compact fragments of a table."""
    return run_task(pinned_graph.store(), pinned_graph.table(job[0]), job[1])


def _index(pinned_graph: PinnedGraph, job: tuple[str, SegmentBuild]) -> Any:
    """Job of an executor: build an index segment of a table."""
    return build_segment(pinned_graph.store(), pinned_graph.table(job[0]), job[1])
