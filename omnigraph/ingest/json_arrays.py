"""Read a JSON array of records as if each record were on its own line.

This module only recognizes and splits an array; the records themselves are checked in the same way as lines of NDJSON.
Unlike NDJSON, a whole array is held in memory, so its size is limited.
"""

import re
from collections.abc import Iterator
from itertools import chain

from omnigraph.errors import InputError

from .load_limits import check_limit

_START_BYTES = 1 << 16  # the array must begin within the first 64 KiB
MAX_ARRAY_BYTES = 256 << 20  # maximum size of an array in bytes; larger inputs must be NDJSON
_ARRAY_START = re.compile(rb"\s*\[\s*\{")
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|["\[\]{},]')


def starts_array(first_bytes: bytes) -> bool:
    r"""Return whether the input begins with an array of objects; any other array is an invalid line.

    >>> starts_array(b'\n[ {"type"'), starts_array(b'{"type"'), starts_array(b"[]")
    (True, False, False)
    """
    return _ARRAY_START.match(first_bytes) is not None


def unwrap_array(pieces: Iterator[bytes]) -> Iterator[bytes]:
    r"""Yield the records of an array, one per line, or any other input unchanged.

    A record keeps the number of the line on which it begins, unless another record is already on that line.

    >>> b"".join(unwrap_array(iter([b'[\n{"a":\n1}, {"b": 2},\n', b'{"c": 3}]'])))
    b'\n{"a": 1}\n{"b": 2}\n{"c": 3}'
    """
    first_piece = next(pieces, b"")
    while len(first_piece) < _START_BYTES and not first_piece.strip(b" \t\r\n[") and (piece := next(pieces, b"")):
        first_piece += piece
    if not starts_array(first_piece):
        return chain([first_piece], pieces) if first_piece else pieces
    return _records_as_lines(_read_limited(chain([first_piece], pieces)))


def _read_limited(pieces: Iterator[bytes]) -> bytes:
    read_pieces, byte_count = [], 0
    for piece in pieces:
        read_pieces.append(piece)
        byte_count += len(piece)
        check_limit("json_array_bytes", byte_count, MAX_ARRAY_BYTES, "write one record per line (NDJSON)")
    return b"".join(read_pieces)


def _records_as_lines(text: bytes) -> Iterator[bytes]:
    text_line, counted_to, output_line = 1, 0, 0
    for start, end in _split_elements(text):
        text_line += text.count(b"\n", counted_to, start)
        counted_to = start
        next_line = max(text_line, output_line + 1)
        yield b"\n" * (next_line - max(output_line, 1)) + text[start:end].replace(b"\n", b" ")
        output_line = next_line


def _split_elements(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each array element, without surrounding spaces."""
    depth, element_start = 0, 0
    for token in _TOKEN.finditer(text):
        symbol = token[0]
        if symbol == b'"':
            raise _malformed(text, token.start(), "unterminated string")
        if depth == 1 and symbol in b",]":
            start, end = _strip_span(text, element_start, token.start())
            if start < end:
                yield start, end
            else:
                raise _malformed(text, token.start(), f"a record is missing before '{symbol.decode()}'")
            element_start = token.end()
        if symbol in b"[{":
            depth += 1
            element_start = token.end() if depth == 1 else element_start
        elif symbol in b"]}":
            depth -= 1
            if not depth:
                if text[token.end() :].strip():
                    raise _malformed(text, token.end(), "unexpected text after the closing bracket")
                return
    raise _malformed(text, len(text), "the closing bracket is missing")


def _strip_span(text: bytes, start: int, end: int) -> tuple[int, int]:
    element = text[start:end]
    return end - len(element.lstrip()), start + len(element.rstrip())


def _malformed(text: bytes, position: int, reason: str) -> InputError:
    return InputError(reason=f"malformed JSON array: {reason}", line=text.count(b"\n", 0, position) + 1)
