"""Small control objects: read, create if absent, list, remove, on a disk and on S3.

Owns the promise that of several creators of one name exactly one wins and knows it. Every object
that is created carries a nonce, because a store may report our own object after a lost answer.
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
_GRAIN = 1_000_000_000  # nanoseconds: more than any file system rounds its times to
BLOCK = 8 << 20  # bytes of a large object that are held in memory at once


@dataclass(frozen=True, slots=True)
class Found:
    """One listed object: its root-relative name, size and store time.

    `mark` differs when the name was removed and given to something else.
    """

    name: str
    size: int
    modified: datetime
    mark: str = ""


class Backend(Protocol):
    """What a kind of store must be able to do."""

    def read(self, name: str) -> bytes | None:
        """The bytes of an object; None when there is none; every other failure raises."""

    def create(self, name: str, body: bytes) -> bool:
        """Create an object; False when the name is taken."""

    def replace(self, name: str, body: bytes) -> None:
        """Write an object over an old one (leases only)."""

    def blocks(self, name: str) -> Iterator[bytes] | None:
        """The bytes of a large object piece by piece; None when there is none."""

    def fill(self, name: str, blocks: Iterator[bytes]) -> None:
        """Write a large object piece by piece; it is there as a whole or not at all."""

    def send(self, name: str, body: bytes) -> None:
        """Write a data file under a name that nobody else can have."""

    def remove(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""

    def list(self, prefix: str) -> Iterator[Found]:
        """All objects whose name starts with `prefix/`, at any depth."""

    def unfinished(self, prefix: str) -> Iterator[Found]:
        """Files below a prefix that are no objects yet; an object store has none."""

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """The directories and the objects right below `prefix/`."""

    def stillness(self, prefix: str) -> object | None:
        """What changes when any name directly below `prefix` does; None where nothing tells."""

    def glance(self, name: str) -> Found | None:
        """An object, told without a request; None also where that takes one."""

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """The first objects right below `prefix/` in the order of names, by one request."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Control objects of one root, as JSON or bytes."""

    backend: Backend
    effects: Effects

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, or None."""
        return self.backend.read(name)

    def read_json(self, name: str) -> dict[str, Any] | None:
        """A JSON object, or None; what cannot be parsed is a permanent `StorageError`.

        So is one that does not match its own checksum: changed, or moved here from another name.
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
        """Create an object if the name is free; True when the object there is ours.

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
        """Create an object under a name that nobody else can have; a lost answer is no error."""
        created = self.effects.run("object", name, lambda: self.backend.create(name, body))
        if not created and self.backend.read(name) != body:
            raise StorageError(f"{name} was written twice", kind="permanent")

    def renew(self, name: str, facts: Mapping[str, Any]) -> None:
        """Write a lease."""
        body = json.dumps(dict(facts), sort_keys=True).encode()
        self.effects.run("renew", name, lambda: self.backend.replace(name, body))

    def remove(self, name: str) -> None:
        """Remove an object."""
        self.effects.run("remove", name, lambda: self.backend.remove(name))

    def list(self, prefix: str) -> list[Found]:
        """The objects below a prefix, in name order."""
        return sorted(self.backend.list(prefix), key=lambda one: one.name)

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """The directories and the objects right below a prefix, by their whole names."""
        return self.backend.level(prefix)

    def unfinished(self, *prefixes: str) -> Sequence[Found]:
        """Files that are no objects yet: somebody writes them, or was killed while it did."""
        return [one for prefix in prefixes for one in self.backend.unfinished(prefix)]

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """The first objects right below a prefix in name order: one request, however many."""
        return self.backend.first(prefix, count)

    def glance(self, name: str) -> Found | None:
        """An object, without a request; None when it is not there or nobody can tell."""
        return self.backend.glance(name)

    def stillness(self, prefix: str) -> object | None:
        """What changes when any name right below a prefix does, without a request; else None."""
        return self.backend.stillness(prefix)


def _unreadable(name: str, reason: str = "is not a JSON object") -> StorageError:
    message = f"control object {name} {reason}; it was left as it is"
    return StorageError(message, kind="permanent", effect="none")


def open_objects(root: Root, effects: Effects, *, durable: bool) -> Objects:
    """The control objects of a root."""
    if root.local:
        return Objects(LocalBackend(Path(root.path), durable), effects)
    from .s3 import S3Backend

    return Objects(S3Backend.connect(root), effects)


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Files below a directory. Creating one links a finished file to its name: first wins."""

    directory: Path
    durable: bool
    known: set[Path] = field(default_factory=set, compare=False, repr=False)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None."""
        with reported("none"):
            try:
                return (self.directory / name).read_bytes()
            except IsADirectoryError:
                return None
            except OSError as error:
                _raise_unless_absent(error)
                return None

    def create(self, name: str, body: bytes) -> bool:
        """Link a finished file to its name."""
        target = self.directory / name
        with reported("unknown"), self._scratch(target, (body,)) as scratch:
            try:
                os.link(scratch, target)
                created = True
            except FileExistsError:
                created = False
            # Also for who came second: it goes on from here, so the first must be there to stay.
            self._sync(target.parent)
        return created

    def replace(self, name: str, body: bytes) -> None:
        """Rename a finished file over its name."""
        self.fill(name, iter((body,)))

    def blocks(self, name: str) -> Iterator[bytes] | None:
        """A file piece by piece, or None."""
        with reported("none"):
            try:
                return _pieces((self.directory / name).open("rb"))
            except FileNotFoundError:
                return None

    def fill(self, name: str, blocks: Iterator[bytes]) -> None:
        """Rename a file that was written piece by piece to its name."""
        target = self.directory / name
        with reported("unknown"), self._scratch(target, blocks) as scratch:
            scratch.replace(target)
            self._sync(target.parent)

    def send(self, name: str, body: bytes) -> None:
        """Rename a finished file to its name."""
        self.fill(name, iter((body,)))

    def remove(self, name: str) -> None:
        """Unlink a file, for good: what is removed after it must not be gone alone."""
        target = self.directory / name
        with reported("unknown"):
            try:
                target.unlink()
            except FileNotFoundError:
                return
            self._sync(target.parent)

    def list(self, prefix: str) -> Iterator[Found]:
        """Walk the files below a directory; unfinished ones (`name#digits`) are not shown."""
        with reported("none"):
            for path, _, names in os.walk(self.directory / prefix, onerror=_raise_unless_absent):
                for name in names:
                    if "#" not in name:
                        # Text: of ten thousand files, path objects would cost more than the looks.
                        yield from self._seen(f"{path}/{name}", self._named(f"{path}/{name}"))

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """The names of one directory, apart: directories, and files as `list` shows them."""
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
        """What `list` does not show: files that somebody writes, or wrote when it was killed."""
        with reported("none"):
            top = self.directory / prefix
            for path, places, names in os.walk(top, onerror=_raise_unless_absent):
                if not prefix:
                    places.clear()  # of the root itself only its own files
                for name in names:
                    if _SCRATCH.fullmatch(name):
                        yield from self._found(Path(path) / name)

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """Look at the names of one directory, and at the first files of them."""
        place = f"{self.directory}/{prefix}"  # text: this is asked before every read
        with reported("none"):
            try:
                names = nsmallest(count, (one for one in os.listdir(place) if "#" not in one))  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return []
            shown = [(f"{place}/{name}", f"{prefix}/{name}".lstrip("/")) for name in names]
            return [found for path, name in shown for found in self._seen(path, name)]

    def glance(self, name: str) -> Found | None:
        """A look at one file, however many are beside it."""
        with reported("none"):
            return next(self._seen(f"{self.directory}/{name}", name), None)

    def stillness(self, prefix: str) -> object | None:
        """The directory while it rests; None for a while after every change."""
        try:
            facts = os.stat(f"{self.directory}/{prefix}")  # noqa: PTH116 - asked before every read
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
            facts = os.stat(path)  # noqa: PTH116 - a path object costs more than the look
        except (FileNotFoundError, NotADirectoryError):
            return
        modified = datetime.fromtimestamp(facts.st_mtime, UTC)
        yield Found(name, facts.st_size, modified, f"{facts.st_ino}-{facts.st_mtime_ns}")

    @contextmanager
    def _scratch(self, target: Path, blocks: Iterable[bytes]) -> Iterator[Path]:
        """A finished file beside its later name; gone when the block ends, however it ends."""
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
    """Make the names in a directory survive a power loss, and the way to it from `top`.

    A directory that Lance or we made is a name too; `known` are those that need no second look.
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
    """A path that is absent, or too long to exist, holds nothing; all else is a failure."""
    absent = isinstance(error, FileNotFoundError | NotADirectoryError)
    if not absent and error.errno != errno.ENAMETOOLONG:
        raise error
