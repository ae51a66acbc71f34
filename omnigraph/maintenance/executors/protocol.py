"""The operations that every executor has."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.index import IndexSegment, SegmentBuild
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.transfer import VersionFiles

VersionKey = tuple[str, int]  # location and Lance version of a table
RemovalCallback = Callable[[str, str | None], None]  # name of a file, and the error that kept it
ClaimCheck = Callable[[], None]


class Executor(Protocol):
    """Runs maintenance jobs. Results are in the order of jobs; one failed job fails the call.

    Any work may be done twice, in part, or again by a later run.
    """

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def index_part_rows(self) -> int | None:
        """The number of rows from which on an index is built in parts; None for never."""

    @property
    def reads_ahead(self) -> bool:
        """Whether `read_versions` is worth a trial mark that finds the versions to read."""

    def compact_fragments(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run compaction tasks."""

    def build_segments(self, store: Store, jobs: Sequence[tuple[Table, SegmentBuild]]) -> list[IndexSegment | None]:
        """Build index segments; None where there is no data yet to build one from."""

    def verify_files(self, store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
        """Read files and compare them with their checksums; return faults by name."""

    def list_files(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below these directories."""

    def read_versions(self, store: Store, versions: Sequence[VersionKey]) -> dict[VersionKey, VersionFiles]:
        """Return the files of versions; one that cannot be read is left out."""

    def remove_files(
        self, store: Store, file_names: Sequence[str], on_removed: RemovalCallback, check_claim: ClaimCheck
    ) -> None:
        """Remove files in the order of their ranks; call `on_removed` once for each.

        `check_claim` is called before files are removed, and raises if the run must end.
        """


ExecutorForFiles = Callable[[int], Executor]  # the executor for a number of files
