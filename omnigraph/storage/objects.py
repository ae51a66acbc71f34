"""Small control objects: read, create if absent, list, remove, on a disk and on S3.

Guarantees that of several creators of one name exactly one wins and knows it. Every created object
contains a nonce: after a lost response, a store may report our own object as already existing.
"""

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nsmallest
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from omnigraph import ids
from omnigraph.errors import StorageError

from .checksums import SELF, matches_own_checksum, with_own_checksum
from .effects import Effects
from .failures import reported
from .root import Root

_SCRATCH = re.compile(r"[^#]+#[0-9]+")
_GRAIN = 1_000_000_000  # nanoseconds: coarser than the timestamps of any file system
BLOCK = 8 << 20  # bytes of a large object held in memory at once


@dataclass(frozen=True, slots=True)
class Found:
    """One listed object: its root-relative name, size and modification time on the store.

    `etag` changes when the name is removed and given to another object.
    """

    name: str
    size: int
    modified: datetime
    mark: str = ""


class Backend(Protocol):
    """What a kind of store must implement."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an object; None if it does not exist; other failures raise."""

    def create(self, name: str, body: bytes) -> bool:
        """Create an object; return False if the name is taken."""

    def replace(self, name: str, body: bytes) -> None:
        """Overwrite an object (leases only)."""

    def blocks(self, name: str) -> Iterator[bytes] | None:
        """Return the bytes of a large object block by block; None if it does not exist."""

    def fill(self, name: str, blocks: Iterator[bytes]) -> None:
        """Write a large object block by block; it becomes visible as a whole or not at all."""

    def send(self, name: str, body: bytes) -> None:
        """Write a data file under a name that no other writer can have."""

    def remove(self, name: str) -> None:
        """Remove an object; it is no error if it does not exist."""

    def list(self, prefix: str) -> Iterator[Found]:
        """Yield all objects whose name starts with `prefix/`, at any depth."""

    def unfinished(self, prefix: str) -> Iterator[Found]:
        """Yield unfinished files below a prefix; an object store has none."""

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """Return the directories and the objects directly below `prefix/`."""

    def stillness(self, prefix: str) -> object | None:
        """Return a token that changes with any name directly below `prefix`; None if unknown."""

    def glance(self, name: str) -> Found | None:
        """Return an object's entry without a request; None if absent, or on an object store."""

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """Return the first objects directly below `prefix/` in name order, by one request."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The control objects of one root, as JSON or bytes."""

    backend: Backend
    effects: Effects

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an object, or None."""
        return self.backend.read(name)

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object, or None; one that cannot be parsed is a permanent `StorageError`.

        So is one that does not match its own checksum: it was changed, or moved from another name.
        """
        body = self.backend.read(name)
        if body is None:
            return None
        try:
            facts = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _unreadable(name) from error
        if not isinstance(facts, dict):
            raise _unreadable(name)
        if not matches_own_checksum(name, facts):
            raise _unreadable(name, "does not match its checksum")
        facts.pop(SELF, None)
        return facts

    def create_json(self, name: str, facts: Mapping[str, Any]) -> bool:
        """Create an object if the name is free; return True if the object there is ours.

        A damaged object under that name is not ours: the name is taken.
        """
        mine = with_own_checksum(name, {**facts, "nonce": facts.get("nonce") or ids.nonce()})
        body = json.dumps(mine, ensure_ascii=False, sort_keys=True).encode()
        if self.effects.run("object", name, lambda: self.backend.create(name, body)):
            return True
        try:
            found = self.read_json(name)
        except StorageError as error:
            if error.kind != "permanent":
                raise
            return False
        return found is not None and found.get("nonce") == mine["nonce"]

    def create_bytes(self, name: str, body: bytes) -> None:
        """Create an object under a name that no other writer can have; a lost response is fine."""
        created = self.effects.run("object", name, lambda: self.backend.create(name, body))
        if not created and self.backend.read(name) != body:
            raise StorageError(f"{name} was written twice", kind="permanent")

    def renew(self, name: str, facts: Mapping[str, Any]) -> None:
        """Write or renew a lease."""
        body = json.dumps(dict(facts), sort_keys=True).encode()
        self.effects.run("renew", name, lambda: self.backend.replace(name, body))

    def remove(self, name: str) -> None:
        """Remove an object."""
        self.effects.run("remove", name, lambda: self.backend.remove(name))

    def list(self, prefix: str) -> list[Found]:
        """Return the objects below a prefix, in name order."""
        return sorted(self.backend.list(prefix), key=lambda one: one.name)

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """Return the directories and objects directly below a prefix, by their full names."""
        return self.backend.level(prefix)

    def unfinished(self, *prefixes: str) -> Sequence[Found]:
        """Return unfinished files: a writer is still writing them, or was killed meanwhile."""
        return [one for prefix in prefixes for one in self.backend.unfinished(prefix)]

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """Return the first objects directly below a prefix in name order, by one request."""
        return self.backend.first(prefix, count)

    def glance(self, name: str) -> Found | None:
        """Return an object's entry without a request; None if absent or unknown."""
        return self.backend.glance(name)

    def stillness(self, prefix: str) -> object | None:
        """Return a token that changes with any name directly below a prefix; None if unknown."""
        return self.backend.stillness(prefix)


def _unreadable(name: str, reason: str = "is not a JSON object") -> StorageError:
    message = f"control object {name} {reason}; it was not changed"
    return StorageError(message, kind="permanent", effect="none")


def open_objects(root: Root, effects: Effects, *, durable: bool) -> Objects:
    """Open the control objects of a root."""
    if root.local:
        return Objects(LocalBackend(Path(root.path), durable), effects)
    from .s3 import S3Backend

    return Objects(S3Backend.connect(root), effects)


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Files below a directory. Creating one hard-links a finished file to its name: first wins."""

    directory: Path
    durable: bool
    known: set[Path] = field(default_factory=set, compare=False, repr=False)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None."""
        with reported("none"):
            try:
                return (self.directory / name).read_bytes()
            except IsADirectoryError:
                return None
            except OSError as error:
                _raise_unless_absent(error)
                return None

    def create(self, name: str, body: bytes) -> bool:
        """Hard-link a finished file to its name."""
        target = self.directory / name
        with reported("unknown"), self._scratch(target, (body,)) as scratch:
            try:
                os.link(scratch, target)
                created = True
            except FileExistsError:
                created = False
            # Also sync for the loser: it continues from the winner's object, which must be durable.
            self._sync(target.parent)
        return created

    def replace(self, name: str, body: bytes) -> None:
        """Rename a finished file over the name."""
        self.fill(name, iter((body,)))

    def blocks(self, name: str) -> Iterator[bytes] | None:
        """Return the blocks of a file, or None."""
        with reported("none"):
            try:
                return _pieces((self.directory / name).open("rb"))
            except FileNotFoundError:
                return None

    def fill(self, name: str, blocks: Iterator[bytes]) -> None:
        """Write a file block by block and rename it to its name."""
        target = self.directory / name
        with reported("unknown"), self._scratch(target, blocks) as scratch:
            scratch.replace(target)
            self._sync(target.parent)

    def send(self, name: str, body: bytes) -> None:
        """Write a file and rename it to its name."""
        self.fill(name, iter((body,)))

    def remove(self, name: str) -> None:
        """Unlink a file durably: a later removal must not survive a power loss without this one."""
        target = self.directory / name
        with reported("unknown"):
            try:
                target.unlink()
            except FileNotFoundError:
                return
            self._sync(target.parent)

    def list(self, prefix: str) -> Iterator[Found]:
        """Walk the files below a directory; unfinished ones (`name#digits`) are omitted."""
        with reported("none"):
            for path, _, names in os.walk(self.directory / prefix, onerror=_raise_unless_absent):
                for name in names:
                    if "#" not in name:
                        # Strings: for ten thousand files, path objects cost more than the stats.
                        yield from self._seen(f"{path}/{name}", self._named(f"{path}/{name}"))

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """Return the subdirectories and the files of one directory, files as `list` shows them."""
        place = self.directory / prefix
        with reported("none"):
            try:
                names = sorted(os.listdir(place))  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return [], []
            places = [f"{prefix}/{one}" for one in names if (place / one).is_dir()]
            others = (one for one in names if "#" not in one and f"{prefix}/{one}" not in places)
            return places, [found for one in others for found in self._found(place / one)]

    def unfinished(self, prefix: str) -> Iterator[Found]:
        """Yield what `list` omits: files being written, or left by a killed writer."""
        with reported("none"):
            top = self.directory / prefix
            for path, places, names in os.walk(top, onerror=_raise_unless_absent):
                if not prefix:
                    places.clear()  # directly in the root, look only at its own files
                for name in names:
                    if _SCRATCH.fullmatch(name):
                        yield from self._found(Path(path) / name)

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """List the names of one directory, and stat the first files."""
        place = f"{self.directory}/{prefix}"  # a string: this runs before every read
        with reported("none"):
            try:
                entries = os.listdir(place)  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return []
            names = nsmallest(count, (one for one in entries if "#" not in one))
            shown = [(f"{place}/{name}", f"{prefix}/{name}".lstrip("/")) for name in names]
            return [found for path, name in shown for found in self._seen(path, name)]

    def glance(self, name: str) -> Found | None:
        """Stat one file, however many are in its directory."""
        with reported("none"):
            return next(self._seen(f"{self.directory}/{name}", name), None)

    def stillness(self, prefix: str) -> object | None:
        """Return the identity of a directory, or None for a while after each change.

        Within the timestamp granularity, another change could leave the same modification time.
        """
        try:
            facts = os.stat(f"{self.directory}/{prefix}")  # noqa: PTH116 - runs before every read
        except OSError:
            return None
        rested = ids.machine_nanos() - facts.st_mtime_ns > _GRAIN
        return (facts.st_dev, facts.st_ino, facts.st_mtime_ns) if rested else None

    def _found(self, path: Path) -> Iterator[Found]:
        return self._seen(str(path), self._named(str(path)))

    def _named(self, path: str) -> str:
        return path.removeprefix(str(self.directory)).lstrip("/")

    def _seen(self, path: str, name: str) -> Iterator[Found]:
        try:
            facts = os.stat(path)  # noqa: PTH116 - a path object costs more than the stat
        except (FileNotFoundError, NotADirectoryError):
            return
        modified = datetime.fromtimestamp(facts.st_mtime, UTC)
        yield Found(name, facts.st_size, modified, f"{facts.st_ino}-{facts.st_mtime_ns}")

    @contextmanager
    def _scratch(self, target: Path, blocks: Iterable[bytes]) -> Iterator[Path]:
        """Write a file beside its later name; remove it when the block ends, however it ends."""
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f"{target.name}#{int(ids.nonce(), 16)}")
        try:
            with scratch.open("xb") as out:
                for block in blocks:
                    out.write(block)
                if self.durable:
                    out.flush()
                    os.fsync(out.fileno())
            yield scratch
        finally:
            scratch.unlink(missing_ok=True)

    def _sync(self, directory: Path) -> None:
        if self.durable:
            sync_names(directory, self.directory, self.known)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file, reported("none"):
        while piece := file.read(BLOCK):
            yield piece


def sync_names(directory: Path, top: Path, known: set[Path]) -> None:
    """Make the names in a directory survive a power loss, and those of its parents below the top.

    A new directory is a name in its parent, too. `synced` are those already synced.
    """
    sync_directory(directory)
    while directory != top and top in directory.parents and directory not in known:
        sync_directory(directory.parent)
        known.add(directory)
        directory = directory.parent


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power loss."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _raise_unless_absent(error: OSError) -> None:
    """Ignore errors for a path that is absent or too long to exist; raise all others."""
    absent = isinstance(error, FileNotFoundError | NotADirectoryError)
    if not absent and error.errno != errno.ENAMETOOLONG:
        raise error
