"""Objects stored as files below a directory, created by hard-linking and replaced by renaming.

An object is either completely visible or not visible at all. If the backend is durable, the object and its name survive
a power loss.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime
from heapq import nsmallest
from pathlib import Path
from typing import BinaryIO

from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .failures import as_storage_errors
from .object_backend import TRANSFER_BLOCK_BYTES, ListedObject

_SCRATCH_NAME = re.compile(r"[^#]+#[0-9]+")


_MAX_TIME_GRANULARITY = 1_000_000_000  # in nanoseconds; longer than the timestamp granularity of any file system


@record
class LocalBackend:
    """Objects stored as files below a directory.

    An object is created by hard-linking a finished file, so the first creator wins.
    """

    directory: Path
    durable: bool
    synced_directories: set[Path] = field(default_factory=set, compare=False, repr=False)

    def read(self, object_name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        with as_storage_errors("none"):
            try:
                return (self.directory / object_name).read_bytes()
            except IsADirectoryError:
                return None
            except OSError as error:
                _raise_unless_absent(error)
                return None

    def create(self, object_name: str, object_bytes: bytes) -> bool:
        """Create a file by hard-linking a finished file to its name; return False if the name is taken."""
        target_path = self.directory / object_name
        with as_storage_errors("unknown"), self._scratch_file(target_path, (object_bytes,)) as scratch:
            try:
                os.link(scratch, target_path)
                created = True
            except FileExistsError:
                created = False
            # Sync even if another creator won, because this caller continues with that object, which must be durable.
            self._sync_names(target_path.parent)
        return created

    def replace(self, object_name: str, object_bytes: bytes) -> None:
        """Rename a finished file over an existing name."""
        self.write_blocks(object_name, iter((object_bytes,)))

    def read_blocks(self, object_name: str) -> Iterator[bytes] | None:
        """Return the blocks of a file, or None if it does not exist."""
        with as_storage_errors("none"):
            try:
                return _read_file_blocks((self.directory / object_name).open("rb"))
            except FileNotFoundError:
                return None

    def write_blocks(self, object_name: str, blocks: Iterator[bytes]) -> None:
        """Write a temporary file block by block and rename it to its final name."""
        target_path = self.directory / object_name
        with as_storage_errors("unknown"), self._scratch_file(target_path, blocks) as scratch:
            scratch.replace(target_path)
            self._sync_names(target_path.parent)

    def write_data_file(self, object_name: str, object_bytes: bytes) -> None:
        """Write a temporary file and rename it to its final name."""
        self.write_blocks(object_name, iter((object_bytes,)))

    def remove(self, object_name: str) -> None:
        """Unlink a file and sync the removal, so that a power loss never undoes it while a later removal persists."""
        target_path = self.directory / object_name
        with as_storage_errors("unknown"):
            try:
                target_path.unlink()
            except FileNotFoundError:
                return
            self._sync_names(target_path.parent)

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the files below a directory, except unfinished files (`name#digits`)."""
        with as_storage_errors("none"):
            for folder, _, file_names in os.walk(self.directory / prefix, onerror=_raise_unless_absent):
                for file_name in file_names:
                    if "#" not in file_name:
                        # Use strings, because for thousands of files, path objects take more time than the stat calls.
                        yield from self._stat_file(
                            f"{folder}/{file_name}", self._relative_name(f"{folder}/{file_name}")
                        )

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return a directory's subdirectories, and those of the files directly in it that `list` would yield."""
        folder = self.directory / prefix
        with as_storage_errors("none"):
            try:
                entry_names = sorted(os.listdir(folder))  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return [], []
            subdirectories = [f"{prefix}/{entry}" for entry in entry_names if (folder / entry).is_dir()]
            file_names = (
                entry for entry in entry_names if "#" not in entry and f"{prefix}/{entry}" not in subdirectories
            )
            return subdirectories, [
                listed_object for entry in file_names for listed_object in self._stat_path(folder / entry)
            ]

    def list_unfinished(self, prefix: str) -> Iterator[ListedObject]:
        """Yield unfinished files, which `list` omits. Their writers are still running or were killed."""
        with as_storage_errors("none"):
            top_folder = self.directory / prefix
            for folder, subfolders, file_names in os.walk(top_folder, onerror=_raise_unless_absent):
                if not prefix:
                    subfolders.clear()  # at the root, consider only the files directly in it
                for file_name in file_names:
                    if _SCRATCH_NAME.fullmatch(file_name):
                        yield from self._stat_path(Path(folder) / file_name)

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first files in a directory in name order, reading metadata only for these files."""
        folder = f"{self.directory}/{prefix}"  # a string, because this runs before every read
        with as_storage_errors("none"):
            try:
                entry_names = os.listdir(folder)  # noqa: PTH208 - names alone
            except (FileNotFoundError, NotADirectoryError):
                return []
            first_names = nsmallest(max_objects, (entry for entry in entry_names if "#" not in entry))
            located_names = [
                (f"{folder}/{file_name}", f"{prefix}/{file_name}".lstrip("/")) for file_name in first_names
            ]
            return [
                listed_object
                for file_path, file_name in located_names
                for listed_object in self._stat_file(file_path, file_name)
            ]

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return the listing entry of one file without listing its directory, or None if the file does not exist."""
        with as_storage_errors("none"):
            return next(self._stat_file(f"{self.directory}/{object_name}", object_name), None)

    def change_token(self, prefix: str) -> object | None:
        """Return a token for the current state of a directory, or None if it changed very recently or cannot be read.

        A very recent change yields no token, because a second change within the timestamp granularity may leave the
        modification time as it is.
        """
        try:
            folder_stat = os.stat(f"{self.directory}/{prefix}")  # noqa: PTH116 - runs before every read
        except OSError:
            return None
        is_settled = clock_and_ids.system_clock_nanos() - folder_stat.st_mtime_ns > _MAX_TIME_GRANULARITY
        return (folder_stat.st_dev, folder_stat.st_ino, folder_stat.st_mtime_ns) if is_settled else None

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
        yield ListedObject(object_name, file_stat.st_size, modified, f"{file_stat.st_ino}-{file_stat.st_mtime_ns}")

    @contextmanager
    def _scratch_file(self, target_path: Path, blocks: Iterable[bytes]) -> Iterator[Path]:
        """Write a temporary file next to the target, and remove it when the block ends, even after an error."""
        target_path.parent.mkdir(parents=True, exist_ok=True)
        scratch = target_path.with_name(f"{target_path.name}#{int(clock_and_ids.new_nonce(), 16)}")
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
    """Sync the names in a directory and in its parents, up to the top directory, so that they survive a power loss.

    Parents are included because a new directory is an entry in its parent. `synced` contains the directories whose own
    names have already been synced. This function adds the directories that it syncs.
    """
    sync_directory(directory)
    while directory != top_directory and top_directory in directory.parents and directory not in synced:
        sync_directory(directory.parent)
        synced.add(directory)
        directory = directory.parent


def sync_directory(directory: Path) -> None:
    """Sync the names in a directory, so that they survive a power loss."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _raise_unless_absent(error: OSError) -> None:
    """Raise the given error unless it means that a path is missing, or is too long to exist."""
    absent = isinstance(error, FileNotFoundError | NotADirectoryError)
    if not absent and error.errno != errno.ENAMETOOLONG:
        raise error
