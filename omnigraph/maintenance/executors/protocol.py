"""The operations that every executor provides."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.column_index import IndexSegment, SegmentBuild
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.transfer import VersionFiles

VersionKey = tuple[str, int]  # (table location, Lance version)
RemovalCallback = Callable[[str, str | None], None]  # (file name, error that prevented its removal)
ClaimCheck = Callable[[], None]


class Executor(Protocol):
    """Runs maintenance jobs and returns results in job order. If a job fails, the whole call fails.

    An executor may run a job more than once or only partially, and a later run may repeat the job.
    """

    @property
    def name(self) -> str:
        """The executor's name, as shown in reports."""

    @property
    def index_part_rows(self) -> int | None:
        """The number of rows per part of a large index, or None if every index is built as a whole."""

    @property
    def reads_ahead(self) -> bool:
        """Whether a cleanup first determines which versions it will read, and passes them to `read_versions`."""

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""

    def build_segments(self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]) -> list[IndexSegment | None]:
        """Build index segments; return None for each segment that would be empty."""

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read files, compare them with their checksums, and return faults by file name."""

    def list_files(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below the given directories."""

    def read_versions(self, store: Store, versions: Sequence[VersionKey]) -> dict[VersionKey, VersionFiles]:
        """Return the files in each of the given versions, omitting versions that cannot be read."""

    def remove_files(
        self, store: Store, file_names: Sequence[str], on_removed: RemovalCallback, check_claim: ClaimCheck
    ) -> None:
        """Remove files, table versions first, calling `on_removed` once for each file.

        Before removing files, implementations must call `check_claim`, which raises an error if the run must end.
        """


ExecutorForFiles = Callable[[int], Executor]  # a function that chooses the executor for a given number of files
