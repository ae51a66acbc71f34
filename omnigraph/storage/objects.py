"""Small control objects: read, create if absent, list, remove, on a disk and on S3.

Owns the promise that of several creators of one name exactly one wins and knows it. Every object
that is created carries a nonce, because a store may report our own object after a lost answer.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from omnigraph import ids
from omnigraph.errors import StorageError

from .effects import Effects
from .root import Root


@dataclass(frozen=True, slots=True)
class Found:
    """One listed object: its root-relative name, size and store time."""

    name: str
    size: int
    modified: datetime


class Backend(Protocol):
    """What a kind of store must be able to do."""

    def read(self, name: str) -> bytes | None:
        """The bytes of an object; None when there is none; every other failure raises."""

    def create(self, name: str, body: bytes) -> bool:
        """Create an object; False when the name is taken."""

    def replace(self, name: str, body: bytes) -> None:
        """Write an object over an old one (leases only)."""

    def remove(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""

    def list(self, prefix: str) -> Iterator[Found]:
        """All objects whose name starts with `prefix/`, at any depth."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Control objects of one root, as JSON or bytes."""

    backend: Backend
    effects: Effects

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, or None."""
        return self.backend.read(name)

    def read_json(self, name: str) -> dict[str, Any] | None:
        """A JSON object, or None; what cannot be parsed is a permanent `StorageError`."""
        body = self.backend.read(name)
        if body is None:
            return None
        try:
            found: dict[str, Any] = json.loads(body)
        except ValueError as error:
            message = f"control object {name} is not JSON; it was left as it is"
            raise StorageError(message, kind="permanent") from error
        return found

    def create_json(self, name: str, facts: Mapping[str, Any]) -> bool:
        """Create an object if the name is free; True when the object there is ours."""
        mine = {**facts, "nonce": facts.get("nonce") or ids.nonce()}
        body = json.dumps(mine, ensure_ascii=False, sort_keys=True).encode()
        if self.effects.run("object", name, lambda: self.backend.create(name, body)):
            return True
        found = self.read_json(name)
        return found is not None and found.get("nonce") == mine["nonce"]

    def create_bytes(self, name: str, body: bytes) -> None:
        """Create an object under a name that nobody else can have; a lost answer is no error."""
        if not self.effects.run("object", name, lambda: self.backend.create(name, body)):
            if self.backend.read(name) != body:
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


def open_objects(root: Root, effects: Effects, *, durable: bool) -> Objects:
    """The control objects of a root."""
    if root.local:
        return Objects(LocalBackend(Path(root.path), durable), effects)
    from .s3 import S3Backend

    return Objects(S3Backend.connect(root), effects)


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Files below a directory. Creation is a hard link of a finished file: atomic, and first wins."""

    directory: Path
    durable: bool

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None."""
        try:
            return (self.directory / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create(self, name: str, body: bytes) -> bool:
        """Link a finished file to its name."""
        target = self.directory / name
        scratch = self._write_scratch(target, body)
        try:
            os.link(scratch, target)
        except FileExistsError:
            return False
        finally:
            scratch.unlink(missing_ok=True)
        self._sync_directory(target.parent)
        return True

    def replace(self, name: str, body: bytes) -> None:
        """Rename a finished file over its name."""
        target = self.directory / name
        scratch = self._write_scratch(target, body)
        try:
            scratch.replace(target)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        self._sync_directory(target.parent)

    def remove(self, name: str) -> None:
        """Unlink a file."""
        (self.directory / name).unlink(missing_ok=True)

    def list(self, prefix: str) -> Iterator[Found]:
        """Walk the files below a directory; unfinished ones (`name#digits`) are not shown."""
        top = self.directory / prefix
        for path, _, names in os.walk(top):
            for name in names:
                if "#" not in name:
                    yield from self._found(Path(path) / name)

    def _found(self, path: Path) -> Iterator[Found]:
        try:
            facts = path.stat()
        except FileNotFoundError:
            return
        modified = datetime.fromtimestamp(facts.st_mtime, UTC)
        yield Found(str(path.relative_to(self.directory)), facts.st_size, modified)

    def _write_scratch(self, target: Path, body: bytes) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f"{target.name}#{int(ids.nonce(), 16)}")
        with scratch.open("xb") as out:
            out.write(body)
            if self.durable:
                out.flush()
                os.fsync(out.fileno())
        return scratch

    def _sync_directory(self, directory: Path) -> None:
        if self.durable:
            sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power loss."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
