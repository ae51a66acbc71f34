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
from .index import Build, build
from .store import Store
from .table import Table

Job = TypeVar("Job")
Done = TypeVar("Done")
AT_ONCE = 8  # tables; Lance uses all cores for a single table
VERIFIED_AT_ONCE = 4  # files: reading and checksums release the interpreter lock


class Hands(Protocol):
    """Runs maintenance jobs. Results are in the order of jobs; one failed job fails the call."""

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def part_rows(self) -> int | None:
        """The number of rows from which on an index is built in parts; None for never."""

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Index | None]:
        """Build index segments; None where there is no data yet to build one from."""

    def verify(self, store: Store, files: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums; return faults by name."""


@dataclass(frozen=True, slots=True)
class Here:
    """Runs jobs in this process: several tables at once, the jobs of each table in sequence."""

    tables: int | None = None  # concurrently; None uses the environment
    name: str = "local"
    part_rows: int | None = None

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""
        return _by_table(jobs, lambda table, task: run_task(store, table, task), self.tables)

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Index | None]:
        """Build index segments."""
        return _by_table(jobs, lambda table, one: build(store, table, one), self.tables)

    def verify(self, store: Store, files: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums, several at once."""
        with ThreadPoolExecutor(VERIFIED_AT_ONCE, "verify") as pool:
            reasons = pool.map(partial(_find_fault, store), files, files.values())
            return {name: reason for name, reason in zip(files, reasons, strict=True) if reason}


def _find_fault(store: Store, name: str, expected: FileChecksum) -> str | None:
    """Return what is wrong with a file; a file that the disk cannot read counts as damaged."""
    try:
        return find_mismatch(store, name, expected)
    except StorageError as error:
        if error.kind == "transient":
            raise
        return f"it cannot be read ({error.reason or error.message})"


def at_once() -> int:
    """Return how many tables run at once: `OMNIGRAPH_MAINTENANCE_CONCURRENCY`, else 8."""
    given = os.environ.get("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "").strip()
    number = int(given) if given.isdecimal() else 0
    return number or AT_ONCE


def _by_table(
    jobs: Sequence[tuple[Table, Job]], work: Callable[[Table, Job], Done], most: int | None
) -> list[Done]:
    """Run every job; results are in job order. Running jobs finish even if another one fails."""
    places: dict[str, list[int]] = {}
    for place, (table, _) in enumerate(jobs):
        places.setdefault(table.location, []).append(place)
    done: dict[int, Done] = {}

    def tend(some: list[int]) -> None:
        for place in some:
            done[place] = work(*jobs[place])

    workers = min(most or at_once(), len(places))
    if workers < 2:  # no threads to wait for: an interrupt ends it at once
        for some in places.values():
            tend(some)
    else:
        with _pool(workers) as pool:
            begun = [pool.submit(tend, some) for some in places.values()]
            _all(begun)
    return [done[place] for place in range(len(jobs))]


def _all(begun: Sequence["Future[None]"]) -> None:
    for one in begun:
        one.result()


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a thread pool; after a failure, jobs that have not started are cancelled."""
    pool = ThreadPoolExecutor(workers, "tend")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
