"""Read the first rows in a CSV file as text, using the delimiter that fits its first lines best.

A load detects the delimiter from a type's column names. During inference, there is no type yet, so the best delimiter
is the one that splits all of the first lines into the same number of columns and yields the most columns. The first
line names the columns.
"""

from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from omnigraph.errors import InputError
from omnigraph.errors.counts import format_count
from omnigraph.ingest.csv_dialect import DELIMITERS
from omnigraph.ingest.csv_records import CsvDialect, cut_records, first_records, split_cells
from omnigraph.ingest.files import open_text
from omnigraph.ingest.load_limits import load_limits

_SAMPLE_BYTES = 1 << 16
_SAMPLE_RECORDS = 50


def read_csv_sample(file: IO[Any], file_name: str, max_rows: int) -> dict[str, list[str | None]]:
    """Return the cells in the first rows, by column name; an empty unquoted cell is None."""
    with open_text(file, source_name=file_name) as (pieces, _):
        first_piece = next(pieces, b"")
        if b"\r" in first_piece and b"\n" not in first_piece:
            raise InputError(f"{file_name}: lines must not end with only a carriage return", reason="malformed")
        dialect = _choose_dialect(first_piece[:_SAMPLE_BYTES])
        records = _iter_records(chain([first_piece], pieces), dialect)
        names = [_decode(text) for text, _ in _split(next(records, b""), dialect, file_name)]
        columns: dict[str, list[str | None]] = {name.strip(): [] for name in names}
        if len(columns) < len(names) or "" in columns:
            raise InputError(f"{file_name}: the first line must name every column exactly once", reason="malformed")
        for row_number, record in enumerate(records):
            if row_number == max_rows:
                break
            _add_row(columns, _split(record, dialect, file_name), f"{file_name}: row {row_number + 1}")
    return columns


def _choose_dialect(sample: bytes) -> CsvDialect:
    dialects = [CsvDialect(delimiter, '"') for delimiter in DELIMITERS]
    return max(dialects, key=lambda dialect: _score(sample, dialect))


def _score(sample: bytes, dialect: CsvDialect) -> tuple[bool, int, bool]:
    """Score how well a dialect fits: whether it yields a regular table, and how many columns the first line names."""
    try:
        records = first_records(sample.rpartition(b"\n")[0] or sample, dialect, _SAMPLE_RECORDS)
        counts = [len(split_cells(record, dialect)) for record in records]
    except InputError:
        return False, 0, False
    is_regular, column_count = len(set(counts)) == 1, counts[0] if counts else 0
    return is_regular and column_count > 1, column_count, is_regular


def _iter_records(pieces: Iterator[bytes], dialect: CsvDialect) -> Iterator[bytes]:
    for block in cut_records(pieces, dialect, load_limits()):
        records = block.without_blank()
        yield from (records.record(position) for position in range(len(records.starts)))


def _split(record: bytes, dialect: CsvDialect, file_name: str) -> list[tuple[bytes, bool]]:
    try:
        return split_cells(record, dialect)
    except InputError as error:
        raise InputError(f"{file_name}: {error.message}", reason="malformed") from None


def _add_row(columns: dict[str, list[str | None]], cells: list[tuple[bytes, bool]], row_label: str) -> None:
    if len(cells) != len(columns):
        raise InputError(
            f"{row_label}: expected {format_count(len(columns), 'cell')}, got {len(cells)}", reason="malformed"
        )
    for column, (text, is_quoted) in zip(columns.values(), cells, strict=True):
        column.append(None if not text and not is_quoted else _decode(text))


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")
