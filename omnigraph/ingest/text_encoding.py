"""Convert text input to UTF-8: remove byte order marks, and decode other encodings piece by piece.

Plain UTF-8 passes through unchanged and unchecked, because the reader of each format reports invalid bytes with their
line numbers. An encoding is never guessed: it comes from a byte order mark or from the caller.
"""

import codecs
from collections.abc import Iterator
from itertools import chain

from omnigraph.errors import InputError, UsageError
from omnigraph.values.byte_order_mark import encoding_from_mark

_MARK_BYTES = 4  # the length of the longest byte order mark
_UTF8_MARK = codecs.BOM_UTF8
UNMARKED_UTF16_HINT = "the file looks like UTF-16 without a byte order mark: save it as UTF-8"


def to_utf8(pieces: Iterator[bytes], encoding: str | None = None, source_name: str = "the input") -> Iterator[bytes]:
    r"""Yield text as UTF-8 without a byte order mark; a mark takes precedence over `encoding`.

    >>> b"".join(to_utf8(iter(["ä".encode("utf-16")]))).decode()
    'ä'
    """
    first_piece = _read_at_least(pieces, _MARK_BYTES)
    marked_encoding = encoding_from_mark(first_piece)
    actual_encoding = marked_encoding or encoding or "utf-8"
    all_pieces = chain([first_piece], pieces) if first_piece else pieces
    if codecs.lookup(actual_encoding).name in ("utf-8", "utf-8-sig"):
        return _without_mark(all_pieces)
    return _transcode(all_pieces, actual_encoding, source_name)


def check_encoding(encoding: str) -> str:
    """Return the encoding's name; raise `UsageError` if the encoding is unknown.

    >>> check_encoding("latin1")
    'latin1'
    """
    try:
        "".encode(encoding)
    except LookupError:
        reason = f"unknown encoding {encoding!r}; expected an encoding such as utf-8, cp1252, iso-8859-1 or utf-16"
        raise UsageError(reason=reason) from None
    return encoding


def is_splittable(first_bytes: bytes) -> bool:
    """Return whether line ends can be found in the raw bytes, without decoding the text."""
    return encoding_from_mark(first_bytes) in (None, "utf-8-sig")


def _read_at_least(pieces: Iterator[bytes], byte_count: int) -> bytes:
    first_piece = b""
    for piece in pieces:
        first_piece += piece
        if len(first_piece) >= byte_count:
            break
    return first_piece


def _without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for first_piece in pieces:
        yield first_piece.removeprefix(_UTF8_MARK)
        break
    yield from pieces


def _transcode(pieces: Iterator[bytes], encoding: str, source_name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            if text := decoder.decode(piece):
                yield text.encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        message = f"cannot read {source_name} as {encoding}: {getattr(error, 'reason', error)}"
        raise InputError(message, reason="wrong encoding", hint="check the file's encoding") from None
