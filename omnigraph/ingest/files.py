"""Where the text of a load comes from: paths, file objects, bytes; plain, gzip or zstd.

Owns reading in pieces and splitting into lines. How a file is packed is seen from its first bytes,
never from its name; memory holds a piece and a line, never the file.
"""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from omnigraph.errors import InputError

_PIECE = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

Source = str | os.PathLike[str] | bytes | IO[Any]


def lines_of(source: Source, longest: int) -> Iterator[bytes]:
    r"""The lines of a source, without their ends; of a line that is too long only its beginning.

    >>> list(lines_of(b"a\nb\n\nc", 100)), list(lines_of(b"abcdef\ng", 2))
    ([b'a', b'b', b'', b'c'], [b'abc', b'g'])
    """
    for block in blocks_of(source, longest):
        yield from lines_of_block(block, longest)


def lines_of_block(block: bytes, longest: int) -> Iterator[bytes]:
    """The lines of a block; of one that is too long only its beginning."""
    return (line[: longest + 1] for line in block.split(b"\n"))


def blocks_of(source: Source, longest: int, size: int = 4 << 20) -> Iterator[bytes]:
    r"""The lines of a source, many at a time, as they stand there but for the end of the last.

    Of a line that is too long only its beginning is sure to be there.

    >>> list(blocks_of(b"a\nb\n\nc", 100)), list(blocks_of(b"a\n\n", 100))
    ([b'a\nb\n\nc'], [b'a\n'])
    """
    with _opened(source) as file:
        yield from cut_blocks(_pieces(file, _name(source)), longest, size)


def cut_blocks(pieces: Iterator[bytes], longest: int, size: int = 4 << 20) -> Iterator[bytes]:
    """Pieces of a text put together, and cut where lines end."""
    rest, held = [], 0
    for piece in pieces:
        rest.append(piece)
        held += len(piece)
        if held < size:
            continue
        text = b"".join(rest)
        whole, ended, begun = text.rpartition(b"\n")
        if ended:
            yield whole
        rest = [begun[: longest + 1]]  # what is behind the limit is not kept: it is refused anyway
        held = len(rest[0])
    text = b"".join(rest)
    if text:
        yield text.removesuffix(b"\n")


@contextmanager
def _opened(source: Source) -> Iterator[IO[Any]]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
    elif isinstance(source, str | os.PathLike):
        try:
            file = open(source, "rb")  # noqa: SIM115, PTH123 - closed below
        except OSError as error:
            reason = f"cannot read {source}: {error.strerror}"
            raise InputError(reason, reason="unreadable") from error
        with file:
            yield file
    else:
        yield source


def _pieces(file: IO[Any], name: str) -> Iterator[bytes]:
    try:
        raw = _Raw(file)
        unpacked = _unpacked(raw)
        while piece := unpacked.read(_PIECE):
            yield bytes(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {name}: {error}", reason="unreadable") from error


def _unpacked(raw: "_Raw") -> Any:
    buffered = io.BufferedReader(raw, _PIECE)
    start = buffered.peek(4)[:4]
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=buffered)
    if start == _ZSTD:
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(buffered, "r"), "zstd")
    return buffered


class _Raw(io.RawIOBase):
    """Bytes of any file object, also of one that gives text."""

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._left = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; nothing left means the end."""
        if not self._left:
            given = self._file.read(_PIECE)
            self._left = given.encode() if isinstance(given, str) else bytes(given or b"")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _name(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return "the data" if isinstance(source, bytes) else str(getattr(source, "name", "the input"))
