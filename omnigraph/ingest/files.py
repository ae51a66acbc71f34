"""Text sources for a load: paths, file objects or bytes, optionally compressed with gzip or zstd.

This module reads a source in pieces and splits it into lines. Compression is detected from the first bytes, never from
the name. Only one piece and one line are held in memory, never the whole file. Decompression stops at an overlong line,
because a small compressed file may expand to any size.
"""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from omnigraph.errors import InputError

from .json_arrays import unwrap_array
from .text_encoding import to_utf8

_PIECE_BYTES = 1 << 20
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

TextSource = str | os.PathLike[str] | bytes | IO[Any]


def iter_lines(source: TextSource, max_line_bytes: int) -> Iterator[bytes]:
    r"""Yield the lines in a source, without their newlines; an overlong line is truncated.

    >>> list(iter_lines(b"a\nb\n\nc", 100)), list(iter_lines(b"abcdef\ng", 2))
    ([b'a', b'b', b'', b'c'], [b'abc', b'g'])
    """
    for block in iter_blocks(source, max_line_bytes):
        yield from split_block(block, max_line_bytes)


def split_block(block: bytes, max_line_bytes: int) -> Iterator[bytes]:
    """Return the lines in a block; an overlong line is truncated."""
    return (line[: max_line_bytes + 1] for line in block.split(b"\n"))


def iter_blocks(
    source: TextSource,
    max_line_bytes: int,
    block_bytes: int = 4 << 20,
    filter_pieces: Callable[[Iterator[bytes]], Iterator[bytes]] = iter,
) -> Iterator[bytes]:
    r"""Yield the lines in a source, many per block, verbatim except for the final newline.

    For an overlong line, only its beginning is guaranteed to be returned. In a compressed source, an overlong line is
    the last one, because the rest is not decompressed. A JSON array of records counts as one line per record.
    `filter_pieces` may change the text before it is split; it must preserve the line ends.

    >>> list(iter_blocks(b"a\nb\n\nc", 100)), list(iter_blocks(b"a\n\n", 100))
    ([b'a\nb\n\nc'], [b'a\n'])
    """
    with open_text(source) as (pieces, compression):
        lines = unwrap_array(filter_pieces(pieces))
        yield from cut_blocks(lines, max_line_bytes, block_bytes, stop_at_long_line=compression is not None)


@contextmanager
def open_text(
    source: TextSource, encoding: str | None = None, source_name: str | None = None
) -> Iterator[tuple[Iterator[bytes], str | None]]:
    """Open a source; return its text (in pieces, decompressed and converted to UTF-8) and its compression."""
    source_name = source_name or _source_name(source)
    with _open_source(source) as file, _report_unreadable(source_name):
        raw_reader = io.BufferedReader(_RawBytes(file), _PIECE_BYTES)
        compression = detect_compression(raw_reader.peek(4))
        yield to_utf8(_read_pieces(_decompress(raw_reader, compression)), encoding, source_name), compression


def cut_blocks(
    pieces: Iterator[bytes], max_line_bytes: int, block_bytes: int = 4 << 20, *, stop_at_long_line: bool = False
) -> Iterator[bytes]:
    """Join pieces of text and split them into blocks at line ends.

    An overlong line forms its own block, which is yielded as soon as its length is known. The rest of the line is
    skipped or, with `stop_at_long_line`, never read.
    """
    buffered: list[bytes] = []
    buffered_bytes = unfinished_bytes = 0  # the number of buffered bytes, and how many of them follow the last newline
    for piece in pieces:
        buffered.append(piece)
        buffered_bytes += len(piece)
        newline_position = piece.rfind(b"\n")
        unfinished_bytes = unfinished_bytes + len(piece) if newline_position < 0 else len(piece) - newline_position - 1
        if unfinished_bytes > max_line_bytes:
            yield from _split_long_line(buffered, buffered_bytes - unfinished_bytes, max_line_bytes)
            remainder = b"" if stop_at_long_line else _skip_to_next_line(pieces)
            buffered = [remainder]
            buffered_bytes = len(remainder)
            unfinished_bytes = len(remainder) - (remainder.rfind(b"\n") + 1)
            if stop_at_long_line:
                break
        elif buffered_bytes >= block_bytes and buffered_bytes > unfinished_bytes:
            text = b"".join(buffered)
            yield text[: buffered_bytes - unfinished_bytes - 1]
            buffered, buffered_bytes = [text[buffered_bytes - unfinished_bytes :]], unfinished_bytes
    text = b"".join(buffered)
    if text:
        yield text.removesuffix(b"\n")


def _split_long_line(buffered: Sequence[bytes], complete_bytes: int, max_line_bytes: int) -> Iterator[bytes]:
    """Yield any complete lines in the data, then the beginning of an overlong line."""
    text = b"".join(buffered)
    if complete_bytes:
        yield text[: complete_bytes - 1]
    yield text[complete_bytes : complete_bytes + max_line_bytes + 1]


def _skip_to_next_line(pieces: Iterator[bytes]) -> bytes:
    """Skip the rest of a line, and return the part of the last piece that follows the line end."""
    for piece in pieces:
        _, newline, remainder = piece.partition(b"\n")
        if newline:
            return remainder
    return b""


@contextmanager
def _open_source(source: TextSource) -> Iterator[IO[Any]]:
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
def _report_unreadable(source_name: str) -> Iterator[None]:
    """Convert read errors to an `InputError` that names the source."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {source_name}: {error}", reason="unreadable") from error


def _read_pieces(stream: Any) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield bytes(piece)


def detect_compression(first_bytes: bytes) -> str | None:
    """Return the compression that a file's first bytes indicate: gzip, zstd, or None."""
    if first_bytes.startswith(_GZIP_MAGIC):
        return "gzip"
    return "zstd" if first_bytes.startswith(_ZSTD_MAGIC) else None


def _decompress(raw_reader: "io.BufferedReader[_RawBytes]", compression: str | None) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw_reader)
    if compression == "zstd":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw_reader, "r"), "zstd")
    return raw_reader


class _RawBytes(io.RawIOBase):
    """A binary reader for any file object, including text files."""

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._unread = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return how many were read, or 0 at the end of the file."""
        if not self._unread:
            chunk = self._file.read(_PIECE_BYTES)
            self._unread = chunk.encode() if isinstance(chunk, str) else bytes(chunk or b"")
        byte_count = min(len(buffer), len(self._unread))
        buffer[:byte_count] = self._unread[:byte_count]
        self._unread = self._unread[byte_count:]
        return byte_count


def _source_name(source: TextSource) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return "the data" if isinstance(source, bytes) else str(getattr(source, "name", "the input"))
