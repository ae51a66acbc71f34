"""Access blobs as files: read a blob through a seekable file object, and write chunks to a path atomically.

A file always contains either its previous content or the complete new content. An interrupted write does not leave a
temporary file behind.
"""

import io
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from omnigraph.api.output_files import read_umask, unwritable_error

READ_AHEAD_BYTES = 1 << 20


class BlobFile(io.RawIOBase):
    """A read-only, seekable view of a blob; wrap it in `io.BufferedReader` for small reads."""

    def __init__(self, size: int, read_range: Callable[[int, int], bytes]) -> None:
        self._size, self._read_range, self._position = size, read_range, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the current position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position; a read at a position beyond the end returns no bytes."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise ValueError(f"negative seek position {origin + offset}")
        self._position = origin + offset
        return self._position

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Read into a buffer, and return the number of bytes read, which is 0 at the end."""
        target = memoryview(buffer).cast("B")
        start = min(self._position, self._size)
        stop = min(start + len(target), self._size)
        if start == stop:
            return 0
        target[: stop - start] = self._read_range(start, stop)
        self._position = stop
        return stop - start


def write_atomically(path: Path, chunks: Iterable[bytes]) -> int:
    """Write chunks to a temporary file next to `path`, rename it to `path`, and return the number of bytes written."""
    try:
        file_descriptor, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise unwritable_error(path, error) from error
    try:
        with os.fdopen(file_descriptor, "wb") as file:
            byte_count = sum(_write_chunk(file, path, chunk) for chunk in chunks)
            _rename_complete(file, temporary_path, path)
    finally:
        with suppress(FileNotFoundError):
            Path(temporary_path).unlink()
    return byte_count


def _write_chunk(file: io.BufferedWriter, path: Path, chunk: bytes) -> int:
    # The chunks come from the store, so a failure to read them must not be reported as a failure to write this file.
    try:
        return file.write(chunk)
    except OSError as error:
        raise unwritable_error(path, error) from error


def _rename_complete(file: io.BufferedWriter, temporary_path: str, path: Path) -> None:
    try:
        file.flush()
        os.fsync(file.fileno())
        Path(temporary_path).chmod(0o666 & ~read_umask())
        Path(temporary_path).replace(path)
    except OSError as error:
        raise unwritable_error(path, error) from error
