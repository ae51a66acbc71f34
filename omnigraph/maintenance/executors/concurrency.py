"""Run maintenance jobs for several tables in parallel threads."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from omnigraph.storage.concurrency import maintenance_concurrency
from omnigraph.storage.table import Table

MaintenanceJob = TypeVar("MaintenanceJob")
MaintenanceResult = TypeVar("MaintenanceResult")


def run_jobs_by_table(
    jobs: Sequence[tuple[Table, MaintenanceJob]],
    run_job: Callable[[Table, MaintenanceJob], MaintenanceResult],
    max_tables: int | None,
) -> list[MaintenanceResult]:
    """Run every job and return the results in job order. Running jobs finish even if another job fails."""
    positions_by_table: dict[str, list[int]] = {}
    for position, (table, _) in enumerate(jobs):
        positions_by_table.setdefault(table.location, []).append(position)
    results_by_position: dict[int, MaintenanceResult] = {}

    def run_table_jobs(positions: list[int]) -> None:
        for position in positions:
            results_by_position[position] = run_job(*jobs[position])

    workers = min(max_tables or maintenance_concurrency(), len(positions_by_table))
    if workers < 2:  # without threads to wait for, an interrupt takes effect immediately
        for positions in positions_by_table.values():
            run_table_jobs(positions)
    else:
        with _cancelling_pool(workers) as pool:
            futures = [pool.submit(run_table_jobs, positions) for positions in positions_by_table.values()]
            _wait_for_all(futures)
    return [results_by_position[position] for position in range(len(jobs))]


def _wait_for_all(futures: Sequence["Future[None]"]) -> None:
    for future in futures:
        future.result()


@contextmanager
def _cancelling_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a thread pool. After a failure, cancel the jobs that have not started."""
    pool = ThreadPoolExecutor(workers, "maintenance")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
