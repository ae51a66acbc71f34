"""Read CSV files with records of one type: split them into columns, and parse each cell according to the schema.

Arrow splits a block of regular records into cells. Any other block is split one record at a time, so that malformed
records are found. Both paths produce the same columns, and only one block is in memory at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.errors.counts import format_count
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.rules.delta import Positions

from .casts import cast_column
from .columns import FaultCallback
from .csv_dialect import ColumnNames, CsvLayout, find_layout
from .csv_options import CsvOptions
from .csv_records import CsvBlock, cut_records, split_cells
from .frames import column_or_default, take_columns
from .record_intake import Intake, RecordFaults, TypeBuffer
from .text_cells import parse_cells, suggest_option, with_decimal_points

_SAMPLE_BYTES = 1 << 16
_ENCODING_HINT = "pass the encoding, for example --csv-encoding cp1252 or CsvOptions(encoding='cp1252')"
_MISSING_COLUMN_HINT = (
    "the file has no column for this required property; to change only some properties of existing entities, "
    "use mode 'patch'"
)
_EMPTY_TEXT_HINT = 'an empty cell is null; write "" for an empty string'


@dataclass(frozen=True, slots=True)
class CsvSource:
    """Settings for reading a CSV file: the caller's options, the column names, and the file name."""

    options: CsvOptions = field(default_factory=CsvOptions)
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None


def read_csv(
    intake: Intake,
    entity_type: NodeType | EdgeType,
    pieces: Iterator[bytes],
    source: CsvSource,
    first_number: int = 1,
) -> Iterator[int]:
    """Read the records in a file, numbering lines from `first_number`; yield the next line number after each block."""
    buffer = intake.buffer_for(entity_type)
    layout, pieces = open_csv(pieces, source, entity_type)
    if layout is None:
        return
    is_header_ahead = source.options.has_header(entity_type.name)
    for block in cut_records(pieces, layout.dialect, intake.limits):
        records = block.without_blank()
        if is_header_ahead and len(records.starts):
            records, is_header_ahead = records.without_first(), False
        if len(records.starts):
            _take_block(buffer, records, layout, source.options, first_number - 1)
        yield first_number - 1 + block.end_line


def open_csv(
    pieces: Iterator[bytes], source: CsvSource, entity_type: NodeType | EdgeType
) -> tuple[CsvLayout | None, Iterator[bytes]]:
    """Return a file's layout (None if the file is empty), and all of its text with normalized line endings."""
    sample, pieces = _take_sample(_with_newlines(pieces))
    is_empty = not sample.strip(b"\r\n")
    return None if is_empty else _find_layout(sample, source, entity_type), pieces


def _find_layout(sample: bytes, source: CsvSource, entity_type: NodeType | EdgeType) -> CsvLayout:
    """Determine the layout; an error names the file and the line of the first record."""
    try:
        return find_layout(sample, source.options, ColumnNames(entity_type, source.column_mapping))
    except InputError as error:
        blank_bytes = len(sample) - len(sample.lstrip(b"\r\n"))
        line_number = sample[:blank_bytes].count(b"\n") + 1
        file_prefix = "" if source.name is None else f"{source.name}: "
        file_detail = {} if source.name is None else {"file": source.name}
        details = {**error.details, "line": line_number, "type_name": entity_type.name, **file_detail}
        raise InputError(f"{file_prefix}line {line_number}: {error.message}", hint=error.hint, **details) from None


def _take_sample(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the beginning of the text, and an iterator over all of its pieces."""
    first_pieces: list[bytes] = []
    while sum(map(len, first_pieces)) < _SAMPLE_BYTES and (piece := next(pieces, b"")):
        first_pieces.append(piece)
    sample = b"".join(first_pieces)
    is_whole = len(sample) < _SAMPLE_BYTES
    complete_sample = sample if is_whole else sample[:_SAMPLE_BYTES].rpartition(b"\n")[0] or sample[:_SAMPLE_BYTES]
    return complete_sample, chain([sample], pieces)


def _with_newlines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Normalize line endings in files that use only carriage returns."""
    first_piece = next(pieces, b"")
    all_pieces = chain([first_piece], pieces)
    if b"\r" in first_piece and b"\n" not in first_piece:
        return (piece.replace(b"\r", b"\n") for piece in all_pieces)
    return all_pieces


def _take_block(
    buffer: TypeBuffer, records: CsvBlock, layout: CsvLayout, options: CsvOptions, number_before: int
) -> None:
    row_numbers = records.line_numbers + number_before
    cells_by_column = _split_with_arrow(records, layout, options)
    if cells_by_column is None:
        cells_by_column, row_numbers = _split_one_by_one(buffer, records, layout, options, number_before)
    faults: RecordFaults = {}
    buffer.given_names.update(cells_by_column)
    columns = {
        prop.name: _property_column(buffer, prop, cells_by_column.get(prop.name), options, faults, len(row_numbers))
        for prop in buffer.read_properties
        if buffer.fills_absent or prop.name in cells_by_column
    }
    _name_renamed_columns(faults, layout)
    others = {name: cells for name, cells in cells_by_column.items() if name not in columns}
    take_columns(buffer, columns, others, faults, row_numbers)


def _name_renamed_columns(faults: RecordFaults, layout: CsvLayout) -> None:
    """If a fault's property has a different name in the file, mention that name in the fault's hint."""
    file_columns = dict(zip(layout.stored_columns, layout.file_columns, strict=True))
    for error in (error for errors in faults.values() for error in errors):
        property_name = getattr(error, "property", None)
        file_column = file_columns.get(property_name, property_name) if isinstance(property_name, str) else None
        if file_column != property_name:
            error.hint = f"the value is in file column '{file_column}'"


def _property_column(
    buffer: TypeBuffer, prop: Any, cells: pa.Array | None, options: CsvOptions, faults: RecordFaults, row_count: int
) -> pa.Array:
    type_name, limits = buffer.entity_type.name, buffer.limits
    if cells is None:
        values = column_or_default(None, row_count, buffer.defaults[prop.name])
        hint = None if prop.name in (buffer.entity_type.key or ()) else _MISSING_COLUMN_HINT
        return cast_column(prop, values, type_name, _report_with_hint(faults, hint), limits)
    file_cells: pa.Array = cells

    def report_fault(position: int, error: ClientError) -> None:
        if getattr(error, "actual", None) == "null" and "" in options.null_texts:
            error.hint = _EMPTY_TEXT_HINT
        elif (option_hint := suggest_option(prop.type, file_cells[position].as_py(), options.decimal)) is not None:
            error.hint = option_hint
        faults.setdefault(position, []).append(error)

    cells = with_decimal_points(prop, cells, options.decimal, type_name, report_fault)
    return parse_cells(prop, cells, options.null_texts, type_name, report_fault, limits)


def _report_with_hint(faults: RecordFaults, hint: str | None) -> FaultCallback:
    def report_fault(position: int, error: ClientError) -> None:
        error.hint = hint or error.hint
        faults.setdefault(position, []).append(error)

    return report_fault


def _split_with_arrow(records: CsvBlock, layout: CsvLayout, options: CsvOptions) -> dict[str, pa.Array] | None:
    """Split all records with Arrow; return None if `_split_one_by_one` might return a different result."""
    import pyarrow.csv as arrow_csv

    if not records.is_regular or records.unterminated:
        return None
    names, dialect = layout.stored_columns, layout.dialect
    text = pa.py_buffer(records.terminated_text())
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            arrow_csv.ReadOptions(use_threads=False, block_size=text.size + 1, column_names=names),
            arrow_csv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=dialect.quote or False, newlines_in_values=True
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=list(options.null_texts),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != len(records.starts):
        return None
    return {name: table[name].combine_chunks() for name in names}


def _split_one_by_one(
    buffer: TypeBuffer, records: CsvBlock, layout: CsvLayout, options: CsvOptions, number_before: int
) -> tuple[dict[str, pa.Array], Positions]:
    """Split the records one by one; malformed records are reported as problems."""
    rows, row_numbers = list[Sequence[str | None]](), list[int]()
    null_texts = frozenset(options.null_texts)
    for position, line_number in enumerate(records.line_numbers.tolist()):
        record = records.record(position)
        try:
            rows.append(_decode_record(record, layout, null_texts))
            row_numbers.append(line_number + number_before)
        except InputError as error:
            number = line_number + number_before
            details = {**error.details, "line": number}
            located_error = InputError(hint=error.hint, **details)
            buffer.record_count += 1
            buffer.problems.add(located_error, number, buffer.entity_type.name, unreadable_line=record)
    cells = zip(*rows, strict=True) if rows else ([] for _ in layout.stored_columns)
    arrays = {name: pa.array(column, pa.string()) for name, column in zip(layout.stored_columns, cells, strict=True)}
    return arrays, np.array(row_numbers, np.int64)


def _decode_record(record: bytes, layout: CsvLayout, null_texts: frozenset[str]) -> list[str | None]:
    cells = split_cells(record, layout.dialect)
    if len(cells) != len(layout.file_columns):
        reason = f"expected {format_count(len(layout.file_columns), 'cell')}, got {len(cells)}"
        raise InputError(reason=reason, hint=f"quote cells that contain the delimiter {layout.dialect.delimiter!r}")
    values: list[str | None] = []
    for column_name, (text, is_quoted) in zip(layout.file_columns, cells, strict=True):
        try:
            value = text.decode()
        except UnicodeDecodeError as error:
            reason = f"byte 0x{text[error.start]:02x} in column '{column_name}' is not valid UTF-8"
            raise InputError(reason=reason, hint=_ENCODING_HINT) from None
        values.append(None if not is_quoted and value in null_texts else value)
    return values
