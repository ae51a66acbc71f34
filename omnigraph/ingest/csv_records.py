"""Split CSV text into records: find each record's end, first line and cells.

A record may span several lines, because quoted cells may contain line breaks. Blocks are cut at record ends, so only
one block is in memory at a time. If every quote opens or closes a cell, positions are found without creating Python
objects; otherwise, the text is scanned record by record.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from omnigraph.errors import InputError, ResourceLimitExceeded
from omnigraph.rules.delta import Positions

from .load_limits import ROW_LIMIT_HINT, LoadLimits

_NEWLINE, _CARRIAGE_RETURN = 10, 13
_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The characters that structure CSV text; an empty quote disables quoting."""

    delimiter: str
    quote: str


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Complete records: their text, the offsets at which they begin and end, and their line numbers.

    `is_regular` is true if every quote opens or closes a cell. `end_line` is the line after the last record. Only the
    last block may be `unterminated`, which means that a quoted cell is not closed.
    """

    text: bytes
    starts: Positions
    ends: Positions
    line_numbers: Positions
    is_regular: bool
    end_line: int
    unterminated: bool = False

    def record(self, position: int) -> bytes:
        """Return a record's text without its line ending."""
        return self.text[self.starts[position] : self.ends[position]].removesuffix(b"\r")

    def terminated_text(self) -> memoryview:
        """Return the text of all records, including the final line ending, which Arrow needs to read the last cell."""
        end = self.ends[-1] + 1
        text = self.text + b"\n" if end > len(self.text) else self.text
        return memoryview(text)[self.starts[0] : end]

    def without_first(self) -> "CsvBlock":
        """Return the block without its first record."""
        return self._select(slice(1, None))

    def without_blank(self) -> "CsvBlock":
        """Return the block without empty lines."""
        lengths = self.ends - self.starts
        text_bytes = np.frombuffer(self.text, np.uint8)
        is_blank = lengths == 0
        one_byte = np.flatnonzero(lengths == 1)
        is_blank[one_byte] = text_bytes[self.starts[one_byte]] == _CARRIAGE_RETURN
        if not is_blank.any():
            return self
        return self._select(~is_blank)

    def _select(self, kept: Any) -> "CsvBlock":
        return replace(self, starts=self.starts[kept], ends=self.ends[kept], line_numbers=self.line_numbers[kept])


def cut_records(
    pieces: Iterator[bytes], dialect: CsvDialect, limits: LoadLimits, block_bytes: int | None = None
) -> Iterator[CsvBlock]:
    """Join pieces of text and cut them into blocks of complete records, with lines numbered from 1."""
    block_bytes = _BLOCK_BYTES if block_bytes is None else block_bytes
    buffered: list[bytes] = []
    buffered_bytes, wanted_bytes, next_line = 0, block_bytes, 1
    for piece in pieces:
        buffered.append(piece)
        buffered_bytes += len(piece)
        if buffered_bytes < wanted_bytes:
            continue
        text = b"".join(buffered)
        block = _find_records(text, dialect, next_line, is_last=False)
        remainder = text[block.ends[-1] + 1 :] if len(block.ends) else text
        _check_record_size(len(remainder), block.end_line, limits)
        if len(block.ends):
            yield block
        next_line = block.end_line
        buffered, buffered_bytes = [remainder], len(remainder)
        wanted_bytes = max(block_bytes, 2 * buffered_bytes)
    text = b"".join(buffered)
    if text:
        block = _find_records(text, dialect, next_line, is_last=True)
        _check_record_size(int(block.ends[-1] - block.starts[-1]), int(block.line_numbers[-1]), limits)
        yield block


def _check_record_size(record_bytes: int, line_number: int, limits: LoadLimits) -> None:
    if record_bytes > limits.line_bytes:
        raise ResourceLimitExceeded(
            f"line {line_number}: a record is longer than {limits.line_bytes} bytes",
            resource="graph_batch_line_bytes",
            limit=limits.line_bytes,
            actual=record_bytes,
            line=line_number,
            hint=f"check for an unclosed quote, or {ROW_LIMIT_HINT}",
        )


def _find_records(text: bytes, dialect: CsvDialect, first_line: int, *, is_last: bool) -> CsvBlock:
    text_bytes = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(text_bytes == _NEWLINE)
    quotes = np.flatnonzero(text_bytes == ord(dialect.quote)) if dialect.quote else newlines[:0]
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0] if len(quotes) else newlines
    is_regular, unterminated = True, bool(len(quotes) % 2)
    checked_quotes = quotes if is_last else quotes[: np.searchsorted(quotes, ends[-1])] if len(ends) else quotes
    if len(quotes) and not _are_quotes_regular(text_bytes, checked_quotes, dialect):
        ends, unterminated = _scan_record_ends(text, dialect)
        is_regular = False
    if is_last and (not len(ends) or ends[-1] != len(text) - 1):
        ends = np.append(ends, len(text))
    starts = np.append(0, ends[:-1] + 1) if len(ends) else ends
    if len(ends) == len(newlines) + int(is_last and (not len(newlines) or ends[-1] != newlines[-1])):
        line_numbers = np.arange(first_line, first_line + len(ends), dtype=np.int64)
    else:
        line_numbers = first_line + np.searchsorted(newlines, starts)
    end_line = first_line + int(np.searchsorted(newlines, ends[-1], side="right")) if len(ends) else first_line
    return CsvBlock(text, starts, ends, line_numbers, is_regular, end_line, unterminated and is_last)


def _are_quotes_regular(text_bytes: np.ndarray, quotes: Positions, dialect: CsvDialect) -> bool:
    """Return whether every quote opens or closes a cell, or is part of a doubled quote in a quoted cell.

    Quotes then alternate between opening and closing; a doubled quote counts as one of each.
    """
    opening, closing = quotes[0::2], quotes[1::2]
    quote, delimiter = ord(dialect.quote), ord(dialect.delimiter)
    before = text_bytes[opening[opening > 0] - 1]
    after = text_bytes[closing[closing < len(text_bytes) - 1] + 1]
    opens_cell = (before == delimiter) | (before == _NEWLINE) | (before == quote)
    closes_cell = (after == delimiter) | (after == _NEWLINE) | (after == quote) | (after == _CARRIAGE_RETURN)
    if not opens_cell.all() or not closes_cell.all():
        return False
    # An opening quote directly after another quote continues the cell that the other quote closed.
    follows_quote = np.flatnonzero(before == quote) + (len(opening) - len(before))
    return bool((opening[follows_quote] - 1 == closing[follows_quote - 1]).all())


def _scan_record_ends(text: bytes, dialect: CsvDialect) -> tuple[Positions, bool]:
    """Return the ends of all complete records, and whether the remaining text has an unclosed cell."""
    record_pattern, ends, offset = _compile_patterns(dialect)[0], list[int](), 0
    while offset < len(text):
        record_match = record_pattern.match(text, offset)
        if record_match is None:
            return np.array(ends, np.int64), True
        offset = record_match.end()
        if offset < len(text):
            ends.append(offset)
        offset += 1
    return np.array(ends, np.int64), False


def first_records(sample: bytes, dialect: CsvDialect, record_count: int) -> list[bytes]:
    r"""Return the first non-blank records in a sample.

    >>> first_records(b'\n"a\nb",c\r\nd', CsvDialect(",", '"'), 5)
    [b'"a\nb",c', b'd']
    """
    block = _find_records(sample, dialect, 1, is_last=True).without_blank()
    return [block.record(position) for position in range(min(record_count, len(block.starts)))]


def split_cells(record: bytes, dialect: CsvDialect) -> list[tuple[bytes, bool]]:
    r"""Return a record's cells as (text, is quoted) pairs; raise `InputError` for a malformed cell.

    >>> split_cells(b'a,"b ""c"", d",', CsvDialect(",", '"'))
    [(b'a', False), (b'b "c", d', True), (b'', False)]
    """
    cell_pattern, delimiter, quote = _compile_patterns(dialect)[1], dialect.delimiter.encode(), dialect.quote.encode()
    cells, offset = list[tuple[bytes, bool]](), 0
    while True:
        cell_match = cell_pattern.match(record, offset)
        quoted_text = cell_match["quoted"] if cell_match is not None else None
        if cell_match is None or (quoted_text is None and quote and record[offset : offset + 1] == quote):
            raise InputError(reason=f"quoted cell {len(cells) + 1} is not closed")
        if quoted_text is not None and cell_match["rest"]:
            raise InputError(reason=f"quoted cell {len(cells) + 1} has text after its closing quote")
        text = cell_match["plain"] if quoted_text is None else quoted_text.replace(quote * 2, quote)
        cells.append((text, quoted_text is not None))
        offset = cell_match.end()
        if record[offset : offset + 1] != delimiter:
            return cells
        offset += 1


@lru_cache(maxsize=32)
def _compile_patterns(dialect: CsvDialect) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return possessive patterns for a record and a cell, so that matching takes linear time on any text."""
    delimiter, quote = re.escape(dialect.delimiter.encode()), re.escape(dialect.quote.encode())
    quoted = rb'"(?:[^"]++|"")*+"'.replace(b'"', quote) if quote else rb"(?!)"
    opening = rb"(?!" + quote + rb")" if quote else b""
    rest = rb"[^" + delimiter + rb"\n]*+"
    cell = rb"(?:" + quoted + rest + rb"|" + opening + rest + rb")"
    record_pattern = re.compile(cell + rb"(?:" + delimiter + cell + rb")*+(?=\n|\Z)")
    inner = quoted[len(quote) : -len(quote)] if quote else quoted
    named_cell = (
        quote + rb"(?P<quoted>" + inner + rb")" + quote + rb"(?P<rest>" + rest + rb")|" + opening
        + rb"(?P<plain>" + rest + rb")"
    )  # fmt: skip
    return record_pattern, re.compile(named_cell)
