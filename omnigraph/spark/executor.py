"""The Spark executor for maintenance, which processes tables, files and versions in Spark jobs.

This executor is in the `spark` package because its jobs run in Spark tasks. The jobs write files that no version
references yet. The driver makes every decision: it turns the files into versions and holds the claim that lets only one
cleanup run at a time. A task that fails midway has not made anything visible and has removed only files that are still
in the delete queue.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.maintenance.executors.protocol import ClaimCheck, RemovalCallback, VersionKey
from omnigraph.storage.checksums import FileChecksum, FileChecksums
from omnigraph.storage.column_index import IndexSegment, SegmentBuild, build_segment
from omnigraph.storage.compact import run_task
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.file_removal import group_by_rank, remove_files
from omnigraph.storage.file_verification import verify_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.transfer import VersionFiles, version_files

from .executor_jobs import run_jobs
from .pinned_graph import PinnedGraph, pin_graph
from .session import parallelism

_SEGMENT_ROWS = 1 << 22  # number of rows per index segment
_GROUPS_PER_SLOT = 4  # number of file groups per concurrent task
_VERSIONS_PER_JOB = 64  # number of table versions read by one job
_FILES_PER_JOB = 512  # number of files removed by one job
_JOBS_PER_ROUND = 64  # number of jobs between two checks of the driver's claim


@dataclass(frozen=True, slots=True)
class SparkExecutor:
    """An `Executor` for `omnigraph.maintenance` that runs on a Spark session."""

    spark: Any
    name: str = "spark"
    index_part_rows: int | None = _SEGMENT_ROWS
    reads_ahead: bool = True

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""
        pinned_graph, located_jobs = _locate_jobs(store, jobs)
        return run_jobs(self.spark, partial(_compact_fragments, pinned_graph), located_jobs)

    def build_segments(self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]) -> list[IndexSegment | None]:
        """Build index segments."""
        pinned_graph, located_jobs = _locate_jobs(store, jobs)
        return run_jobs(self.spark, partial(_build_segment, pinned_graph), located_jobs)

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums, in a few large groups per concurrent task."""
        groups = _group_by_size(expected_checksums, parallelism(self.spark))
        pinned_graph = pin_graph(store, {})
        results = run_jobs(self.spark, partial(_verify_group, pinned_graph), groups)
        return {name: reason for result in results for name, reason in result.items()}

    def list_files(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below the given directories; each job lists a directory two levels below one of them."""
        listed_files, subdirectories = _list_levels(store, directories, 2)
        list_job = partial(_list_directory, pin_graph(store, {}))
        for job_files in run_jobs(self.spark, list_job, subdirectories, short=True):
            listed_files += job_files
        return listed_files

    def read_versions(self, store: Store, versions: Sequence[VersionKey]) -> dict[VersionKey, VersionFiles]:
        """Return the files in each readable version.

        The driver must handle versions that are missing from the result.
        """
        read_job = partial(_read_versions, pin_graph(store, {}))
        job_results = run_jobs(
            self.spark, read_job, list(_split_into_chunks(sorted(versions), _VERSIONS_PER_JOB)), short=True
        )
        return dict(version_entry for job_result in job_results for version_entry in job_result)

    def remove_files(
        self, store: Store, file_names: Sequence[str], on_removed: RemovalCallback, check_claim: ClaimCheck
    ) -> None:
        """Remove files in parallel; all files of one rank are removed before the files of the next rank."""
        remove_job = partial(_remove_group, pin_graph(store, {}))
        for rank_names in group_by_rank(file_names):
            for round_jobs in _split_into_chunks(list(_split_into_chunks(rank_names, _FILES_PER_JOB)), _JOBS_PER_ROUND):
                check_claim()
                for removals in run_jobs(self.spark, remove_job, round_jobs, short=True):
                    for file_name, error in removals:
                        on_removed(file_name, error)


def _group_by_size(files: FileChecksums, task_slots: int) -> list[dict[str, FileChecksum]]:
    """Divide the files into groups of similar total size, assigning the largest files first."""
    groups: list[dict[str, FileChecksum]] = [{} for _ in range(max(1, _GROUPS_PER_SLOT * task_slots))]
    heap = [(0, number) for number in range(len(groups))]
    for name, checksum in sorted(files.items(), key=lambda item: -item[1].size):
        size, number = heappop(heap)
        groups[number][name] = checksum
        heappush(heap, (size + checksum.size, number))
    return [group for group in groups if group]


def _verify_group(pinned_graph: PinnedGraph, files: FileChecksums) -> dict[str, str]:
    """Verify one group of files. This function runs as a job on an executor."""
    return verify_files(pinned_graph.store(), files)


def _locate_jobs(store: Store, jobs: Sequence[tuple[Table, Any]]) -> tuple[PinnedGraph, list[tuple[str, Any]]]:
    """Pin the jobs' tables, and replace each table with its location, which can be sent to executors."""
    pinned_tables = {table.location: (table.location, table.version) for table, _ in jobs}
    return pin_graph(store, pinned_tables), [(table.location, job) for table, job in jobs]


def _compact_fragments(pinned_graph: PinnedGraph, job: tuple[str, str]) -> str:
    """Run one compaction task for a table. This function runs as a job on an executor."""
    return run_task(pinned_graph.store(), pinned_graph.table(job[0]), job[1])


def _build_segment(pinned_graph: PinnedGraph, job: tuple[str, SegmentBuild]) -> IndexSegment | None:
    """Build an index segment for a table. This function runs as a job on an executor."""
    return build_segment(pinned_graph.store(), pinned_graph.table(job[0]), job[1])


def _list_levels(store: Store, directories: Sequence[str], depth: int) -> tuple[list[ListedObject], list[str]]:
    """List the first `depth` levels below the directories.

    Return the files, and the directories that remain to be listed.
    """
    found_files: list[ListedObject] = []
    current_directories = list(directories)
    for _ in range(depth):
        levels = [store.objects.list_level(entry) for entry in current_directories]
        found_files += [entry for _, files in levels for entry in files]
        current_directories = [entry for subdirectories, _ in levels for entry in subdirectories]
    return found_files, current_directories


def _split_into_chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _list_directory(pinned_graph: PinnedGraph, directory: str) -> list[ListedObject]:
    """List the files below a directory. This function runs as a job on an executor."""
    return pinned_graph.store().objects.list(directory)


def _read_versions(pinned_graph: PinnedGraph, versions: Sequence[VersionKey]) -> list[tuple[VersionKey, VersionFiles]]:
    """Return the files in each table version, skipping unreadable versions.

    This function runs as a job on an executor.
    """
    readable_versions: list[tuple[VersionKey, VersionFiles]] = []
    for version in versions:
        try:
            readable_versions.append((version, version_files(pinned_graph.store(), *version)))
        except (AbsentError, StorageError, OSError, ValueError):
            continue
    return readable_versions


def _remove_group(pinned_graph: PinnedGraph, file_names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Remove files and return each name with its error, if any. This function runs as a job on an executor."""
    removals: list[tuple[str, str | None]] = []
    remove_files(pinned_graph.store(), file_names, lambda file_name, error: removals.append((file_name, error)))
    return removals
