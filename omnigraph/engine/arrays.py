"""Named arrays in files of a cache directory: written atomically, read by memory mapping.

Owns the format of these files, their byte budget and their eviction. Several processes may share a
directory. A damaged or incomplete file is removed and treated as absent.
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

Array = npt.NDArray[Any]
_MAGIC = b"omnigraph arrays 1\n"
_HEAD = 4096
_ALIGNED = 64
_SUFFIX, _UNFINISHED = ".arrays", ".unfinished"
_STALE = 3600.0  # seconds after which an unfinished file is considered abandoned by its writer


@dataclass(slots=True, eq=False)
class Disk:
    """A directory of array files within a budget of bytes."""

    directory: Path
    budget: int
    _refused: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, name: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the facts and arrays stored under a name; None if there is no valid file."""
        path = self.directory / f"{name}{_SUFFIX}"
        try:
            found = _read(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)  # the modification time orders eviction: least recently used first
        return found

    def save(self, name: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> bool:
        """Write a file atomically; return False if the directory is not writable."""
        if self._refused:
            return False
        path = self.directory / f"{name}{_SUFFIX}"
        draft: Path | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, made = mkstemp(_UNFINISHED, f"{name}.", self.directory)
            draft = Path(made)
            with os.fdopen(handle, "wb") as file:
                size = _write(file, facts, arrays)
            draft.replace(path)
        except OSError:
            if draft is not None:
                with suppress(OSError):
                    draft.unlink()
            self._refused = not self.directory.is_dir() or not os.access(self.directory, os.W_OK)
            return False
        self._evict(path, size)
        return True

    def names(self, prefix: str) -> list[str]:
        """Return the names with this prefix, most recently used first."""
        found = [one for one in self._files() if one[2].name.startswith(prefix)]
        return [one[2].name.removesuffix(_SUFFIX) for one in sorted(found, reverse=True)]

    def remove(self, name: str) -> None:
        """Remove a file; a missing file is not an error."""
        with suppress(OSError):
            (self.directory / f"{name}{_SUFFIX}").unlink()

    def _files(self) -> list[tuple[float, int, Path]]:
        found = []
        with suppress(OSError):
            for path in self.directory.iterdir():
                if path.suffix in (_SUFFIX, _UNFINISHED):
                    with suppress(OSError):  # removed since the directory was listed
                        facts = path.stat()
                        found.append((facts.st_mtime, facts.st_size, path))
        return [one for one in found if one[2].suffix == _SUFFIX or self._sweep(one, found)]

    def _sweep(self, one: tuple[float, int, Path], among: list[tuple[float, int, Path]]) -> bool:
        """Remove the leftovers of a killed process; the newest file serves as the clock."""
        if max(other[0] for other in among) - one[0] > _STALE:
            with suppress(OSError):
                one[2].unlink()
        return False

    def _evict(self, newest: Path, size: int) -> None:
        """Remove files, least recently used first, until the total fits the budget."""
        with self._lock:
            files = sorted(self._files())
            total = sum(one[1] for one in files)
            for _, weight, path in files:
                if total <= self.budget:
                    return
                if path != newest or size > self.budget:
                    with suppress(OSError):
                        path.unlink()
                    total -= weight


def _write(file: BinaryIO, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> int:
    """Write all arrays after a header that locates them; return the size of the file."""
    listed: list[tuple[str, str, int, int, int]] = []
    at = _HEAD
    for name, one in arrays.items():
        flat = np.ascontiguousarray(one)
        listed.append((name, flat.dtype.str, len(flat), at, _sum(flat)))
        at += -(-flat.nbytes // _ALIGNED) * _ALIGNED
    head = json.dumps({"facts": dict(facts), "arrays": listed, "size": at}).encode()
    if len(_MAGIC) + len(head) + 1 > _HEAD:
        raise OSError("the facts do not fit into the file header")
    file.write((_MAGIC + head).ljust(_HEAD, b"\n"))
    for one, place in zip(arrays.values(), listed, strict=True):
        file.seek(place[3])
        file.write(np.ascontiguousarray(one).data)
    file.truncate(at)
    # After a power loss, the name must never lead to pages that were not written.
    file.flush()
    os.fsync(file.fileno())
    return at


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if len(head) < _HEAD or not head.startswith(_MAGIC):
            raise ValueError("not an array file")
        facts = json.loads(head[len(_MAGIC) :])
        if os.fstat(file.fileno()).st_size != facts["size"]:
            raise ValueError("truncated file")
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays = {}
    for name, kind, count, at, total in facts["arrays"]:
        arrays[name] = np.frombuffer(whole, np.dtype(kind), count, at)
        if _sum(arrays[name]) != total:
            raise ValueError("checksum mismatch")
    return facts["facts"], arrays


def _sum(values: Array) -> int:
    """Return a checksum at memory speed; it detects flipped bits, empty pages and truncation."""
    data = values.view(np.uint8)
    whole = len(data) // 8 * 8
    words = data[:whole].view(np.uint64)
    low = int(words.sum(dtype=np.uint64))
    tail = int.from_bytes(data[whole:].tobytes(), "little")
    return (low * 31 + tail + len(data)) & 0xFFFFFFFFFFFFFFFF
