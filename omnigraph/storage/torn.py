"""The newest versions of a cell that a power loss left incomplete: find them, and set them aside.

On a disk a version is synced before it is acknowledged. So newest versions that cannot be read,
while the one right below them can, were never acknowledged. Any other damage is left as it is.
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
_MAGIC = b"LANC"  # the last bytes of every version file of Lance
_BLOCK = 512  # bytes: the unit in which a disk writes


class TornError(StorageError):
    """The newest version was interrupted while it was written, and was never acknowledged."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "open the graph read-write once: this sets the version aside and uses the one before it"


def torn_version(store: Store, location: str) -> int | None:
    """Return the newest version of a cell if it is torn; None if it is not, or if unknown."""
    found = torn_run(store, location)
    return found[0] if found else None


def torn_run(store: Store, location: str) -> list[int]:
    """Return the torn versions above the newest readable one, newest first; empty if unknown."""
    versions = sorted(_versions(store, location), reverse=True)
    run = list(takewhile(lambda one: not _opens(store, location, one), versions))
    if not run or not _there(store, location, run):
        return []
    if not all(looks_torn(_path(store, location, one).read_bytes()) for one in run):
        return []  # complete files: the damage came after the write
    if versions == [1]:
        return [1] if not _path(store, location, 1).read_bytes().strip(b"\0") else []
    # A temporary failure (too many open files) affects every version: so the version right below
    # must open, and these must fail a second time.
    below = run[-1] - 1
    whole = run == list(range(run[0], below, -1)) and below in versions
    return run if whole and not any(_opens(store, location, one) for one in run) else []


def looks_torn(body: bytes) -> bool:
    """Return whether a file looks as if it was never completely written.

    A power loss leaves it short, or with blocks that were never filled. A complete file that cannot
    be read was damaged later, after it may have been acknowledged: it must never be set aside.

    >>> looks_torn(b""), looks_torn(b"x" * 90 + b"LANC"), looks_torn(bytes(1024) + b"LANC")
    (True, False, True)
    """
    blocks = (body[at : at + _BLOCK] for at in range(0, len(body) - _BLOCK + 1, _BLOCK))
    return not body.endswith(_MAGIC) or any(not block.strip(b"\0") for block in blocks)


def set_aside(
    store: Store, location: str, version: int, record: Callable[[str], object]
) -> str | None:
    """Move a torn version out of the way; return its new name, or None if it is no longer torn.

    `record_event` receives an id of this event before the file moves; the id stays the same when
    the move is retried.
    """
    path = _path(store, location, version)
    with reported("unknown"), _locked(path.parent):
        # Check again under the lock: another process may have set it aside and reused the number.
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
        return []  # an object store shows only complete objects
    names = [Path(one.name).name for one in store.objects.list(f"{location}/_versions")]
    numbers = [name.removesuffix(".manifest") for name in names]
    return [_LAST - int(number) for number in numbers if number.isdecimal()]


def _there(store: Store, location: str, versions: Iterable[int]) -> bool:
    """Return whether the files can be read at all: a file without read permission is not torn."""
    try:
        for one in versions:
            _path(store, location, one).read_bytes()
    except OSError:
        return False
    return True


def _opens(store: Store, location: str, version: int) -> bool:
    try:
        # Lance reads a file of zeros as an empty dataset of version 0.
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
    """Hold an exclusive lock on a directory; the lock ends with the process."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
