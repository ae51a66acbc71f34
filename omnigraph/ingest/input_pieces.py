"""Split input files into pieces, one per task, and map the records in each piece back to their lines in the files.

A piece numbers its own records from 1; `RecordPositions` converts these numbers to line numbers in
files once all pieces have reported their line counts.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.type_names import resolve_type

from .csv_reader import CsvSource, read_csv
from .files import cut_blocks, detect_compression, iter_blocks, open_text
from .frames import FILE_HINT, RecordType, take_table, take_type_data
from .input_files import COMPRESSED_SUFFIXES, InputFile, ReadErrorContext, open_input_file
from .json_arrays import starts_array
from .ndjson import read_blocks
from .problem import LoadProblem, relocate_problem
from .record_intake import Intake
from .table_files import iter_tables, read_group_sizes, rename_columns
from .text_encoding import is_splittable, to_utf8

RECORD_BITS = 40  # number of bits reserved for a record's number within its piece
_RECORD_MASK = (1 << RECORD_BITS) - 1
_BLOCK_BYTES = 4 << 20  # number of bytes per read
_LINE_SEARCH_BYTES = 1 << 16  # number of bytes per read while searching for the end of a line


@dataclass(frozen=True, slots=True)
class InputPiece:
    """The part of a file that one task reads: a byte range (NDJSON), row groups (Parquet), or a whole file (CSV)."""

    number: int
    input_file: InputFile
    start: int = 0
    end: int | None = None


def cut_into_pieces(input_files: Sequence[InputFile], piece_bytes: int) -> list[InputPiece]:
    """Split inputs into pieces of about `piece_bytes` bytes, in input order."""
    spans = [
        (input_file, start, end) for input_file in input_files for start, end in _piece_spans(input_file, piece_bytes)
    ]
    return [InputPiece(number, *span) for number, span in enumerate(spans)]


def _piece_spans(input_file: InputFile, piece_bytes: int) -> list[tuple[int, int | None]]:
    if input_file.file_format == "parquet":
        return _row_group_spans(input_file, piece_bytes)
    is_indivisible = (
        input_file.file_format == "csv"
        or Path(input_file.path).suffix in COMPRESSED_SUFFIXES
        or input_file.size <= piece_bytes
    )
    if is_indivisible or not _has_plain_lines(input_file):
        return [(0, None)]
    return [(start, min(start + piece_bytes, input_file.size)) for start in range(0, input_file.size, piece_bytes)]


def _has_plain_lines(input_file: InputFile) -> bool:
    """Return whether line ends can be found from any offset in a file, without reading what precedes the offset."""
    with open_input_file(input_file) as file:
        first_bytes = bytes(file.read(_LINE_SEARCH_BYTES))
    is_array = starts_array(first_bytes.removeprefix(BOM_UTF8))
    return detect_compression(first_bytes) is None and is_splittable(first_bytes) and not is_array


def _row_group_spans(input_file: InputFile, piece_bytes: int) -> list[tuple[int, int | None]]:
    with open_input_file(input_file) as file, _read_errors(input_file):
        group_sizes = read_group_sizes(file)
    spans: list[tuple[int, int | None]] = []
    first_group, span_bytes = 0, 0
    for group, group_bytes in enumerate(group_sizes):
        span_bytes += group_bytes
        if span_bytes >= piece_bytes or group == len(group_sizes) - 1:
            spans.append((first_group, group + 1))
            first_group, span_bytes = group + 1, 0
    return spans or [(0, 0)]


def read_piece_blocks(
    piece: InputPiece, max_line_bytes: int, filter_pieces: Callable[[Iterator[bytes]], Iterator[bytes]] = iter
) -> Iterator[bytes]:
    """Yield the lines that begin inside an NDJSON piece, in blocks."""
    with open_input_file(piece.input_file) as file, _read_errors(piece.input_file):
        if piece.end is None:
            yield from iter_blocks(file, max_line_bytes, filter_pieces=filter_pieces)
        else:
            pieces = _read_span(file, piece.start, piece.end)
            text = to_utf8(pieces) if piece.start == 0 else pieces
            yield from cut_blocks(filter_pieces(text), max_line_bytes)


def _read_span(file: IO[bytes], offset: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of all lines that begin within a span in a file, in blocks of bounded size."""
    if offset:
        file.seek(offset - 1)
        offset += sum(map(len, _read_rest_of_line(file))) - 1
        file.seek(offset)
    block = b"\n"
    while offset < end and (block := file.read(min(_BLOCK_BYTES, end - offset))):
        offset += len(block)
        yield block
    if not block.endswith(b"\n"):
        yield from _read_rest_of_line(file)


def _read_rest_of_line(file: IO[bytes]) -> Iterator[bytes]:
    # Do not use `readline`: files on an object store do not have it, and it has no size limit.
    while chunk := file.read(_LINE_SEARCH_BYTES):
        line, newline, _ = chunk.partition(b"\n")
        yield line + newline
        if newline:
            return


def read_piece(intake: Intake, piece: InputPiece, *, allow_truncate: bool, report_all: bool) -> Iterator[int]:
    """Add a piece's records to `intake` in blocks; yield the position after each block."""
    input_file, first_number = piece.input_file, first_position(piece.number)
    if input_file.file_format == "ndjson":
        yield from read_blocks(
            intake,
            read_piece_blocks(piece, intake.limits.line_bytes, intake.stream_blobs),
            allow_truncate=allow_truncate,
            report_all=report_all,
            first_number=first_number,
            record_type=_record_type(intake.ir.catalog, input_file),
        )
    elif input_file.file_format == "csv":
        yield from _read_csv_piece(intake, input_file, first_number)
    elif input_file.file_format == "frame":
        content = rename_columns(input_file.content, input_file.column_mapping)
        take_type_data(intake, _entity_type(intake.ir.catalog, input_file), content, first_number)
    else:
        for table in _read_parquet_tables(piece):
            take_table(intake, _entity_type(intake.ir.catalog, input_file), table, first_number)
            first_number += table.num_rows
            yield first_number


def _read_csv_piece(intake: Intake, input_file: InputFile, first_number: int) -> Iterator[int]:
    options, file_name = input_file.csv_options, input_file.path or None
    entity_type = _entity_type(intake.ir.catalog, input_file)
    with (
        _read_errors(input_file),
        open_input_file(input_file) as file,
        open_text(file, options.encoding, file_name) as (pieces, _),
    ):
        source = CsvSource(options, input_file.column_mapping, file_name)
        yield from read_csv(intake, entity_type, pieces, source, first_number)


def _read_parquet_tables(piece: InputPiece) -> Iterator[pa.Table]:
    """Yield the rows in a Parquet piece, with columns renamed according to the mapping."""
    input_file = piece.input_file
    with _read_errors(input_file), open_input_file(input_file) as file:
        yield from iter_tables(file, input_file.column_mapping, piece.start, piece.end)


def _read_errors(input_file: InputFile) -> ReadErrorContext:
    return ReadErrorContext(input_file.path, input_file.store_options)


def _record_type(catalog: Catalog, input_file: InputFile) -> RecordType | None:
    if input_file.type_name is None:
        return None
    return RecordType(_entity_type(catalog, input_file), input_file.column_mapping)


def _entity_type(catalog: Catalog, input_file: InputFile) -> NodeType | EdgeType:
    """Return the type of a file's rows; a node type takes precedence over an edge type with the same name."""
    return resolve_type(catalog, input_file.type_name or "", ignore_case=True, fallback_hint=FILE_HINT)


@dataclass(frozen=True, slots=True)
class RecordPositions:
    """The location of each record: its piece's path, and the number of lines before the piece in its file."""

    path_by_piece: Mapping[int, str | None]
    lines_before_piece: Mapping[int, int]

    def line_number(self, position: int) -> int | None:
        """Return a record's line number in its file, or None for a DataFrame row."""
        piece_number = position >> RECORD_BITS
        return (
            (position & _RECORD_MASK) + self.lines_before_piece[piece_number]
            if piece_number in self.path_by_piece
            else None
        )

    def file_path(self, position: int | None) -> str | None:
        """Return the path of a record's file, or None if the record is not from a file."""
        return None if position is None else self.path_by_piece.get(position >> RECORD_BITS)

    def locate_problems(self, problems: Iterable[LoadProblem]) -> list[LoadProblem]:
        """Return problems in input order, with line numbers relative to their files."""
        ordered = sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0))
        return [relocate_problem(problem, self.line_number, self.file_path(problem.line)) for problem in ordered]


def map_record_positions(pieces: Sequence[InputPiece], lines_by_piece: Mapping[int, int]) -> RecordPositions:
    """Compute the positions of records from the line counts that the pieces reported."""
    lines_before: dict[int, int] = {}
    current_path, line_count = None, 0
    for piece in pieces:
        line_count = line_count if piece.input_file.path == current_path else 0
        current_path = piece.input_file.path
        lines_before[piece.number] = line_count
        line_count += lines_by_piece.get(piece.number, 0)
    return RecordPositions({piece.number: piece.input_file.path for piece in pieces}, lines_before)


def first_position(piece_number: int) -> int:
    """Return the position of a piece's first record."""
    return piece_number << RECORD_BITS | 1


class InputFiles:
    """All parts of an input, combined for a load in this process, with one piece per part."""

    def __init__(self, input_files: Sequence[InputFile]) -> None:
        self.pieces = [InputPiece(number, input_file) for number, input_file in enumerate(input_files)]
        paths = {piece.number: piece.input_file.path or None for piece in self.pieces}
        self.positions = RecordPositions(paths, dict.fromkeys(paths, 0))

    @property
    def type_names(self) -> frozenset[str] | None:
        """The names of the types in the input, or None if some records name their type themselves."""
        names = [piece.input_file.type_name for piece in self.pieces]
        return None if None in names else frozenset(name for name in names if name is not None)

    def take_into(self, intake: Intake, *, truncating: bool, report: bool) -> None:
        """Add all records to `intake`."""
        for piece in self.pieces:
            for _ in read_piece(intake, piece, allow_truncate=truncating, report_all=report):
                pass
