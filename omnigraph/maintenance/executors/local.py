"""The executor that runs jobs in this process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.column_index import IndexSegment, SegmentBuild, build_segment
from omnigraph.storage.compact import run_task
from omnigraph.storage.file_removal import remove_files
from omnigraph.storage.file_verification import verify_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.transfer import VersionFiles

from .concurrency import run_jobs_by_table
from .protocol import ClaimCheck, RemovalCallback, VersionKey


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs jobs in this process: several tables at a time, but the jobs for one table in sequence."""

    concurrent_tables: int | None = None  # None means that the environment variable decides
    name: str = "local"
    index_part_rows: int | None = None
    reads_ahead: bool = False

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""
        return run_jobs_by_table(jobs, lambda table, task: run_task(store, table, task), self.concurrent_tables)

    def build_segments(self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]) -> list[IndexSegment | None]:
        """Build index segments."""
        return run_jobs_by_table(
            jobs, lambda table, segment_build: build_segment(store, table, segment_build), self.concurrent_tables
        )

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read several files at a time and compare them with their checksums."""
        return verify_files(store, expected_checksums)

    def list_files(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below the given directories."""
        return (listed_file for directory in directories for listed_file in store.objects.list(directory))

    def read_versions(self, store: Store, versions: Sequence[VersionKey]) -> dict[VersionKey, VersionFiles]:
        """Return an empty result, because in this process the mark phase reads each version on demand."""
        del store, versions
        return {}

    def remove_files(
        self, store: Store, file_names: Sequence[str], on_removed: RemovalCallback, check_claim: ClaimCheck
    ) -> None:
        """Remove files, table versions first."""
        remove_files(store, file_names, on_removed, check_claim)
