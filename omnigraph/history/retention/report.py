"""The report of a cleanup: what it removed, or would remove, per type and in total.

Owns the wording of the report; it decides nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.storage import layout

from .survey import MANIFESTS, Survey, kind_of, place_of, version_number


@dataclass(frozen=True, slots=True)
class DatasetCleanup:
    """One type, or one directory without rows (`__manifest`, `_commits`, ...)."""

    type_key: str
    old_versions_removed: int = 0
    bytes_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON data."""
        return {
            "type_key": self.type_key,
            "old_versions_removed": self.old_versions_removed,
            "bytes_removed": self.bytes_removed,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The report of a run; `preview` says that nothing was removed.

    `unreferenced_paths` are table directories that nothing references any more; they and their
    `unreferenced_bytes` stay unless their removal was requested. `orphans` are directories of
    branches and tags that were never named. `spared_bytes` are those that only the grace period
    keeps, counted if nothing else is removed. `deleted_rows` is the number of rows that an erase
    would purge, set by its preview. `held_by` are the tags and running operations that retain
    data. `engine` says where the work was done. `unnamed` are branches and tags that lost their
    ref object; nothing of them is removed.
    """

    preview: bool
    datasets: tuple[DatasetCleanup, ...] = ()
    unreferenced_paths: tuple[str, ...] = ()
    commits_kept: int = 0
    engine: str = field(default="local", compare=False)
    unreferenced_bytes: int = 0
    orphans: tuple[str, ...] = ()
    spared_bytes: int = 0
    deleted_rows: int | None = None
    held_by: tuple[str, ...] = ()
    unnamed: tuple[Mapping[str, Any], ...] = ()

    @property
    def bytes_removed(self) -> int:
        """Total bytes removed."""
        return sum(one.bytes_removed for one in self.datasets)

    @property
    def old_versions_removed(self) -> int:
        """Total number of versions removed."""
        return sum(one.old_versions_removed for one in self.datasets)

    @property
    def failed(self) -> tuple[DatasetCleanup, ...]:
        """The datasets with files that could not be removed; the next run tries again."""
        return tuple(one for one in self.datasets if one.error is not None)

    def __repr__(self) -> str:
        what = "would remove" if self.preview else "removed"
        versions, size = self.old_versions_removed, self.bytes_removed
        return f"<Cleanup {what} {versions} old versions, {size} bytes>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "preview": self.preview,
            "datasets": [one.to_json() for one in self.datasets],
            "bytes_removed": self.bytes_removed,
            "old_versions_removed": self.old_versions_removed,
            "unreferenced_paths": list(self.unreferenced_paths),
            "unreferenced_bytes": self.unreferenced_bytes,
            "orphans": self._orphans(),
            "commits_kept": self.commits_kept,
            "spared_bytes": self.spared_bytes,
            "deleted_rows": self.deleted_rows,
            "held_by": list(self.held_by),
            "unnamed": [dict(one) for one in self.unnamed],
            "engine": self.engine,
        }

    def _orphans(self) -> dict[str, list[list[str]]]:
        """Return the removed directories, and the reasons why others could not be removed."""
        failed = [[row.type_key, row.error] for row in self.failed if row.error is not None]
        stuck = [failure for failure in failed if failure[0] == layout.MANIFEST]
        gone = [[layout.MANIFEST, directory] for directory in self.orphans]
        return {"reclaimed": gone if not stuck else [], "failures": stuck}


def rows_of(
    names: Iterable[str],
    survey: Survey,
    keys: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
) -> tuple[DatasetCleanup, ...]:
    """Build one row per type for removed files; `type_by_directory` maps table directories."""
    bytes_of: dict[str, int] = {}
    versions: dict[str, int] = {}
    for name in names:
        key = row_key(name, keys)
        bytes_of[key] = bytes_of.get(key, 0) + survey.size(name)
        versions[key] = versions.get(key, 0) + _is_version(name)
    told = errors or {}
    every = sorted(bytes_of.keys() | told.keys())
    return tuple(
        DatasetCleanup(key, versions.get(key, 0), bytes_of.get(key, 0), told.get(key))
        for key in every
    )


def row_key(name: str, keys: Mapping[str, str]) -> str:
    """Return the report row that a file counts in: its type, if its directory is known."""
    place = place_of(name)
    if name.startswith(MANIFESTS):
        return layout.MANIFEST
    return keys.get(place, place)


def _is_version(name: str) -> bool:
    if kind_of(name) != "_versions" or not name.endswith(".manifest"):
        return False
    return version_number(name) is None or name.startswith(MANIFESTS)
