"""List every file that a collector may remove, with its size and modification time.

This module determines which directories are listed and which table or manifest each file belongs to. It never reads
file contents.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from omnigraph.storage import layout
from omnigraph.storage.file_roles import MANIFEST_ROOTS, TABLE_ROOTS, owning_directory
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.maintenance.executors.protocol import Executor

_SURVEYED_ROOTS = (*TABLE_ROOTS, *MANIFEST_ROOTS, layout.COMMITS, layout.SCHEMAS)


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """The files that existed at one point in time, by name.

    `unfinished` holds temporary files that were never renamed.
    """

    taken_at: datetime
    files: Mapping[str, ListedObject]
    unfinished: Mapping[str, ListedObject]

    def size_of(self, file_name: str) -> int:
        """Return a file's size in bytes, or 0 if it was not listed."""
        listed_file = self.files.get(file_name) or self.unfinished.get(file_name)
        return listed_file.size if listed_file is not None else 0

    def modified_time(self, file_name: str) -> datetime | None:
        """Return a file's modification time by the store's clock, or None if it was not listed."""
        listed_file = self.files.get(file_name) or self.unfinished.get(file_name)
        return listed_file.modified if listed_file is not None else None

    def with_sizes_of(self, other_survey: "FileSurvey") -> "FileSurvey":
        """Return this survey, extended with the sizes of the files in another survey."""
        return FileSurvey(self.taken_at, {**other_survey.files, **self.files}, self.unfinished)

    def manifest_files(self) -> dict[str, list[ListedObject]]:
        """Return the files in every manifest, by manifest directory."""
        files_by_directory: dict[str, list[ListedObject]] = {}
        for file_name, listed_file in self.files.items():
            if file_name.startswith(MANIFEST_ROOTS):
                files_by_directory.setdefault(owning_directory(file_name), []).append(listed_file)
        return files_by_directory


def take_survey(store: Store, taken_at: datetime, executor: "Executor") -> FileSurvey:
    """List every file that may be removed."""
    files_by_name = {listed_file.name: listed_file for listed_file in executor.list_files(store, _SURVEYED_ROOTS)}
    unfinished = {listed_file.name: listed_file for listed_file in store.objects.list_unfinished(*_SURVEYED_ROOTS)}
    return FileSurvey(taken_at, files_by_name, unfinished)
