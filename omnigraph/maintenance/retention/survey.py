"""List every file that a collector may remove, with size and store time.

Owns which directories those are, and which table or manifest a file belongs to. Reads names only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from omnigraph.storage import layout
from omnigraph.storage.objects import ListedObject
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.maintenance.executors.protocol import Executor

TABLE_ROOTS = ("nodes", "edges")
MANIFEST_ROOTS = (layout.MANIFEST, layout.BRANCHES)
_SURVEYED_ROOTS = (*TABLE_ROOTS, *MANIFEST_ROOTS, layout.COMMITS, layout.SCHEMAS)
_MAX_VERSION = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """The files at one moment, by name; `unfinished` are temporary files never renamed."""

    taken_at: datetime
    files: Mapping[str, ListedObject]
    unfinished: Mapping[str, ListedObject]

    def size_of(self, file_name: str) -> int:
        """Return the size of a file in bytes; 0 if it was not listed."""
        listed_file = self.files.get(file_name) or self.unfinished.get(file_name)
        return listed_file.size if listed_file is not None else 0

    def modified_time(self, file_name: str) -> datetime | None:
        """Return the store time of a file; None if it was not listed."""
        listed_file = self.files.get(file_name) or self.unfinished.get(file_name)
        return listed_file.modified if listed_file is not None else None

    def with_sizes_of(self, other_survey: "FileSurvey") -> "FileSurvey":
        """Return this survey with the sizes of files that another one listed."""
        return FileSurvey(self.taken_at, {**other_survey.files, **self.files}, self.unfinished)

    def manifest_files(self) -> dict[str, list[ListedObject]]:
        """Return the files of every manifest, by its directory."""
        files_by_directory: dict[str, list[ListedObject]] = {}
        for file_name, listed_file in self.files.items():
            if file_name.startswith(MANIFEST_ROOTS):
                files_by_directory.setdefault(owning_directory(file_name), []).append(listed_file)
        return files_by_directory


def take_survey(store: Store, taken_at: datetime, executor: "Executor") -> FileSurvey:
    """List every file that may be removed."""
    files_by_name = {
        listed_file.name: listed_file for listed_file in executor.list_files(store, _SURVEYED_ROOTS)
    }
    unfinished = {
        listed_file.name: listed_file
        for listed_file in store.objects.list_unfinished(*_SURVEYED_ROOTS)
    }
    return FileSurvey(taken_at, files_by_name, unfinished)


def owning_directory(file_name: str) -> str:
    """Return the table or manifest that a file belongs to; for other objects their directory.

    >>> owning_directory("nodes/40d7-01J0/data/x.lance"), owning_directory("__manifest/data/x.lance")
    ('nodes/40d7-01J0', '__manifest')
    >>> owning_directory("_commits/40d7-01J0")
    '_commits'
    """
    top_directory, *path_parts = file_name.split("/")
    return (
        f"{top_directory}/{path_parts[0]}"
        if top_directory in (*TABLE_ROOTS, layout.BRANCHES) and path_parts
        else top_directory
    )


def subdirectory_of(file_name: str) -> str:
    """Return the subdirectory of a file in its table or manifest: `data`, `_versions` and so on."""
    return file_name.removeprefix(owning_directory(file_name)).lstrip("/").partition("/")[0]


def attached_version_number(file_name: str) -> int | None:
    """Return the number of an attached version by its file name; None for any other file.

    >>> attached_version_number("t/_versions/18446744073709551614.manifest")
    1
    >>> attached_version_number("t/_versions/d7.manifest")
    """
    stem = file_name.rpartition("/")[2].removesuffix(".manifest")
    return (
        _MAX_VERSION - int(stem) if stem.isdecimal() and file_name.endswith(".manifest") else None
    )


def attached_versions_of(
    listed_names: Mapping[str, ListedObject] | Iterator[str], table_directory: str
) -> list[int]:
    """Return the listed attached versions of a table."""
    prefix = f"{table_directory}/_versions/"
    numbers = (
        attached_version_number(file_name)
        for file_name in listed_names
        if file_name.startswith(prefix)
    )
    return sorted(number for number in numbers if number is not None)
