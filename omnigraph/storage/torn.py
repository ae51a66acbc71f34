"""The newest version of a cell, torn by a power loss: found, and set aside.

On a disk a version is synced before it is acknowledged. So one that cannot be read, while the one
before it can, was promised to nobody. Anything else that cannot be read is left alone.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lance

from omnigraph import ids
from omnigraph.errors import StorageError

from .failures import reported
from .layout import ASIDE, fnv1a64
from .objects import sync_directory
from .store import Store

_LAST = (1 << 64) - 1


class TornError(StorageError):
    """The newest version was cut off while it was written, and was never acknowledged."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "open the graph read-write once: this version is set aside, the one before it stands"


def torn_version(store: Store, location: str) -> int | None:
    """The newest version of a cell if it is torn; None when it is not, or when nobody can tell."""
    newest = max(_versions(store, location), default=0)
    if newest == 0 or _opens(store, location, newest):
        return None
    if newest == 1:
        return 1 if not _path(store, location, 1).read_bytes().strip(b"\0") else None
    # A failure that passes (too many open files) meets every version: the one before must open,
    # and this one must fail again.
    before = _opens(store, location, newest - 1)
    return newest if before and not _opens(store, location, newest) else None


def set_aside(
    store: Store, location: str, version: int, record: Callable[[str], object]
) -> str | None:
    """Move a torn version out of the way; gives its new name, None when it is torn no longer.

    `record` is told an id of this event before the file moves; the id is the same when the move is
    tried again.
    """
    path = _path(store, location, version)
    with reported("unknown"), _locked(path.parent):
        # Once more, now that nobody else does the same: the number may have been used again.
        if torn_version(store, location) != version:
            return None
        record(f"torn-{fnv1a64(location)}-{version}-{path.stat().st_mtime_ns}")
        target = f"{ASIDE}/{ids.new_ulid()}-{path.name}"
        store.effects.run(
            "remove", f"{location}/_versions/{path.name}", lambda: _move(store, path, target)
        )
        return target


def _versions(store: Store, location: str) -> list[int]:
    if not store.root.local:
        return []  # an object store shows an object when it is whole
    names = [Path(one.name).name for one in store.objects.list(f"{location}/_versions")]
    numbers = [name.removesuffix(".manifest") for name in names]
    return [_LAST - int(number) for number in numbers if number.isdecimal()]


def _opens(store: Store, location: str, version: int) -> bool:
    try:
        # Lance takes a file of zeros for an empty dataset of version 0.
        found: int = lance.dataset(store.root.at(location), version=version).version
    except (OSError, ValueError):
        return False
    return found == version


def _path(store: Store, location: str, version: int) -> Path:
    return Path(store.root.path, location, "_versions", f"{_LAST - version:020}.manifest")


def _move(store: Store, path: Path, name: str) -> None:
    target = Path(store.root.path, name)
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    for directory in (target.parent, path.parent, target.parent.parent):
        sync_directory(directory)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep others that would do the same out; the lock goes with the process."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
