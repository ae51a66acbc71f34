"""Files just written to a local disk: sync them and compute their checksums in one pass.

Includes the blob files of a data file, which are in a directory of its name. Works on strings
instead of path objects: a small write waits for this, and handles only a few files.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from .checksums import BLOCK, FileChecksum
from .objects import sync_names

_ROWS, _BLOB = ".lance", ".blob"


def visit_files(
    root: str,
    names: Iterable[str],
    known: Mapping[str, FileChecksum] | None,
    durable: set[Path] | None,
) -> dict[str, FileChecksum]:
    """Return the checksums of files, computing those not known; sync the files if requested.

    `known_checksums` is None to compute none. `synced_directories` are directories that need no
    sync of their own name, None to sync nothing. A file that cleanup removed raises
    `FileNotFoundError` if it was to be synced; otherwise it gets no checksum.
    """
    checksums = dict(known or {})
    directories: set[str] = set()
    for name in _with_blobs(root, names):
        path = f"{root}/{name}"
        directories.add(path.rpartition("/")[0])
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - see above
                if known is not None and name not in checksums:
                    checksums[name] = checksum_file(file)
                if durable is not None:
                    _fsync(file.fileno())
        except FileNotFoundError:
            if durable is not None:
                raise
    if durable is not None:
        for directory in directories:
            sync_names(Path(directory), Path(root), durable)
    return checksums


def _fsync(handle: int) -> None:
    os.fsync(handle)


def checksum_file(file: BinaryIO) -> FileChecksum:
    """Return the checksum of an open file."""
    return FileChecksum.of_blocks(iter(lambda: file.read(BLOCK), b""))


def _with_blobs(root: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        directory = f"{root}/{name.removesuffix(_ROWS)}"
        if name.endswith(_ROWS) and os.path.isdir(directory):  # noqa: PTH112 - see above
            for path in sorted(Path(directory).rglob(f"*{_BLOB}")):
                yield path.relative_to(root).as_posix()
