"""Find the pipes, sockets and devices in a local root, because opening one would block or fail.

Nothing is opened: the type of an entry comes from its directory, or from the target of a symbolic link.
"""

import os
from collections.abc import Iterator

from . import layout
from .file_roles import MANIFEST_ROOTS, TABLE_ROOTS
from .store import Store

_CONTROL_ROOTS = (layout.ALL_REFS, layout.COMMITS, layout.SCHEMAS, layout.CHECKSUMS, layout.INTENTS, layout.AUDIT)


def find_special_files(store: Store) -> list[str]:
    """Return the names of all entries in a graph's directories that are neither files nor directories, sorted."""
    if not store.root.is_local:
        return []
    root = store.root.path
    special_paths = (
        path
        for directory in (*MANIFEST_ROOTS, *TABLE_ROOTS, *_CONTROL_ROOTS)
        for path in _special_paths(f"{root}/{directory}")
    )
    return sorted(path.removeprefix(f"{root}/") for path in special_paths)


def _special_paths(directory: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return  # a directory that is missing or cannot be listed is reported by the reads that need it
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _special_paths(entry.path)
        elif not entry.is_file() and not entry.is_dir() and os.path.exists(entry.path):  # noqa: PTH110 - an entry's path
            yield entry.path
