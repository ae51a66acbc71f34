"""Carries objects from one root to another, as they are, between any two kinds of store.

Owns how many are under way at once, and which files a table version consists of. A name that
vanished meanwhile is told, never an error: the caller knows whether it needs it.
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
    """Copy objects by name; False when one of them was not there. `told` hears each name.

    Raises `DamagedError` for an object that does not match its checksum, and leaves it out.
    """
    carry = partial(_carry, source, target, told, checksums or {})
    if source.root.local and target.root.local:
        return all(carry(name) for name in names)
    with ThreadPoolExecutor(_AT_ONCE, "transfer") as pool:
        return all(list(pool.map(carry, names)))


class _VanishedError(Exception):
    """There is no such object any more."""


def _carry(source: Store, target: Store, told: Told, checksums: FileChecksums, name: str) -> bool:
    try:
        fill = partial(_fill, source, target, name, checksums.get(name))
        target.effects.run("object", name, fill)
    except _VanishedError:
        return False
    told(name)
    return True


def _fill(source: Store, target: Store, name: str, expected: FileChecksum | None) -> None:
    # Opened here, not before: an effect that never begins must not leave a file open.
    blocks = source.objects.backend.blocks(name)
    if blocks is None:
        raise _VanishedError
    target.objects.backend.fill(name, verified_blocks(name, blocks, expected))


@dataclass(frozen=True, slots=True)
class Files:
    """What a version consists of: data files, deletion files, and directories of indexes.

    Blobs stand beside their data file, and no version names them.
    """

    data: tuple[str, ...]
    deletions: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Every file that the version names."""
        return self.data + self.deletions


def missing_files(store: Store, location: str, version: int) -> list[str]:
    """The files that a version needs and that a listing does not show; its own, if that is gone."""
    listed = {one.name for one in store.objects.list(location)}
    if listed.isdisjoint(version_names(location, version)):
        return [f"{location}/_versions/d{version}.manifest"]
    try:
        named = version_files(store, location, version).all
    except (StorageError, OSError, ValueError, RuntimeError):
        return []  # there, and damaged in another way
    return [name for name in named if name not in listed]


def version_files(store: Store, location: str, version: int) -> Files:
    """What a version of a table consists of, by its own account."""
    table = open_version(store, location, version)
    fragments = [one.metadata for one in table.dataset.get_fragments()]
    segments = [one for index in table.dataset.describe_indices() for one in index.segments]
    places = tuple(f"{location}/_indices/{one.uuid}" for one in segments)
    return Files(data_files(table, fragments), deletion_files(table, fragments), places)
