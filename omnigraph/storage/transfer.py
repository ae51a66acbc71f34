"""Copy objects from one root to another, unchanged, between any two kinds of store.

Owns the number of concurrent copies, and the list of files of a table version. An object that
vanished meanwhile is reported and not an error: the caller knows whether it is needed.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from omnigraph.errors import StorageError

from .checksums import FileChecksum, FileChecksums, verified_blocks
from .deletions import deletion_files
from .store import Store, version_names
from .table import data_files, open_version

_AT_ONCE = 8  # requests; a disk gains nothing from more than one
Told = Callable[[str], None]


def transfer(
    source: Store,
    target: Store,
    names: Iterable[str],
    told: Told,
    checksums: FileChecksums | None = None,
) -> bool:
    """Copy objects by name; return False if one did not exist. Calls `on_copied` with each name.

    Raises `DamagedError` for an object that does not match its checksum, and does not copy it.
    """
    carry = partial(_carry, source, target, told, checksums or {})
    if source.root.local and target.root.local:
        return all(carry(name) for name in names)
    with ThreadPoolExecutor(_AT_ONCE, "transfer") as pool:
        return all(list(pool.map(carry, names)))


class _VanishedError(Exception):
    """The object does not exist any more."""


def _carry(source: Store, target: Store, told: Told, checksums: FileChecksums, name: str) -> bool:
    try:
        fill = partial(_fill, source, target, name, checksums.get(name))
        target.effects.run("object", name, fill)
    except _VanishedError:
        return False
    told(name)
    return True


def _fill(source: Store, target: Store, name: str, expected: FileChecksum | None) -> None:
    # Open it here, not earlier: an effect that never starts must not leave a file open.
    blocks = source.objects.backend.blocks(name)
    if blocks is None:
        raise _VanishedError
    target.objects.backend.fill(name, verified_blocks(name, blocks, expected))


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a version: data files, deletion files, and directories of indexes.

    Blob files are stored beside their data file, and no version names them.
    """

    data: tuple[str, ...]
    deletions: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Every file that the version names, indexes excepted."""
        return self.data + self.deletions


def missing_files(store: Store, location: str, version: int) -> list[str]:
    """Return the files of a version that a listing lacks, or its version file if that is gone."""
    listed = {one.name for one in store.objects.list(location)}
    if listed.isdisjoint(version_names(location, version)):
        return [f"{location}/_versions/d{version}.manifest"]
    try:
        named = version_files(store, location, version).all
    except (StorageError, OSError, ValueError, RuntimeError):
        return []  # it exists, and is damaged in another way
    return [name for name in named if name not in listed]


def version_files(store: Store, location: str, version: int) -> Files:
    """Return the files of a table version, as its metadata names them."""
    table = open_version(store, location, version)
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    segments = [one for index in table.dataset.describe_indices() for one in index.segments]
    places = tuple(f"{location}/_indices/{one.uuid}" for one in segments)
    return Files(data_files(table, fragments), deletion_files(table, fragments), places)
