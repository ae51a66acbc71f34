"""Sync files that were just written to a local disk, and compute their checksums in the same pass.

Blob files are included. They are in a directory named after their data file. Paths are strings rather than path
objects, because strings are faster and even the smallest write waits for this code.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from .checksums import CHECKSUM_BLOCK_BYTES, FileChecksum
from .local_objects import sync_directory_path

_DATA_SUFFIX, _BLOB_SUFFIX = ".lance", ".blob"


def checksum_and_sync(
    root: str,
    file_names: Iterable[str],
    known_checksums: Mapping[str, FileChecksum] | None,
    synced_directories: set[Path] | None,
) -> dict[str, FileChecksum]:
    """Return the checksums of files, computing the unknown ones, and sync the files if requested.

    If `known_checksums` is None, no checksums are computed. `synced_directories` contains the directories whose names
    have already been synced; if it is None, nothing is synced. A file that no longer exists gets no checksum. If files
    are synced, such a file causes a `FileNotFoundError`.
    """
    checksums = dict(known_checksums or {})
    directories: set[str] = set()
    for file_name in _include_blob_files(root, file_names):
        file_path = f"{root}/{file_name}"
        directories.add(file_path.rpartition("/")[0])
        try:
            with open(file_path, "rb") as file:  # noqa: PTH123 - see above
                if known_checksums is not None and file_name not in checksums:
                    checksums[file_name] = checksum_file(file)
                if synced_directories is not None:
                    _sync_handle(file.fileno())
        except FileNotFoundError:
            if synced_directories is not None:
                raise
    if synced_directories is not None:
        for directory in directories:
            sync_directory_path(Path(directory), Path(root), synced_directories)
    return checksums


def _sync_handle(handle: int) -> None:
    os.fsync(handle)


def checksum_file(file: BinaryIO) -> FileChecksum:
    """Return the checksum of an open file."""
    return FileChecksum.of_blocks(iter(lambda: file.read(CHECKSUM_BLOCK_BYTES), b""))


def _include_blob_files(root: str, file_names: Iterable[str]) -> Iterator[str]:
    for file_name in file_names:
        yield file_name
        blob_directory = f"{root}/{file_name.removesuffix(_DATA_SUFFIX)}"
        if file_name.endswith(_DATA_SUFFIX) and os.path.isdir(blob_directory):  # noqa: PTH112 - see above
            for blob_path in sorted(Path(blob_directory).rglob(f"*{_BLOB_SUFFIX}")):
                yield blob_path.relative_to(root).as_posix()
