"""The report for a cleanup: the files that were or would be removed, by type and in total.

This module only defines how the report is worded. It makes no decisions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors.counts import format_count
from omnigraph.maintenance.retention.file_survey import FileSurvey
from omnigraph.storage import layout
from omnigraph.storage.file_roles import MANIFEST_ROOTS, attached_version_number, owning_directory, subdirectory_of


@dataclass(frozen=True, slots=True)
class DatasetCleanup:
    """A report row for a type, or for a directory that contains no table (`__manifest`, `_commits`, ...)."""

    type_key: str
    old_versions_removed: int = 0
    bytes_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON-compatible data."""
        return {
            "type_key": self.type_key,
            "old_versions_removed": self.old_versions_removed,
            "bytes_removed": self.bytes_removed,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The report for a cleanup. If `preview` is true, nothing was removed.

    `unreferenced_paths` are table directories that are no longer referenced, and `unreferenced_bytes` is their total
    size. These directories are kept unless their removal was requested. `orphans` are directories of branches and tags
    that never had a name. `spared_files` and `spared_bytes` are the number and the total size of the files that are
    kept only because of the grace period. They are set only if nothing is removed. `deleted_rows` is the number of rows
    that an erase would purge, and only an erase preview sets it. `held_by` lists the tags and running operations that
    retain data. `engine` is the executor that did the work. `unnamed` lists branches and tags that have lost their ref
    object. None of their files are removed.
    """

    preview: bool
    datasets: tuple[DatasetCleanup, ...] = ()
    unreferenced_paths: tuple[str, ...] = ()
    commits_kept: int = 0
    engine: str = field(default="local", compare=False)
    unreferenced_bytes: int = 0
    orphans: tuple[str, ...] = ()
    spared_files: int = 0
    spared_bytes: int = 0
    deleted_rows: int | None = None
    held_by: tuple[str, ...] = ()
    unnamed: tuple[Mapping[str, Any], ...] = ()

    @property
    def bytes_removed(self) -> int:
        """The total number of removed bytes."""
        return sum(dataset.bytes_removed for dataset in self.datasets)

    @property
    def old_versions_removed(self) -> int:
        """The total number of removed versions."""
        return sum(dataset.old_versions_removed for dataset in self.datasets)

    @property
    def failed(self) -> tuple[DatasetCleanup, ...]:
        """The datasets with files that could not be removed. The next run tries again."""
        return tuple(dataset for dataset in self.datasets if dataset.error is not None)

    def __repr__(self) -> str:
        verb = "would remove" if self.preview else "removed"
        versions = format_count(self.old_versions_removed, "old version")
        return f"<Cleanup {verb} {versions}, {format_count(self.bytes_removed, 'byte')}>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "preview": self.preview,
            "datasets": [item.to_json() for item in self.datasets],
            "bytes_removed": self.bytes_removed,
            "old_versions_removed": self.old_versions_removed,
            "unreferenced_paths": list(self.unreferenced_paths),
            "unreferenced_bytes": self.unreferenced_bytes,
            "orphans": self._orphans_to_json(),
            "commits_kept": self.commits_kept,
            "spared_files": self.spared_files,
            "spared_bytes": self.spared_bytes,
            "deleted_rows": self.deleted_rows,
            "held_by": list(self.held_by),
            "unnamed": [dict(item) for item in self.unnamed],
            "engine": self.engine,
        }

    def _orphans_to_json(self) -> dict[str, list[list[str]]]:
        """Return the removed directories, and the reasons why other directories could not be removed."""
        failed = [[row.type_key, row.error] for row in self.failed if row.error is not None]
        manifest_failures = [failure for failure in failed if failure[0] == layout.MANIFEST]
        reclaimed = [[layout.MANIFEST, directory] for directory in self.orphans]
        return {"reclaimed": reclaimed if not manifest_failures else [], "failures": manifest_failures}


def build_dataset_rows(
    removed_names: Iterable[str],
    survey: FileSurvey,
    type_by_directory: Mapping[str, str],
    error_by_dataset: Mapping[str, str] | None = None,
) -> tuple[DatasetCleanup, ...]:
    """Build a row for each type or directory with files that were removed or that could not be removed.

    `type_by_directory` maps table directories to types.
    """
    bytes_by_dataset: dict[str, int] = {}
    versions_by_dataset: dict[str, int] = {}
    for removed_name in removed_names:
        dataset = dataset_key(removed_name, type_by_directory)
        bytes_by_dataset[dataset] = bytes_by_dataset.get(dataset, 0) + survey.size_of(removed_name)
        versions_by_dataset[dataset] = versions_by_dataset.get(dataset, 0) + _is_old_version_file(removed_name)
    error_texts = error_by_dataset or {}
    dataset_keys = sorted(bytes_by_dataset.keys() | error_texts.keys())
    return tuple(
        DatasetCleanup(
            dataset, versions_by_dataset.get(dataset, 0), bytes_by_dataset.get(dataset, 0), error_texts.get(dataset)
        )
        for dataset in dataset_keys
    )


def dataset_key(file_name: str, type_by_directory: Mapping[str, str]) -> str:
    """Return the key of the report row that counts a file: the type that the file belongs to, or else a directory."""
    directory = owning_directory(file_name)
    if file_name.startswith(MANIFEST_ROOTS):
        return layout.MANIFEST
    return type_by_directory.get(directory, directory)


def _is_old_version_file(file_name: str) -> bool:
    if subdirectory_of(file_name) != "_versions" or not file_name.endswith(".manifest"):
        return False
    return attached_version_number(file_name) is None or file_name.startswith(MANIFEST_ROOTS)
