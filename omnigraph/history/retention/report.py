"""What a cleanup removed, or would remove: one row per type, and the sums.

Owns the words of the report; it decides nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.storage import layout

from .survey import MANIFESTS, Survey, kind_of, place_of, version_number


@dataclass(frozen=True, slots=True)
class DatasetCleanup:
    """One type, or one of the places that hold no rows (`__manifest`, `_commits`, ...)."""

    type_key: str
    old_versions_removed: int = 0
    bytes_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "type_key": self.type_key,
            "old_versions_removed": self.old_versions_removed,
            "bytes_removed": self.bytes_removed,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The report of a run; `preview` says that nothing was touched.

    `unreferenced_paths` are directories of tables that nothing names any more; they and their
    `unreferenced_bytes` stay unless they were asked for. `orphans` are directories of branches and
    tags that were never named. `spared_bytes` would have gone without the grace, told when nothing
    else goes. `deleted_rows` are those that an erasure would write away, told by its preview.
    `held_by` are the tags and the operations under way that keep what they name. `engine` says who
    did the work. `unnamed` are branches and tags that lost their ref object: nothing of them goes.
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
        """All bytes together."""
        return sum(one.bytes_removed for one in self.datasets)

    @property
    def old_versions_removed(self) -> int:
        """All versions together."""
        return sum(one.old_versions_removed for one in self.datasets)

    @property
    def failed(self) -> tuple[DatasetCleanup, ...]:
        """The rows of which something could not be removed; the next run tries again."""
        return tuple(one for one in self.datasets if one.error is not None)

    def __repr__(self) -> str:
        what = "would remove" if self.preview else "removed"
        versions, size = self.old_versions_removed, self.bytes_removed
        return f"<Cleanup {what} {versions} old versions, {size} bytes>"

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
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
        """Directories that went, and why others could not."""
        failed = [[one.type_key, one.error] for one in self.failed if one.error is not None]
        stuck = [one for one in failed if one[0] == layout.MANIFEST]
        gone = [[layout.MANIFEST, one] for one in self.orphans]
        return {"reclaimed": gone if not stuck else [], "failures": stuck}


def rows_of(
    names: Iterable[str],
    survey: Survey,
    keys: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
) -> tuple[DatasetCleanup, ...]:
    """One row per type for what was removed; `keys` are the types of directories."""
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
    """The row that a file counts in: its type, if its directory is known."""
    place = place_of(name)
    if name.startswith(MANIFESTS):
        return layout.MANIFEST
    return keys.get(place, place)


def _is_version(name: str) -> bool:
    if kind_of(name) != "_versions" or not name.endswith(".manifest"):
        return False
    return version_number(name) is None or name.startswith(MANIFESTS)
