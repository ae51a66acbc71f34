"""Text sources of a load: paths, file objects, bytes; plain, gzip or zstd.

Owns reading in pieces and splitting into lines. Compression is detected from the first bytes, never
from the name. Memory holds a piece and a line, never the file. Never decompresses beyond a line
that is too long: a small compressed file may expand to any size.
"""

import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from omnigraph.errors import InputError

_PIECE = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

Source = str | os.PathLike[str] | bytes | IO[Any]


def lines_of(source: Source, longest: int) -> Iterator[bytes]:
    r"""Yield the lines of a source without newlines; of an overlong line only its beginning.

    >>> list(lines_of(b"a\nb\n\nc", 100)), list(lines_of(b"abcdef\ng", 2))
    ([b'a', b'b', b'', b'c'], [b'abc', b'g'])
    """
    for block in blocks_of(source, longest):
        yield from lines_of_block(block, longest)


def lines_of_block(block: bytes, longest: int) -> Iterator[bytes]:
    """Return the lines of a block; of an overlong line only its beginning."""
    return (line[: longest + 1] for line in block.split(b"\n"))


def blocks_of(source: Source, longest: int, size: int = 4 << 20) -> Iterator[bytes]:
    r"""Yield the lines of a source, many per block, verbatim except for the final newline.

    Of an overlong line only the beginning is guaranteed. In a compressed source it is the last
    line: the rest is not decompressed.

    >>> list(blocks_of(b"a\nb\n\nc", 100)), list(blocks_of(b"a\n\n", 100))
    ([b'a\nb\n\nc'], [b'a\n'])
    """
    with _opened(source) as file, _reported(_name(source)):
        raw = io.BufferedReader(_Raw(file), _PIECE)
        packing = packing_of(raw.peek(4))
        pieces = _pieces(_unpacked(raw, packing))
        yield from cut_blocks(pieces, longest, size, ends_when_too_long=packing is not None)


def cut_blocks(
    pieces: Iterator[bytes], longest: int, size: int = 4 << 20, *, ends_when_too_long: bool = False
) -> Iterator[bytes]:
    """Join pieces of a text and cut them into blocks at line ends.

    An overlong line is a block of its own, yielded as soon as its length is known. Its rest is
    skipped, or with `stop_at_long_line` never read.
    """
    held: list[bytes] = []
    total = begun = 0  # bytes buffered, and those of them after the last newline
    for piece in pieces:
        held.append(piece)
        total += len(piece)
        ended = piece.rfind(b"\n")
        begun = begun + len(piece) if ended < 0 else len(piece) - ended - 1
        if begun > longest:
            yield from _cut_at(held, total - begun, longest)
            rest = b"" if ends_when_too_long else _behind_line(pieces)
            held, total, begun = [rest], len(rest), len(rest) - (rest.rfind(b"\n") + 1)
            if ends_when_too_long:
                break
        elif total >= size and total > begun:
            text = b"".join(held)
            yield text[: total - begun - 1]
            held, total = [text[total - begun :]], begun
    text = b"".join(held)
    if text:
        yield text.removesuffix(b"\n")


def _cut_at(held: Sequence[bytes], whole: int, longest: int) -> Iterator[bytes]:
    """Yield the complete lines of a text, if any, then the beginning of an overlong line."""
    text = b"".join(held)
    if whole:
        yield text[: whole - 1]
    yield text[whole : whole + longest + 1]


def _behind_line(pieces: Iterator[bytes]) -> bytes:
    """Skip to the end of a line; return the rest of the piece that contains it."""
    for piece in pieces:
        _, ended, rest = piece.partition(b"\n")
        if ended:
            return rest
    return b""


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


@contextmanager
def _reported(name: str) -> Iterator[None]:
    """Raise read errors as InputError that names the source."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {name}: {error}", reason="unreadable") from error


def _pieces(unpacked: Any) -> Iterator[bytes]:
    while piece := unpacked.read(_PIECE):
        yield bytes(piece)


def packing_of(start: bytes) -> str | None:
    """Return the compression of a file with these first bytes: gzip, zstd, or None."""
    if start.startswith(_GZIP):
        return "gzip"
    return "zstd" if start.startswith(_ZSTD) else None


def _unpacked(raw: "io.BufferedReader[_Raw]", packing: str | None) -> Any:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if packing == "zstd":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
    return raw


class _Raw(io.RawIOBase):
    """Bytes of any file object, including text files."""

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._left = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return 0 at the end of the file."""
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
