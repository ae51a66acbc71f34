"""Who lists, reads and removes the many files of a cleanup: this process, or others.

What may go is decided here below by the same code for all hands; they only carry out. Each of
their works may be done twice, in part, or once more by a later run.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import Files

from .sweep import remove

Version = tuple[str, int]  # of a table: location and Lance version
Told = Callable[[str, str | None], None]
Check = Callable[[], None]


class Hands(Protocol):
    """What a cleanup asks of them."""

    @property
    def name(self) -> str:
        """What a report calls them."""

    @property
    def reads_ahead(self) -> bool:
        """Whether `read_versions` is worth the search for what will be read."""

    def list(self, store: Store, places: Sequence[str]) -> Iterable[Found]:
        """Every file below these directories."""

    def read_versions(self, store: Store, versions: Sequence[Version]) -> dict[Version, Files]:
        """What versions consist of; one that cannot be read is left out."""

    def remove(self, store: Store, names: Sequence[str], told: Told, check_claim: Check) -> None:
        """Remove files in the order of their ranks; `told` hears of each, once.

        `check_claim` is called before files are removed, and raises when the run must end.
        """


class Here:
    """The process itself. It reads versions one by one, as the mark comes to them."""

    name = "local"
    reads_ahead = False

    def list(self, store: Store, places: Sequence[str]) -> Iterable[Found]:
        """Every file below these directories."""
        return (one for place in places for one in store.objects.list(place))

    def read_versions(self, store: Store, versions: Sequence[Version]) -> dict[Version, Files]:
        """Nothing: whoever needs one reads it."""
        del store, versions
        return {}

    def remove(self, store: Store, names: Sequence[str], told: Told, check_claim: Check) -> None:
        """Remove files in the order of their ranks."""
        remove(store, names, told, check_claim)
