"""Read blobs through a seekable file object, and write chunks to a path atomically.

A regular file always contains either its old content or the complete new content. An interrupted write leaves no
temporary file behind.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from omnigraph.api.output_files import open_output, unwritable_error

READ_AHEAD_BYTES = 1 << 20


class BlobFile(io.RawIOBase):
    """A read-only, seekable view of a blob. Wrap it in `io.BufferedReader` for small reads."""

    def __init__(self, size: int, read_range: Callable[[int, int], bytes]) -> None:
        self._size, self._read_range, self._position = size, read_range, 0

    def readable(self) -> bool:
        """Return True: every blob is readable."""
        return True

    def seekable(self) -> bool:
        """Return True: every blob supports random access."""
        return True

    def tell(self) -> int:
        """Return the current position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position. Reading beyond the end returns no bytes."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise ValueError(f"negative seek position {origin + offset}")
        self._position = origin + offset
        return self._position

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Read into a buffer and return the number of bytes read, which is 0 at the end of the blob."""
        target = memoryview(buffer).cast("B")
        start = min(self._position, self._size)
        stop = min(start + len(target), self._size)
        if start == stop:
            return 0
        target[: stop - start] = self._read_range(start, stop)
        self._position = stop
        return stop - start


def write_atomically(path: Path, chunks: Iterable[bytes]) -> int:
    """Write chunks to a file, replacing it only after all of them are written. Return the number of bytes written.

    Pipes and devices are written to directly, and a symbolic link stays a link.
    """
    byte_count = 0
    try:
        with open_output(path, sync=True) as file:
            for chunk in _wrap_read_errors(chunks):
                byte_count += file.write(chunk)
    except _ReadFailedError as failure:
        raise failure.error from failure.error.__cause__
    except OSError as error:
        raise unwritable_error(path, error) from error
    return byte_count


class _ReadFailedError(Exception):
    """A storage error, wrapped so that it is not reported as a failure to write the file."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _wrap_read_errors(chunks: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from chunks
    except OSError as error:
        raise _ReadFailedError(error) from error
