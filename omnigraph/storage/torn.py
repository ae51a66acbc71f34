"""The newest versions of a cell, torn by a power loss: found, and set aside.

On a disk a version is synced before it is acknowledged. So the newest ones that cannot be read,
while the one right below them can, were promised to nobody. All else that cannot be read is left.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import lance

from omnigraph import ids
from omnigraph.errors import StorageError

from .failures import reported
from .layout import ASIDE, fnv1a64
from .objects import sync_directory
from .store import Store

_LAST = (1 << 64) - 1
_MAGIC = b"LANC"  # how every version file of Lance ends
_BLOCK = 512  # bytes: what a disk writes at once


class TornError(StorageError):
    """The newest version was cut off while it was written, and was never acknowledged."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "open the graph read-write once: this version is set aside, the one before it stands"


def torn_version(store: Store, location: str) -> int | None:
    """The newest version of a cell if it is torn; None when it is not, or when nobody can tell."""
    found = torn_run(store, location)
    return found[0] if found else None


def torn_run(store: Store, location: str) -> list[int]:
    """The torn versions above the newest readable one, newest first; none when nobody can tell."""
    versions = sorted(_versions(store, location), reverse=True)
    run = list(takewhile(lambda one: not _opens(store, location, one), versions))
    if not run or not _there(store, location, run):
        return []
    if not all(looks_torn(_path(store, location, one).read_bytes()) for one in run):
        return []  # written to its end: whatever is wrong with it came later
    if versions == [1]:
        return [1] if not _path(store, location, 1).read_bytes().strip(b"\0") else []
    # A failure that passes (too many open files) meets every version: the one right below must
    # open, and these must fail again.
    below = run[-1] - 1
    whole = run == list(range(run[0], below, -1)) and below in versions
    return run if whole and not any(_opens(store, location, one) for one in run) else []


def looks_torn(body: bytes) -> bool:
    """Whether a file looks like one that was never written to its end.

    A power loss leaves it short, or with blocks that were never filled. A whole file that cannot be
    read was damaged later, after it may have been acknowledged: it must never be set aside.

    >>> looks_torn(b""), looks_torn(b"x" * 90 + b"LANC"), looks_torn(bytes(1024) + b"LANC")
    (True, False, True)
    """
    blocks = (body[at : at + _BLOCK] for at in range(0, len(body) - _BLOCK + 1, _BLOCK))
    return not body.endswith(_MAGIC) or any(not block.strip(b"\0") for block in blocks)


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


def _there(store: Store, location: str, versions: Iterable[int]) -> bool:
    """Whether the files can be read, whatever is in them: what nobody may read is not torn."""
    try:
        for one in versions:
            _path(store, location, one).read_bytes()
    except OSError:
        return False
    return True


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
