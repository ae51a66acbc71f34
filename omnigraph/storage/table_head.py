"""Read the HEAD of a table and the attached versions that external writers have added.

This module determines how each external commit affects the rows, as far as the effect can be proven. This package never
commits to HEAD, and no manifest references HEAD. HEAD therefore never affects the content of a graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from .dataset_cache import DatasetCache
from .failures import AbsentError
from .find_rows import read_rows, rows_digest
from .store import ObjectCache, Store
from .table import Table, fragment_fingerprint, schema_fingerprint

_MAX_VERSION = (1 << 64) - 1
FIRST_VERSION = 1  # HEAD stays at this version unless an external writer moves it
RowEffect = Literal["none", "append", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class AttachedVersion:
    """An attached version, with the operation that created it and its effect on the rows.

    If the version can no longer be read, the effect is `unknown`, and `error` contains the reason.
    """

    version: int
    operation: str
    row_effect: RowEffect
    error: str | None = None


def without_caches(store: Store) -> Store:
    """Return a copy of the store with empty caches, so that reads see the current state."""
    return replace(store, dataset_cache=DatasetCache(), object_cache=ObjectCache())


def list_attached_versions(store: Store, location: str) -> list[int]:
    """Return the attached versions of a table, oldest first, using one listing."""
    file_names = (
        listed_object.name.rpartition("/")[2] for listed_object in store.objects.list(f"{location}/_versions")
    )
    version_stems = (file_name.removesuffix(".manifest") for file_name in file_names if file_name.endswith(".manifest"))
    return sorted(_MAX_VERSION - int(stem) for stem in version_stems if stem.isdecimal())


def read_attached_versions(
    store: Store, location: str, known_version: int, last_version: int
) -> Iterator[AttachedVersion]:
    """Yield each attached version after `known_version`, up to `last_version`, with its effect."""
    present_versions = set(list_attached_versions(store, location))
    for version in range(known_version + 1, last_version + 1):
        if version in present_versions:
            yield _read_attached_version(store, location, version)
        else:
            error = f"attached version {version} no longer exists"
            yield AttachedVersion(version, "Unknown", "unknown", error)


def _read_attached_version(store: Store, location: str, version: int) -> AttachedVersion:
    try:
        dataset = store.open_dataset(location, version)
        transaction = dataset.read_transaction(version)
    except TypeError:  # Lance cannot decode a compaction that remapped an index
        return _classify_by_rows(store, location, version)
    except (OSError, ValueError) as error:
        return AttachedVersion(version, "Unknown", "unknown", f"attached version {version}: {error}")
    if transaction is None:
        reason = f"attached version {version} has no recorded transaction"
        return AttachedVersion(version, "Unknown", "unknown", reason)
    operation_name = type(transaction.operation).__name__
    if operation_name in ("Rewrite", "CreateIndex"):
        return AttachedVersion(version, operation_name, "none")
    if operation_name == "BaseOperation":  # an operation that Lance's Python API does not expose
        return _classify_unnamed_operation(store, location, version)
    return AttachedVersion(version, operation_name, "append" if operation_name == "Append" else "other")


def _classify_unnamed_operation(store: Store, location: str, version: int) -> AttachedVersion:
    """Classify an operation that the Python API of Lance does not expose.

    If nothing changed, the operation only reserved fragment ids.
    """
    previous_table, current_table = (
        Table(location, store.open_dataset(location, table_version)) for table_version in (version - 1, version)
    )
    is_unchanged = _fragment_fingerprints(previous_table) == _fragment_fingerprints(
        current_table
    ) and schema_fingerprint(previous_table) == schema_fingerprint(current_table)
    return (
        AttachedVersion(version, "ReserveFragments", "none")
        if is_unchanged
        else AttachedVersion(version, "Unknown", "other")
    )


def _fragment_fingerprints(table: Table) -> list[Any]:
    return [fragment_fingerprint(fragment.metadata) for fragment in table.dataset.get_fragments()]


def _classify_by_rows(store: Store, location: str, version: int) -> AttachedVersion:
    """Classify an operation that cannot be decoded. If the rows are unchanged, it was a compaction."""
    try:
        previous_rows, current_rows = (
            read_head_rows(store, location, table_version) for table_version in (version - 1, version)
        )
    except (AbsentError, OSError, ValueError) as error:
        return AttachedVersion(version, "Unknown", "unknown", f"attached version {version}: {error}")
    is_unchanged = previous_rows.schema.equals(current_rows.schema) and rows_digest(previous_rows) == rows_digest(
        current_rows
    )
    return AttachedVersion(version, "Rewrite", "none") if is_unchanged else AttachedVersion(version, "Unknown", "other")


def open_head_table(store: Store, location: str, version: int) -> Table:
    """Open a table at an attached version, as external tools see it."""
    return Table(location, store.open_dataset(location, version))


def read_head_rows(store: Store, location: str, version: int) -> pa.Table:
    """Return all rows in an attached version, with blobs as bytes."""
    table = open_head_table(store, location, version)
    return read_rows(table, table.schema.names)
