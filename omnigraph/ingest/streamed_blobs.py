"""Large base64 blobs in JSON text, written to files while the text is read.

A blob is replaced in the text with a short marker before the text is split into lines, so that a line with a large blob
fits in memory. After a line has been parsed, its markers are replaced with the blobs. This module does not know which
properties are blobs, so it also replaces similar text in other properties, where the original text is restored later.
"""

from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterator
from typing import Any

import orjson

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.records.frozen import record
from omnigraph.storage.blob_placeholders import content_range
from omnigraph.storage.pending_blobs import PendingBlobs, running_write
from omnigraph.values import ScalarType
from omnigraph.values.clock_and_ids import new_nonce

from .load_limits import ROW_LIMIT_HINT, LoadLimits, check_limit

STREAMED_DIGITS = 1 << 20  # a blob with more base64 digits than this is streamed
_START = b'"base64:'
_MALFORMED = b"base64:*"  # a value that is reported as malformed base64
_MARKER_PREFIX = f"streamed blob {new_nonce()} "
_MARKER_BYTES = _MARKER_PREFIX.encode()
_ESCAPE_BYTES = 6  # the length of the longest escape sequence, \uXXXX
_NAMING_MEMBERS = frozenset({"id", "from", "to", "src", "dst"})


@record(eq=False)
class StreamedBlob:
    """A blob that was streamed, or another value that looks like a blob."""

    placeholder: bytes

    def read_text(self) -> str:
        """Return the value as it was in the input."""
        content = content_range(self.placeholder)
        blocks = b"" if content is None else b"".join(content.read_blocks())
        return f"base64:{b2a_base64(blocks, newline=False).decode()}"


class StreamedBlobs:
    """The blobs that the running write has accepted from one input."""

    def __init__(self, write: PendingBlobs, limits: LoadLimits) -> None:
        self._write, self._limits = write, limits
        self._blobs: dict[str, StreamedBlob] = {}

    def replace_in(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the text with markers instead of large blobs."""
        text = b""
        for piece in pieces:
            text += piece
            while True:
                start, is_large = _find_large_blob(text)
                if not is_large:
                    break
                yield text[: start + 1]
                digits = _DigitDecoder(text[start + len(_START) :], pieces, self._limits.blob_bytes)
                yield self._accept(digits)
                text = digits.unread
                digits.unread = b""
            if start:
                yield text[:start]
                text = text[start:]
        if text:
            yield text

    def _accept(self, digits: "_DigitDecoder") -> bytes:
        """Store a blob, and return its marker."""
        try:
            placeholder = self._write.accept_stored(object(), None, digits.decode_blocks)
        except Error:
            digits.skip()
            return _MALFORMED
        marker = f"{_MARKER_PREFIX}{len(self._blobs)}"
        self._blobs[marker] = StreamedBlob(placeholder)
        return marker.encode()

    def restore(self, parsed_line: Any, *, has_envelope: bool) -> Any:
        """Return a parsed line in which blobs (in properties) or the original text (elsewhere) replace the markers."""
        if not self._blobs or type(parsed_line) is not dict:
            return parsed_line
        properties = parsed_line.get("data") if has_envelope else parsed_line
        if type(properties) is not dict:
            return self._with_text(parsed_line)
        restored = {
            name: self._blobs.get(value, value)
            if type(value) is str and name not in _NAMING_MEMBERS
            else self._with_text(value)
            for name, value in properties.items()
        }
        return {**self._with_text({**parsed_line, "data": None}), "data": restored} if has_envelope else restored

    def _with_text(self, value: Any) -> Any:
        if type(value) is dict:
            return {name: self._with_text(member) for name, member in value.items()}
        if type(value) is list:
            return [self._with_text(item) for item in value]
        blob = self._blobs.get(value) if type(value) is str else None
        return value if blob is None else blob.read_text()


def has_blobs(catalog: Catalog) -> bool:
    """Return whether any type in a catalog has a property of type Blob."""
    entity_types: tuple[NodeType | EdgeType, ...] = (*catalog.nodes, *catalog.edges)
    return any(prop.type.scalar is ScalarType.BLOB for declared in entity_types for prop in declared.properties)


def has_markers(text: bytes) -> bool:
    """Return whether a text may contain markers."""
    return _MARKER_BYTES in text


def new_streamed_blobs(limits: LoadLimits) -> StreamedBlobs | None:
    """Return an empty collection, or None if the running write cannot accept files."""
    write = running_write()
    return None if write is None else StreamedBlobs(write, limits)


def _find_large_blob(text: bytes) -> tuple[int, bool]:
    """Return the position of the first large blob and True.

    If no large blob is found, return the end of the text that cannot contain a large blob, and False.
    """
    position = 0
    while (start := text.find(_START, position)) >= 0:
        digits_start = start + len(_START)
        position = digits_start
        if start and text[start - 1 : start] == b"\\":  # an escaped quote inside a string
            continue
        end = text.find(b'"', digits_start, digits_start + STREAMED_DIGITS + 1)
        if end < 0 and text.find(b"\n", digits_start, digits_start + STREAMED_DIGITS + 1) < 0:
            is_large = len(text) - digits_start > STREAMED_DIGITS
            return (start, True) if is_large else (max(start - 1, 0), False)
    # The beginning of a blob may be at the end of the text.
    return max(len(text) - len(_START), position, 0), False


class _DigitDecoder:
    """Decodes the base64 digits before a closing quote.

    `unread` is the text from the closing quote, or from the end of a line without a closing quote.
    """

    def __init__(self, text: bytes, pieces: Iterator[bytes], max_bytes: int | None) -> None:
        self._text, self._pieces, self._max_bytes = text, pieces, max_bytes
        self._digits = self._held = b""  # digits and text that can be decoded only with the next piece
        self._decoded_bytes = 0
        self._ended = self._padded = False
        self.unread = b""

    def decode_blocks(self) -> Iterator[bytes]:
        """Yield the bytes in blocks; raise `binascii.Error` if the digits are malformed."""
        while not self._ended:
            self._digits += self._next_digits()
            content = self._decode_groups()
            self._decoded_bytes += len(content)
            check_limit("blob bytes in a row", self._decoded_bytes, self._max_bytes, ROW_LIMIT_HINT)
            yield content
        if self._digits:
            raise Error("the last group of digits is incomplete")

    def skip(self) -> None:
        """Skip the remaining digits."""
        while not self._ended:
            self._next_text()

    def _next_digits(self) -> bytes:
        """Return the next digits, with escape sequences decoded."""
        digits, self._held = self._held + self._next_text(), b""
        if b"\\" not in digits:
            return digits
        last_escape = digits.rfind(b"\\")
        if not self._ended and last_escape > len(digits) - _ESCAPE_BYTES:
            digits, self._held = digits[:last_escape], digits[last_escape:]
        try:
            unescaped: str = orjson.loads(b'"' + digits + b'"')
        except orjson.JSONDecodeError:
            raise Error("an escape sequence is malformed") from None
        return unescaped.encode()

    def _next_text(self) -> bytes:
        text, self._text = self._text or next(self._pieces, b""), b""
        ends = [end for end in (text.find(b'"'), text.find(b"\n")) if end >= 0]
        self._ended = bool(ends) or not text
        length = min(ends, default=len(text))
        self.unread = text[length:]
        return text[:length]

    def _decode_groups(self) -> bytes:
        """Decode and remove all complete groups of digits."""
        length = len(self._digits) // 4 * 4
        groups, self._digits = self._digits[:length], self._digits[length:]
        if not groups:
            return b""
        if self._padded:
            raise Error("digits follow the padding")
        content = a2b_base64(groups, strict_mode=True)
        self._padded = groups.endswith(b"=")
        # Unused bits in the last digit must be zero, so that each value has exactly one encoding.
        if self._padded and b2a_base64(content[-(len(content) % 3) :], newline=False) != groups[-4:]:
            raise Error("the last digit has unused bits")
        return content
