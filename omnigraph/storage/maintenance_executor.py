"""Where long maintenance work runs: in this process, or in others that open the same root.

Jobs and results are plain data. No version names the files that a job wrote: only the process that
submitted the job can make them part of a version.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from lance.dataset import Index

from omnigraph.errors import StorageError

from .checksums import FileChecksum, FileChecksums, find_mismatch
from .compact import run_task
from .index import SegmentBuild, build_segment
from .store import Store
from .table import Table

MaintenanceJob = TypeVar("MaintenanceJob")
MaintenanceResult = TypeVar("MaintenanceResult")
DEFAULT_CONCURRENT_TABLES = 8  # tables; Lance uses all cores for a single table
CONCURRENT_VERIFICATIONS = 4  # files: reading and checksums release the interpreter lock


class MaintenanceExecutor(Protocol):
    """Runs maintenance jobs. Results are in the order of jobs; one failed job fails the call."""

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def index_part_rows(self) -> int | None:
        """The number of rows from which on an index is built in parts; None for never."""

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""

    def build_segments(
        self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]
    ) -> list[Index | None]:
        """Build index segments; None where there is no data yet to build one from."""

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums; return faults by name."""


@dataclass(frozen=True, slots=True)
class LocalMaintenanceExecutor:
    """Runs jobs in this process: several tables at once, the jobs of each table in sequence."""

    concurrent_tables: int | None = None  # concurrently; None uses the environment
    name: str = "local"
    index_part_rows: int | None = None

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""
        return _run_jobs_by_table(
            jobs, lambda table, task: run_task(store, table, task), self.concurrent_tables
        )

    def build_segments(
        self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]
    ) -> list[Index | None]:
        """Build index segments."""
        return _run_jobs_by_table(
            jobs,
            lambda table, segment_build: build_segment(store, table, segment_build),
            self.concurrent_tables,
        )

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums, several at once."""
        with ThreadPoolExecutor(CONCURRENT_VERIFICATIONS, "verify") as pool:
            reasons = pool.map(
                partial(_find_file_fault, store), expected_checksums, expected_checksums.values()
            )
            return {
                file_name: reason
                for file_name, reason in zip(expected_checksums, reasons, strict=True)
                if reason
            }


def _find_file_fault(store: Store, file_name: str, expected: FileChecksum) -> str | None:
    """Return what is wrong with a file; a file that the disk cannot read counts as damaged."""
    try:
        return find_mismatch(store, file_name, expected)
    except StorageError as error:
        if error.kind == "transient":
            raise
        return f"it cannot be read ({error.reason or error.message})"


def maintenance_concurrency() -> int:
    """Return how many tables run at once: `OMNIGRAPH_MAINTENANCE_CONCURRENCY`, else 8."""
    setting = os.environ.get("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "").strip()
    table_count = int(setting) if setting.isdecimal() else 0
    return table_count or DEFAULT_CONCURRENT_TABLES


def _run_jobs_by_table(
    jobs: Sequence[tuple[Table, MaintenanceJob]],
    run_job: Callable[[Table, MaintenanceJob], MaintenanceResult],
    max_tables: int | None,
) -> list[MaintenanceResult]:
    """Run every job; results are in job order. Running jobs finish even if another one fails."""
    positions_by_table: dict[str, list[int]] = {}
    for position, (table, _) in enumerate(jobs):
        positions_by_table.setdefault(table.location, []).append(position)
    results_by_position: dict[int, MaintenanceResult] = {}

    def run_table_jobs(positions: list[int]) -> None:
        for position in positions:
            results_by_position[position] = run_job(*jobs[position])

    workers = min(max_tables or maintenance_concurrency(), len(positions_by_table))
    if workers < 2:  # no threads to wait for: an interrupt ends it at once
        for positions in positions_by_table.values():
            run_table_jobs(positions)
    else:
        with _cancelling_pool(workers) as pool:
            futures = [
                pool.submit(run_table_jobs, positions) for positions in positions_by_table.values()
            ]
            _wait_for_all(futures)
    return [results_by_position[position] for position in range(len(jobs))]


def _wait_for_all(futures: Sequence["Future[None]"]) -> None:
    for future in futures:
        future.result()


@contextmanager
def _cancelling_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a thread pool; after a failure, jobs that have not started are cancelled."""
    pool = ThreadPoolExecutor(workers, "tend")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
