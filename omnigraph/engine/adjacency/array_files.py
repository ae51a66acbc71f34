"""Files of named arrays in a cache directory, written atomically and read by memory mapping.

This module implements the file format, the byte budget and eviction. Several processes may share a directory. A damaged
or incomplete file is deleted and treated as missing.
"""

import json
import mmap
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

StoredArray = npt.NDArray[Any]
_MAGIC = b"omnigraph arrays 1\n"
_HEADER_BYTES = 4096
_ALIGNMENT = 64
_SUFFIX, _UNFINISHED_SUFFIX = ".arrays", ".unfinished"
# An unfinished file older than this many seconds is considered abandoned by its writer.
_STALE_SECONDS = 3600.0


@dataclass(slots=True, eq=False)
class ArrayFileCache:
    """A directory of array files whose total size is limited by a byte budget."""

    directory: Path
    budget: int
    _is_unwritable: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, file_name: str) -> tuple[dict[str, Any], dict[str, StoredArray]] | None:
        """Return the metadata and the arrays in a file, or None if there is no valid file with this name."""
        file_path = self.directory / f"{file_name}{_SUFFIX}"
        try:
            contents = _read_file(file_path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            with suppress(OSError):
                file_path.unlink()
            return None
        with suppress(OSError):
            os.utime(file_path)  # eviction removes the files with the oldest modification times first
        return contents

    def save(self, file_name: str, facts: Mapping[str, Any], arrays: Mapping[str, StoredArray]) -> bool:
        """Write a file atomically; return False if the file cannot be written."""
        if self._is_unwritable:
            return False
        file_path = self.directory / f"{file_name}{_SUFFIX}"
        draft_path: Path | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor, temporary_name = mkstemp(_UNFINISHED_SUFFIX, f"{file_name}.", self.directory)
            draft_path = Path(temporary_name)
            with os.fdopen(descriptor, "wb") as file:
                file_size = _write_file(file, facts, arrays)
            draft_path.replace(file_path)
        except OSError:
            if draft_path is not None:
                with suppress(OSError):
                    draft_path.unlink()
            self._is_unwritable = not self.directory.is_dir() or not os.access(self.directory, os.W_OK)
            return False
        self._evict_to_budget(file_path, file_size)
        return True

    def names_with_prefix(self, prefix: str) -> list[str]:
        """Return the file names that start with the prefix, most recently used first."""
        matching_files = [
            listed_file for listed_file in self._list_finished_files() if listed_file[2].name.startswith(prefix)
        ]
        return [listed_file[2].name.removesuffix(_SUFFIX) for listed_file in sorted(matching_files, reverse=True)]

    def remove(self, file_name: str) -> None:
        """Remove a file if it exists."""
        with suppress(OSError):
            (self.directory / f"{file_name}{_SUFFIX}").unlink()

    def _list_finished_files(self) -> list[tuple[float, int, Path]]:
        """Remove stale unfinished files, and return the modification time, size and path of each finished file."""
        listed_files = []
        with suppress(OSError):
            for file_path in self.directory.iterdir():
                if file_path.suffix in (_SUFFIX, _UNFINISHED_SUFFIX):
                    with suppress(OSError):  # the file was removed after the directory was listed
                        file_stat = file_path.stat()
                        listed_files.append((file_stat.st_mtime, file_stat.st_size, file_path))
        for listed_file in listed_files:
            if listed_file[2].suffix != _SUFFIX:
                self._remove_if_stale(listed_file, listed_files)
        return [listed_file for listed_file in listed_files if listed_file[2].suffix == _SUFFIX]

    def _remove_if_stale(
        self, unfinished_file: tuple[float, int, Path], listed_files: list[tuple[float, int, Path]]
    ) -> None:
        """Remove an unfinished file if it is so old that its writer must have died.

        The modification time of the newest file is used as the current time.
        """
        if max(listed_file[0] for listed_file in listed_files) - unfinished_file[0] > _STALE_SECONDS:
            with suppress(OSError):
                unfinished_file[2].unlink()

    def _evict_to_budget(self, newest_path: Path, newest_size: int) -> None:
        """Remove the least recently used files until the total size is within the budget."""
        with self._lock:
            oldest_first = sorted(self._list_finished_files())
            total_bytes = sum(listed_file[1] for listed_file in oldest_first)
            for _, file_size, file_path in oldest_first:
                if total_bytes <= self.budget:
                    return
                if file_path != newest_path or newest_size > self.budget:
                    with suppress(OSError):
                        file_path.unlink()
                    total_bytes -= file_size


def _write_file(file: BinaryIO, facts: Mapping[str, Any], arrays: Mapping[str, StoredArray]) -> int:
    """Write a header with the offsets of all arrays, followed by the arrays, and return the file size."""
    directory_entries: list[tuple[str, str, int, int, int]] = []
    next_offset = _HEADER_BYTES
    for array_name, array in arrays.items():
        contiguous = np.ascontiguousarray(array)
        directory_entries.append(
            (array_name, contiguous.dtype.str, len(contiguous), next_offset, _checksum(contiguous))
        )
        next_offset += -(-contiguous.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = json.dumps({"facts": dict(facts), "arrays": directory_entries, "size": next_offset}).encode()
    if len(_MAGIC) + len(header) + 1 > _HEADER_BYTES:
        raise OSError("the metadata does not fit in the file header")
    file.write((_MAGIC + header).ljust(_HEADER_BYTES, b"\n"))
    for array, entry in zip(arrays.values(), directory_entries, strict=True):
        file.seek(entry[3])
        file.write(np.ascontiguousarray(array).data)
    file.truncate(next_offset)
    # Sync before renaming: after a power loss, the final name must not refer to data that was never written.
    file.flush()
    os.fsync(file.fileno())
    return next_offset


def _read_file(file_path: Path) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    with file_path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
            raise ValueError("not an array file")
        description = json.loads(header[len(_MAGIC) :])
        if os.fstat(file.fileno()).st_size != description["size"]:
            raise ValueError("truncated file")
        mapped_file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays = {}
    for array_name, dtype_text, item_count, byte_offset, expected_checksum in description["arrays"]:
        arrays[array_name] = np.frombuffer(mapped_file, np.dtype(dtype_text), item_count, byte_offset)
        if _checksum(arrays[array_name]) != expected_checksum:
            raise ValueError("checksum mismatch")
    return description["facts"], arrays


def _checksum(array: StoredArray) -> int:
    """Return a fast checksum that detects flipped bits, empty pages and truncation."""
    raw_bytes = array.view(np.uint8)
    aligned_length = len(raw_bytes) // 8 * 8
    words = raw_bytes[:aligned_length].view(np.uint64)
    word_sum = int(words.sum(dtype=np.uint64))
    tail_number = int.from_bytes(raw_bytes[aligned_length:].tobytes(), "little")
    return (word_sum * 31 + tail_number + len(raw_bytes)) & 0xFFFFFFFFFFFFFFFF
