"""A set of names that must stay, and of directories of which everything must stay.

Owns which files belong to one table version: its own file, data files and the blobs beside them,
deletion files, directories of indexes. Pure; nothing here reads or writes.
"""

from dataclasses import dataclass, field

from omnigraph.storage.store import version_names
from omnigraph.storage.transfer import Files


@dataclass(slots=True)
class Live:
    """Names and whole directories, relative to a root.

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
        """All that a table version consists of; blobs stand below the stem of their data file."""
        self.names |= version_names(location, version)
        self.names |= set(files.all)
        self.places |= set(files.places)
        self.places |= {name.rpartition(".")[0] for name in files.data}
