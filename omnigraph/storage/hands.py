"""Who does the long work of upkeep: this process, or others that open the same root.

Work goes out and comes back as plain data. What it wrote is named by nobody: only who gave the work
can make it part of a version.
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
AT_ONCE = 8  # tables; Lance itself uses all cores for one
VERIFIED_AT_ONCE = 4  # files: reading and checksums release the interpreter lock


class Hands(Protocol):
    """Results come in the order of their jobs. A failure of one job is a failure of all."""

    @property
    def name(self) -> str:
        """What a report calls them."""

    @property
    def part_rows(self) -> int | None:
        """From how many rows on an index is built in parts; None is never."""

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that put fragments together."""

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Index | None]:
        """Build segments of indexes; None where there is nothing yet to build one from."""

    def verify(self, store: Store, files: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums; return what is wrong, by name."""


@dataclass(frozen=True, slots=True)
class Here:
    """The process itself: some tables at once, the jobs of each one after another."""

    tables: int | None = None  # at once; None is what the environment says
    name: str = "local"
    part_rows: int | None = None

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that put fragments together."""
        return _by_table(jobs, lambda table, task: run_task(store, table, task), self.tables)

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Index | None]:
        """Build segments of indexes."""
        return _by_table(jobs, lambda table, one: build(store, table, one), self.tables)

    def verify(self, store: Store, files: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums, some at once."""
        with ThreadPoolExecutor(VERIFIED_AT_ONCE, "verify") as pool:
            reasons = pool.map(partial(_find_fault, store), files, files.values())
            return {name: reason for name, reason in zip(files, reasons, strict=True) if reason}


def _find_fault(store: Store, name: str, expected: FileChecksum) -> str | None:
    """What is wrong with a file; one that the disk cannot read is damaged like any other."""
    try:
        return find_mismatch(store, name, expected)
    except StorageError as error:
        if error.kind == "transient":
            raise
        return f"it cannot be read ({error.reason or error.message})"


def at_once() -> int:
    """How many tables are tended at once: `OMNIGRAPH_MAINTENANCE_CONCURRENCY`, else 8."""
    given = os.environ.get("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "").strip()
    number = int(given) if given.isdecimal() else 0
    return number or AT_ONCE


def _by_table(
    jobs: Sequence[tuple[Table, Job]], work: Callable[[Table, Job], Done], most: int | None
) -> list[Done]:
    """Every job, in the order in which they were given; who began ends, also beside a failure."""
    places: dict[str, list[int]] = {}
    for place, (table, _) in enumerate(jobs):
        places.setdefault(table.location, []).append(place)
    done: dict[int, Done] = {}

    def tend(some: list[int]) -> None:
        for place in some:
            done[place] = work(*jobs[place])

    workers = min(most or at_once(), len(places))
    if workers < 2:  # nobody to wait for: an interrupt ends it at once
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
    """Threads; when one fails, what has not begun never does."""
    pool = ThreadPoolExecutor(workers, "tend")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
