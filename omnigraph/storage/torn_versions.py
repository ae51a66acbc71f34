"""Find the newest versions of a cell if a power loss left them incomplete, and set them aside.

On a local disk, a version is synced before it is acknowledged. Therefore, if the newest versions cannot be read but the
version directly below them can, the newest versions were never acknowledged. This module ignores any other damage.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from omnigraph.errors import StorageError
from omnigraph.values import clock_and_ids

from .dataset_cache import load_lance
from .failures import as_storage_errors, panics_as_errors
from .layout import ASIDE, fnv1a64
from .local_objects import sync_directory
from .store import Store

_MAX_VERSION = (1 << 64) - 1
_FILE_END_MAGIC = b"LANC"  # the last bytes of every Lance version file
_DISK_BLOCK_BYTES = 512  # size in bytes of the blocks in which a disk writes


class TornVersionError(StorageError):
    """The write of the newest version was interrupted, and the version was never acknowledged."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "open the graph for writing once to set the version aside and use the previous version"


def find_torn_version(store: Store, location: str) -> int | None:
    """Return the newest version of a cell if it is definitely torn, or None otherwise."""
    torn_versions = find_torn_versions(store, location)
    return torn_versions[0] if torn_versions else None


def find_torn_versions(store: Store, location: str) -> list[int]:
    """Return the torn versions above the newest readable version, newest first. Uncertain cases are not included."""
    versions = sorted(_list_versions(store, location), reverse=True)
    unreadable_versions = list(
        takewhile(lambda unreadable_version: not _can_open(store, location, unreadable_version), versions)
    )
    if not unreadable_versions or not _are_files_readable(store, location, unreadable_versions):
        return []
    if not all(
        looks_torn(_version_path(store, location, unreadable_version).read_bytes())
        for unreadable_version in unreadable_versions
    ):
        return []  # the files are complete, so the damage occurred after the write
    if versions == [1]:
        return [1] if not _version_path(store, location, 1).read_bytes().strip(b"\0") else []
    # A temporary failure, such as too many open files, would affect every version. The version right below must
    # therefore open successfully, and these versions must fail a second time.
    version_below = unreadable_versions[-1] - 1
    is_contiguous = (
        unreadable_versions == list(range(unreadable_versions[0], version_below, -1)) and version_below in versions
    )
    return (
        unreadable_versions
        if is_contiguous
        and not any(_can_open(store, location, unreadable_version) for unreadable_version in unreadable_versions)
        else []
    )


def looks_torn(file_bytes: bytes) -> bool:
    """Return whether a file appears to have been written only in part.

    After a power loss, a file may be too short or may contain blocks that were never written. A complete file that
    cannot be read was damaged later, possibly after its version was acknowledged, so it must never be set aside.

    >>> looks_torn(b""), looks_torn(b"x" * 90 + b"LANC"), looks_torn(bytes(1024) + b"LANC")
    (True, False, True)
    """
    blocks = (
        file_bytes[block_start : block_start + _DISK_BLOCK_BYTES]
        for block_start in range(0, len(file_bytes) - _DISK_BLOCK_BYTES + 1, _DISK_BLOCK_BYTES)
    )
    return not file_bytes.endswith(_FILE_END_MAGIC) or any(not block.strip(b"\0") for block in blocks)


def set_aside_version(store: Store, location: str, version: int, record_event: Callable[[str], object]) -> str | None:
    """Set a torn version aside by renaming its file; return the new name, or None if the version is no longer torn.

    Before the file is renamed, `record_event` is called with an event id that stays the same if the rename is retried.
    """
    version_path = _version_path(store, location, version)
    with as_storage_errors("unknown"), _directory_lock(version_path.parent):
        # Check again under the lock, because another process may have set the version aside and reused its number.
        if find_torn_version(store, location) != version:
            return None
        record_event(f"torn-{fnv1a64(location)}-{version}-{version_path.stat().st_mtime_ns}")
        aside_name = f"{ASIDE}/{clock_and_ids.new_ulid()}-{version_path.name}"
        store.effects.run(
            "remove", f"{location}/_versions/{version_path.name}", lambda: _move_file(store, version_path, aside_name)
        )
        return aside_name


def _list_versions(store: Store, location: str) -> list[int]:
    if not store.root.is_local:
        return []  # an object store exposes only complete objects
    file_names = [Path(listed_object.name).name for listed_object in store.objects.list(f"{location}/_versions")]
    reversed_numbers = [file_name.removesuffix(".manifest") for file_name in file_names]
    return [_MAX_VERSION - int(reversed_number) for reversed_number in reversed_numbers if reversed_number.isdecimal()]


def _are_files_readable(store: Store, location: str, versions: Iterable[int]) -> bool:
    """Return whether the version files can be read.

    If the result is False, for example because read permission is missing, the versions do not count as torn.
    """
    try:
        for version in versions:
            _version_path(store, location, version).read_bytes()
    except OSError:
        return False
    return True


def _can_open(store: Store, location: str, version: int) -> bool:
    try:
        # Lance reads a file of zeros as an empty dataset at version 0.
        with panics_as_errors():
            opened_version: int = load_lance().dataset(store.root.uri_of(location), version=version).version
    except (OSError, ValueError):
        return False
    return opened_version == version


def _version_path(store: Store, location: str, version: int) -> Path:
    return Path(store.root.path, location, "_versions", f"{_MAX_VERSION - version:020}.manifest")


def _move_file(store: Store, version_path: Path, aside_name: str) -> None:
    target_path = Path(store.root.path, aside_name)
    target_path.parent.mkdir(exist_ok=True)
    version_path.rename(target_path)
    for directory in (target_path.parent, version_path.parent, target_path.parent.parent):
        sync_directory(directory)


@contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    """Hold an exclusive lock on a directory while the block runs. The lock is also released if the process dies."""
    directory_handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(directory_handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory_handle)
