"""The set of live files: individual file names, and directories whose files are all live.

This module defines which files belong to a table version: its version file, data files and their blobs, deletion files,
and index directories. It does no I/O.
"""

from dataclasses import dataclass, field

from omnigraph.storage.store import version_file_names
from omnigraph.storage.transfer import VersionFiles


@dataclass(slots=True)
class LiveSet:
    """File names and whole directories, relative to the root.

    >>> live = LiveSet({"a/x"}, {"a/_indices/1"})
    >>> [live.contains(name) for name in ("a/x", "a/_indices/1/part/y", "a/_indices/2/y")]
    [True, True, False]
    """

    names: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)

    def contains(self, file_name: str) -> bool:
        """Return whether a name is in the set or below one of its directories."""
        if file_name in self.names:
            return True
        parent_directory = file_name.rpartition("/")[0]
        while parent_directory:
            if parent_directory in self.directories:
                return True
            parent_directory = parent_directory.rpartition("/")[0]
        return False

    def add_version(self, location: str, version: int, version_content: VersionFiles) -> None:
        """Add all files in a table version. Blobs are stored in a directory named after their data file's stem."""
        self.names |= version_file_names(location, version)
        self.names |= set(version_content.named_files)
        self.directories |= set(version_content.index_directories)
        self.directories |= {data_file.rpartition(".")[0] for data_file in version_content.data_files}
