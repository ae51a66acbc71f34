"""Executors of a cleanup: where its many files are listed, read and removed.

The decision what to remove is made by the same code for all executors; they only carry it out. Any
of their work may be done twice, in part, or again by a later run.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from omnigraph.storage.file_removal import remove_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import VersionFiles

VersionKey = tuple[str, int]  # location and Lance version of a table
RemovalCallback = Callable[[str, str | None], None]
ClaimCheck = Callable[[], None]


class CleanupExecutor(Protocol):
    """The operations that a cleanup needs."""

    @property
    def name(self) -> str:
        """The name of the executor in a report."""

    @property
    def reads_ahead(self) -> bool:
        """Whether `read_versions` is worth a trial mark that finds the versions to read."""

    def list(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below these directories."""

    def read_versions(
        self, store: Store, versions: Sequence[VersionKey]
    ) -> dict[VersionKey, VersionFiles]:
        """Return the files of versions; one that cannot be read is left out."""

    def remove(
        self,
        store: Store,
        file_names: Sequence[str],
        on_removed: RemovalCallback,
        check_claim: ClaimCheck,
    ) -> None:
        """Remove files in the order of their ranks; call `on_removed` once for each.

        `check_claim` is called before files are removed, and raises if the run must end.
        """


class LocalCleanupExecutor:
    """Works in this process. It reads versions one by one when the mark needs them."""

    name = "local"
    reads_ahead = False

    def list(self, store: Store, directories: Sequence[str]) -> Iterable[ListedObject]:
        """List every file below these directories."""
        return (
            listed_file
            for directory in directories
            for listed_file in store.objects.list(directory)
        )

    def read_versions(
        self, store: Store, versions: Sequence[VersionKey]
    ) -> dict[VersionKey, VersionFiles]:
        """Return nothing: the mark reads each version when it needs it."""
        del store, versions
        return {}

    def remove(
        self,
        store: Store,
        file_names: Sequence[str],
        on_removed: RemovalCallback,
        check_claim: ClaimCheck,
    ) -> None:
        """Remove files in the order of their ranks."""
        remove_files(store, file_names, on_removed, check_claim)
