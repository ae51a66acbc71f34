"""The set of live files: single names, and directories of which everything is live.

Owns which files belong to a table version: its version file, data files and their blobs, deletion
files, index directories. Pure; nothing here reads or writes.
"""

from dataclasses import dataclass, field

from omnigraph.storage.store import version_names
from omnigraph.storage.transfer import Files


@dataclass(slots=True)
class Live:
    """File names and whole directories, relative to the root.

    >>> live = Live({"a/x"}, {"a/_indices/1"})
    >>> [live.holds(name) for name in ("a/x", "a/_indices/1/part/y", "a/_indices/2/y")]
    [True, True, False]
    """

    names: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)

    def holds(self, name: str) -> bool:
        """Whether a name is in the set, or below one of its directories."""
        if name in self.names:
            return True
        place = name.rpartition("/")[0]
        while place:
            if place in self.places:
                return True
            place = place.rpartition("/")[0]
        return False

    def add_version(self, location: str, version: int, files: Files) -> None:
        """Add all files of a table version; blobs lie below the stem of their data file."""
        self.names |= version_names(location, version)
        self.names |= set(files.all)
        self.places |= set(files.places)
        self.places |= {name.rpartition(".")[0] for name in files.data}
