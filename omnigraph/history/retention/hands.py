"""Executors of a cleanup: where its many files are listed, read and removed.

The decision what to remove is made by the same code for all executors; they only carry it out. Any
of their work may be done twice, in part, or again by a later run.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import Files

from .sweep import remove

Version = tuple[str, int]  # location and Lance version of a table
Told = Callable[[str, str | None], None]
Check = Callable[[], None]


class Hands(Protocol):
    """The operations that a cleanup needs."""

    @property
    def name(self) -> str:
        """The name of the executor in a report."""

    @property
    def reads_ahead(self) -> bool:
        """Whether `read_versions` is worth a trial mark that finds the versions to read."""

    def list(self, store: Store, places: Sequence[str]) -> Iterable[Found]:
        """List every file below these directories."""

    def read_versions(self, store: Store, versions: Sequence[Version]) -> dict[Version, Files]:
        """Return the files of versions; one that cannot be read is left out."""

    def remove(self, store: Store, names: Sequence[str], told: Told, check_claim: Check) -> None:
        """Remove files in the order of their ranks; call `on_removed` once for each.

        `check_claim` is called before files are removed, and raises if the run must end.
        """


class Here:
    """Works in this process. It reads versions one by one when the mark needs them."""

    name = "local"
    reads_ahead = False

    def list(self, store: Store, places: Sequence[str]) -> Iterable[Found]:
        """List every file below these directories."""
        return (one for place in places for one in store.objects.list(place))

    def read_versions(self, store: Store, versions: Sequence[Version]) -> dict[Version, Files]:
        """Return nothing: the mark reads each version when it needs it."""
        del store, versions
        return {}

    def remove(self, store: Store, names: Sequence[str], told: Told, check_claim: Check) -> None:
        """Remove files in the order of their ranks."""
        remove(store, names, told, check_claim)
