"""Copy objects unchanged from one root to another, between stores of any kind.

This module also determines which files a table version consists of. A missing object is reported without raising an
error, because the caller decides whether the object is needed.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from omnigraph.errors import StorageError
from omnigraph.records.frozen import record

from .checksums import FileChecksum, FileChecksums, verified_blocks
from .deletions import deletion_files
from .store import Store, version_file_names
from .table import data_files, open_unchecked_version

_CONCURRENT_REQUESTS = 8  # number of files that are copied in parallel
CopiedCallback = Callable[[str], None]


def transfer(
    source: Store,
    target: Store,
    object_names: Iterable[str],
    on_copied: CopiedCallback,
    checksums: FileChecksums | None = None,
) -> bool:
    """Copy objects by name, calling `on_copied` with each copied name; return False if any object is missing.

    Raises `DamagedError` if an object does not match its checksum. A damaged object is not copied.
    """
    copy_object = partial(_copy_object, source, target, on_copied, checksums or {})
    if source.root.is_local and target.root.is_local:
        return all(copy_object(object_name) for object_name in object_names)
    with ThreadPoolExecutor(_CONCURRENT_REQUESTS, "transfer") as pool:
        return all(list(pool.map(copy_object, object_names)))


class _VanishedError(Exception):
    """The object to copy no longer exists."""


def _copy_object(
    source: Store, target: Store, on_copied: CopiedCallback, checksums: FileChecksums, object_name: str
) -> bool:
    try:
        copy_blocks = partial(_copy_blocks, source, target, object_name, checksums.get(object_name))
        target.effects.run("object", object_name, copy_blocks)
    except _VanishedError:
        return False
    on_copied(object_name)
    return True


def _copy_blocks(source: Store, target: Store, object_name: str, expected: FileChecksum | None) -> None:
    # Open the object here rather than earlier, so that a write that never starts does not leave a file open.
    blocks = source.objects.backend.read_blocks(object_name)
    if blocks is None:
        raise _VanishedError
    target.objects.backend.write_blocks(object_name, verified_blocks(object_name, blocks, expected))


@record
class VersionFiles:
    """The files in a version: data files, deletion files and index directories.

    Blob files are not included, because versions do not reference them. They are stored next to their data file.
    """

    data_files: tuple[str, ...]
    deletion_files: tuple[str, ...]
    index_directories: tuple[str, ...]

    @property
    def named_files(self) -> tuple[str, ...]:
        """All files that the version references, except index files."""
        return self.data_files + self.deletion_files


def find_missing_files(store: Store, location: str, version: int) -> list[str]:
    """Return the missing data and deletion files of a version, or only the version file if that file is missing."""
    listed_names = {listed_object.name for listed_object in store.objects.list(location)}
    if listed_names.isdisjoint(version_file_names(location, version)):
        return [f"{location}/_versions/d{version}.manifest"]
    try:
        named_files = version_files(store, location, version).named_files
    except (StorageError, OSError, ValueError, RuntimeError):
        return []  # the version file exists but is damaged in some other way
    return [file_name for file_name in named_files if file_name not in listed_names]


def version_files(store: Store, location: str, version: int) -> VersionFiles:
    """Return the files that the metadata of a table version references."""
    table = open_unchecked_version(store, location, version)
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    segments = [segment for index in table.dataset.describe_indices() for segment in index.segments]
    index_directories = tuple(f"{location}/_indices/{segment.uuid}" for segment in segments)
    return VersionFiles(data_files(table, fragments), deletion_files(table, fragments), index_directories)
