"""Run the file work of a cleanup on executors: list files, read table versions, remove files.

The driver holds the claim and makes every decision. A task that fails midway has removed only files
that were to be deleted anyway: the delete queue persists, and the next run continues with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.maintenance.retention.executor import (
    ClaimCheck,
    CleanupExecutor,
    LocalCleanupExecutor,
    RemovalCallback,
    VersionKey,
)
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.file_removal import group_by_rank, remove_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import VersionFiles, version_files

from .engine import Engine
from .jobs import run_jobs
from .pinned_graph import PinnedGraph, pin_graph
from .session_choice import choose_session

SPARK_MIN_FILES = 100_000  # number of files from which executors are worth starting
_VERSIONS_PER_JOB = 64  # table versions that one job reads
_FILES_PER_JOB = 512  # files that one job removes
_JOBS_PER_ROUND = 64  # jobs between two checks of the driver's claim


@dataclass(frozen=True, slots=True)
class SparkCleanupExecutor:
    """`CleanupExecutor` of `omnigraph.maintenance.retention`, on a Spark session."""

    spark: Any
    name: str = "spark"
    reads_ahead: bool = True

    def list(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below these directories; each job lists one subdirectory of a table."""
        listed_files, subdirectories = _list_levels(store, directories, 2)
        list_job = partial(_list, pin_graph(store, {}))
        for job_files in run_jobs(self.spark, list_job, subdirectories, short=True):
            listed_files += job_files
        return listed_files

    def read_versions(
        self, store: Store, versions: Sequence[VersionKey]
    ) -> dict[VersionKey, VersionFiles]:
        """Return the files of each version; an unreadable version is left to the driver."""
        read_job = partial(_read, pin_graph(store, {}))
        job_results = run_jobs(
            self.spark,
            read_job,
            list(_split_into_chunks(sorted(versions), _VERSIONS_PER_JOB)),
            short=True,
        )
        return dict(version_entry for job_result in job_results for version_entry in job_result)

    def remove(
        self,
        store: Store,
        file_names: Sequence[str],
        on_removed: RemovalCallback,
        check_claim: ClaimCheck,
    ) -> None:
        """Remove files, all of one rank before those of the next."""
        remove_job = partial(_remove, pin_graph(store, {}))
        for rank_names in group_by_rank(file_names):
            for round_jobs in _split_into_chunks(
                list(_split_into_chunks(rank_names, _FILES_PER_JOB)), _JOBS_PER_ROUND
            ):
                check_claim()
                for removals in run_jobs(self.spark, remove_job, round_jobs, short=True):
                    for file_name, error in removals:
                        on_removed(file_name, error)


class AutoCleanupExecutor:
    """A cleanup executor that lists files in this process, and uses Spark if there are many."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._executor: CleanupExecutor = LocalCleanupExecutor()

    @property
    def name(self) -> str:
        """The name used in reports."""
        return self._executor.name

    @property
    def reads_ahead(self) -> bool:
        """Whether reading versions ahead is worth it."""
        return self._executor.reads_ahead

    def list(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below these directories."""
        listed_files = list(self._executor.list(store, directories))
        session = choose_session("auto", self._spark, lambda: len(listed_files) >= SPARK_MIN_FILES)
        if session is not None:
            self._executor = SparkCleanupExecutor(session)
        return listed_files

    def read_versions(
        self, store: Store, versions: Sequence[VersionKey]
    ) -> dict[VersionKey, VersionFiles]:
        """Return the files of each version."""
        return self._executor.read_versions(store, versions)

    def remove(
        self,
        store: Store,
        file_names: Sequence[str],
        on_removed: RemovalCallback,
        check_claim: ClaimCheck,
    ) -> None:
        """Remove files in the order of their ranks."""
        self._executor.remove(store, file_names, on_removed, check_claim)


def choose_cleanup_executor(engine: Engine, spark: Any) -> CleanupExecutor:
    """Choose the executor of a cleanup."""
    if engine == "auto":
        return AutoCleanupExecutor(spark)
    session = choose_session(engine, spark, lambda: False)
    return SparkCleanupExecutor(session) if session is not None else LocalCleanupExecutor()


def _list_levels(
    store: Store, directories: Sequence[str], depth: int
) -> tuple[list[ListedObject], list[str]]:
    """Return the files of the first `depth` levels, and the directories below those levels."""
    found_files: list[ListedObject] = []
    current_directories = list(directories)
    for _ in range(depth):
        levels = [store.objects.list_level(entry) for entry in current_directories]
        found_files += [entry for _, files in levels for entry in files]
        current_directories = [entry for subdirectories, _ in levels for entry in subdirectories]
    return found_files, current_directories


def _split_into_chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _list(pinned_graph: PinnedGraph, directory: str) -> list[ListedObject]:
    """Job of an executor: list the files below a directory."""
    return pinned_graph.store().objects.list(directory)


def _read(
    pinned_graph: PinnedGraph, versions: Sequence[VersionKey]
) -> list[tuple[VersionKey, VersionFiles]]:
    """Job of an executor: read the files of table versions, without the unreadable ones."""
    readable_versions: list[tuple[VersionKey, VersionFiles]] = []
    for version in versions:
        try:
            readable_versions.append((version, version_files(pinned_graph.store(), *version)))
        except (AbsentError, StorageError, OSError, ValueError):
            continue
    return readable_versions


def _remove(pinned_graph: PinnedGraph, file_names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Job of an executor: remove files; return each name with its error, if any."""
    removals: list[tuple[str, str | None]] = []
    remove_files(
        pinned_graph.store(),
        file_names,
        lambda file_name, error: removals.append((file_name, error)),
    )
    return removals
