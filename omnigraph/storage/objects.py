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

from omnigraph.errors import StorageError
from omnigraph.values import ids

from .checksums import CHECKSUM_MEMBER, matches_own_checksum, with_own_checksum
from .effects import Effects
from .failures import as_storage_errors
from .root import GraphRoot

_SCRATCH_NAME = re.compile(r"[^#]+#[0-9]+")
_MAX_TIME_GRANULARITY = 1_000_000_000  # nanoseconds: coarser than the timestamps of any file system
TRANSFER_BLOCK_BYTES = 8 << 20  # bytes of a large object held in memory at once


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One listed object: its root-relative name, size and modification time on the store.

    `etag` changes when the name is removed and given to another object.
    """

    name: str
    size: int
    modified: datetime
    etag: str = ""


class ObjectBackend(Protocol):
    """What a kind of store must implement."""

    def read(self, object_name: str) -> bytes | None:
        """Return the bytes of an object; None if it does not exist; other failures raise."""

    def create(self, object_name: str, object_bytes: bytes) -> bool:
        """Create an object; return False if the name is taken."""

    def replace(self, object_name: str, object_bytes: bytes) -> None:
        """Overwrite an object (leases only)."""

    def read_blocks(self, object_name: str) -> Iterator[bytes] | None:
        """Return the bytes of a large object block by block; None if it does not exist."""

    def write_blocks(self, object_name: str, blocks: Iterator[bytes]) -> None:
        """Write a large object block by block; it becomes visible as a whole or not at all."""

    def write_data_file(self, object_name: str, object_bytes: bytes) -> None:
        """Write a data file under a name that no other writer can have."""

    def remove(self, object_name: str) -> None:
        """Remove an object; it is no error if it does not exist."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield all objects whose name starts with `prefix/`, at any depth."""

    def list_unfinished(self, prefix: str) -> Iterator[ListedObject]:
        """Yield unfinished files below a prefix; an object store has none."""

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the directories and the objects directly below `prefix/`."""

    def change_token(self, prefix: str) -> object | None:
        """Return a token that changes with any name directly below `prefix`; None if unknown."""

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return an object's entry without a request; None if absent, or on an object store."""

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first objects directly below `prefix/` in name order, by one request."""


@dataclass(frozen=True, slots=True)
class ControlObjects:
    """The control objects of one root, as JSON or bytes."""

    backend: ObjectBackend
    effects: Effects

    def read(self, object_name: str) -> bytes | None:
        """Return the bytes of an object, or None."""
        return self.backend.read(object_name)

    def read_json(self, object_name: str) -> dict[str, Any] | None:
        """Return a JSON object, or None; one that cannot be parsed is a permanent `StorageError`.

        So is one that does not match its own checksum: it was changed, or moved from another name.
        """
        object_bytes = self.backend.read(object_name)
        if object_bytes is None:
            return None
        try:
            members = json.loads(object_bytes)
        except (ValueError, RecursionError) as error:
            raise _unreadable_object_error(object_name) from error
        if not isinstance(members, dict):
            raise _unreadable_object_error(object_name)
        if not matches_own_checksum(object_name, members):
            raise _unreadable_object_error(object_name, "does not match its checksum")
        members.pop(CHECKSUM_MEMBER, None)
        return members

    def create_json(self, object_name: str, members: Mapping[str, Any]) -> bool:
        """Create an object if the name is free; return True if the object there is ours.

        A damaged object under that name is not ours: the name is taken.
        """
        own_members = with_own_checksum(
            object_name, {**members, "nonce": members.get("nonce") or ids.new_nonce()}
        )
        object_bytes = json.dumps(own_members, ensure_ascii=False, sort_keys=True).encode()
        if self.effects.run(
            "object", object_name, lambda: self.backend.create(object_name, object_bytes)
        ):
            return True
        try:
            existing = self.read_json(object_name)
        except StorageError as error:
            if error.kind != "permanent":
                raise
            return False
        return existing is not None and existing.get("nonce") == own_members["nonce"]

    def create_bytes(self, object_name: str, object_bytes: bytes) -> None:
        """Create an object under a name that no other writer can have; a lost response is fine."""
        created = self.effects.run(
            "object", object_name, lambda: self.backend.create(object_name, object_bytes)
        )
        if not created and self.backend.read(object_name) != object_bytes:
            raise StorageError(f"{object_name} was written twice", kind="permanent")

    def write_lease(self, lease_name: str, members: Mapping[str, Any]) -> None:
        """Write or renew a lease."""
        lease_bytes = json.dumps(dict(members), sort_keys=True).encode()
        self.effects.run("renew", lease_name, lambda: self.backend.replace(lease_name, lease_bytes))

    def remove(self, object_name: str) -> None:
        """Remove an object."""
        self.effects.run("remove", object_name, lambda: self.backend.remove(object_name))

    def list(self, prefix: str) -> list[ListedObject]:
        """Return the objects below a prefix, in name order."""
        return sorted(self.backend.list(prefix), key=lambda listed_object: listed_object.name)

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the directories and objects directly below a prefix, by their full names."""
        return self.backend.list_level(prefix)

    def list_unfinished(self, *prefixes: str) -> Sequence[ListedObject]:
        """Return unfinished files: a writer is still writing them, or was killed meanwhile."""
        return [
            listed_object
            for prefix in prefixes
            for listed_object in self.backend.list_unfinished(prefix)
        ]

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first objects directly below a prefix in name order, by one request."""
        return self.backend.list_first(prefix, max_objects)

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return an object's entry without a request; None if absent or unknown."""
        return self.backend.stat_if_local(object_name)

    def change_token(self, prefix: str) -> object | None:
        """Return a token that changes with any name directly below a prefix; None if unknown."""
        return self.backend.change_token(prefix)


def _unreadable_object_error(
    object_name: str, reason: str = "is not a JSON object"
) -> StorageError:
    message = f"control object {object_name} {reason}; it was not changed"
    return StorageError(message, kind="permanent", effect="none")


def open_objects(root: GraphRoot, effects: Effects, *, durable: bool) -> ControlObjects:
    """Open the control objects of a root."""
    if root.is_local:
        return ControlObjects(LocalBackend(Path(root.path), durable), effects)
    from .s3 import S3Backend

    return ControlObjects(S3Backend.connect(root), effects)


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Files below a directory. Creating one hard-links a finished file to its name: first wins."""

    directory: Path
    durable: bool
    synced_directories: set[Path] = field(default_factory=set, compare=False, repr=False)

    def read(self, object_name: str) -> bytes | None:
        """Return the bytes of a file, or None."""
        with as_storage_errors("none"):
            try:
                return (self.directory / object_name).read_bytes()
            except IsADirectoryError:
                return None
            except OSError as error:
                _raise_unless_absent(error)
                return None

    def create(self, object_name: str, object_bytes: bytes) -> bool:
        """Hard-link a finished file to its name."""
        target_path = self.directory / object_name
        with (
            as_storage_errors("unknown"),
            self._scratch_file(target_path, (object_bytes,)) as scratch,
        ):
            try:
                os.link(scratch, target_path)
                created = True
            except FileExistsError:
                created = False
            # Also sync for the loser: it continues from the winner's object, which must be durable.
            self._sync_names(target_path.parent)
        return created

    def replace(self, object_name: str, object_bytes: bytes) -> None:
        """Rename a finished file over the name."""
        self.write_blocks(object_name, iter((object_bytes,)))

    def read_blocks(self, object_name: str) -> Iterator[bytes] | None:
        """Return the blocks of a file, or None."""
        with as_storage_errors("none"):
            try:
                return _read_file_blocks((self.directory / object_name).open("rb"))
            except FileNotFoundError:
                return None

    def write_blocks(self, object_name: str, blocks: Iterator[bytes]) -> None:
        """Write a file block by block and rename it to its name."""
        target_path = self.directory / object_name
        with as_storage_errors("unknown"), self._scratch_file(target_path, blocks) as scratch:
            scratch.replace(target_path)
            self._sync_names(target_path.parent)

    def write_data_file(self, object_name: str, object_bytes: bytes) -> None:
        """Write a file and rename it to its name."""
        self.write_blocks(object_name, iter((object_bytes,)))

    def remove(self, object_name: str) -> None:
        """Unlink a file durably: a later removal must not survive a power loss without this one."""
        target_path = self.directory / object_name
        with as_storage_errors("unknown"):
            try:
                target_path.unlink()
            except FileNotFoundError:
                return
            self._sync_names(target_path.parent)

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Walk the files below a directory; unfinished ones (`name#digits`) are omitted."""
        with as_storage_errors("none"):
            for folder, _, file_names in os.walk(
                self.directory / prefix, onerror=_raise_unless_absent
            ):
                for file_name in file_names:
                    if "#" not in file_name:
                        # Strings: for ten thousand files, path objects cost more than the stats.
                        yield from self._stat_file(
                            f"{folder}/{file_name}", self._relative_name(f"{folder}/{file_name}")
                        )

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the subdirectories and the files of one directory, files as `list` shows them."""
        folder = self.directory / prefix
        with as_storage_errors("none"):
            try:
                entry_names = sorted(os.listdir(folder))  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return [], []
            subdirectories = [
                f"{prefix}/{entry}" for entry in entry_names if (folder / entry).is_dir()
            ]
            file_names = (
                entry
                for entry in entry_names
                if "#" not in entry and f"{prefix}/{entry}" not in subdirectories
            )
            return subdirectories, [
                listed_object
                for entry in file_names
                for listed_object in self._stat_path(folder / entry)
            ]

    def list_unfinished(self, prefix: str) -> Iterator[ListedObject]:
        """Yield what `list` omits: files being written, or left by a killed writer."""
        with as_storage_errors("none"):
            top_folder = self.directory / prefix
            for folder, subfolders, file_names in os.walk(top_folder, onerror=_raise_unless_absent):
                if not prefix:
                    subfolders.clear()  # directly in the root, look only at its own files
                for file_name in file_names:
                    if _SCRATCH_NAME.fullmatch(file_name):
                        yield from self._stat_path(Path(folder) / file_name)

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """List the names of one directory, and stat the first files."""
        folder = f"{self.directory}/{prefix}"  # a string: this runs before every read
        with as_storage_errors("none"):
            try:
                entry_names = os.listdir(folder)  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return []
            first_names = nsmallest(
                max_objects, (entry for entry in entry_names if "#" not in entry)
            )
            located_names = [
                (f"{folder}/{file_name}", f"{prefix}/{file_name}".lstrip("/"))
                for file_name in first_names
            ]
            return [
                listed_object
                for file_path, file_name in located_names
                for listed_object in self._stat_file(file_path, file_name)
            ]

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Stat one file, however many are in its directory."""
        with as_storage_errors("none"):
            return next(self._stat_file(f"{self.directory}/{object_name}", object_name), None)

    def change_token(self, prefix: str) -> object | None:
        """Return the identity of a directory, or None for a while after each change.

        Within the timestamp granularity, another change could leave the same modification time.
        """
        try:
            folder_stat = os.stat(f"{self.directory}/{prefix}")  # noqa: PTH116 - runs before every read
        except OSError:
            return None
        is_settled = ids.system_clock_nanos() - folder_stat.st_mtime_ns > _MAX_TIME_GRANULARITY
        return (
            (folder_stat.st_dev, folder_stat.st_ino, folder_stat.st_mtime_ns)
            if is_settled
            else None
        )

    def _stat_path(self, file_path: Path) -> Iterator[ListedObject]:
        return self._stat_file(str(file_path), self._relative_name(str(file_path)))

    def _relative_name(self, file_path: str) -> str:
        return file_path.removeprefix(str(self.directory)).lstrip("/")

    def _stat_file(self, file_path: str, object_name: str) -> Iterator[ListedObject]:
        try:
            file_stat = os.stat(file_path)  # noqa: PTH116 - a path object costs more than the stat
        except (FileNotFoundError, NotADirectoryError):
            return
        modified = datetime.fromtimestamp(file_stat.st_mtime, UTC)
        yield ListedObject(
            object_name, file_stat.st_size, modified, f"{file_stat.st_ino}-{file_stat.st_mtime_ns}"
        )

    @contextmanager
    def _scratch_file(self, target_path: Path, blocks: Iterable[bytes]) -> Iterator[Path]:
        """Write a file beside its later name; remove it when the block ends, however it ends."""
        target_path.parent.mkdir(parents=True, exist_ok=True)
        scratch = target_path.with_name(f"{target_path.name}#{int(ids.new_nonce(), 16)}")
        try:
            with scratch.open("xb") as scratch_file:
                for block in blocks:
                    scratch_file.write(block)
                if self.durable:
                    scratch_file.flush()
                    os.fsync(scratch_file.fileno())
            yield scratch
        finally:
            scratch.unlink(missing_ok=True)

    def _sync_names(self, directory: Path) -> None:
        if self.durable:
            sync_directory_path(directory, self.directory, self.synced_directories)


def _read_file_blocks(file: BinaryIO) -> Iterator[bytes]:
    with file, as_storage_errors("none"):
        while block := file.read(TRANSFER_BLOCK_BYTES):
            yield block


def sync_directory_path(directory: Path, top_directory: Path, synced: set[Path]) -> None:
    """Make the names in a directory survive a power loss, and those of its parents below the top.

    A new directory is a name in its parent, too. `synced` are those already synced.
    """
    sync_directory(directory)
    while (
        directory != top_directory
        and top_directory in directory.parents
        and directory not in synced
    ):
        sync_directory(directory.parent)
        synced.add(directory)
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
