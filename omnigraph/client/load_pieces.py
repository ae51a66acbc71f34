"""Split a load that is too large for one request into batches of pieces, in the order in which they must be sent.

Nodes come before the edges that connect them; a deletion sends edges first. A piece of a file is a file of the same
format, so the server reads it with the same reader. NDJSON whose lines name their types is read twice: once for its
nodes, once for its edges. This module sends nothing.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.records.frozen import record

from .load_parts import LoadPart
from .load_problems import LineNumbers, SentFile

if TYPE_CHECKING:
    from omnigraph.ingest.csv_options import CsvOptions
    from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType

_BATCH_ROWS = 65_536
_FORM_BYTES = 1024  # the most bytes that a form adds for each file


@record(eq=False)
class LoadPiece:
    """A piece of a part, and how the piece's lines map to lines of the part. `csv_options` apply to this piece."""

    part: LoadPart
    sent_file: SentFile
    csv_options: Any = None


def cut_batches(
    parts: Iterable[LoadPart], catalog: "Catalog", csv_options: "CsvOptions", max_bytes: int, *, edges_first: bool
) -> Iterator[list[LoadPiece]]:
    """Yield the pieces of all parts in batches of at most `max_bytes`. All pieces of a batch have the same options.

    A line or row that is longer than `max_bytes` is a batch of its own.
    """
    parts = list(parts)
    for wants_edges in (edges_first, not edges_first):
        pieces = (piece for part in parts for piece in _cut_part(part, catalog, csv_options, max_bytes, wants_edges))
        yield from _join_pieces(pieces, max_bytes)


def _join_pieces(pieces: Iterator[LoadPiece], max_bytes: int) -> Iterator[list[LoadPiece]]:
    batch: list[LoadPiece] = []
    batch_bytes = 0
    for piece in pieces:
        piece_bytes = piece.part.size + _FORM_BYTES
        if batch and (batch_bytes + piece_bytes > max_bytes or piece.csv_options != batch[0].csv_options):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(piece)
        batch_bytes += piece_bytes
    if batch:
        yield batch


def _cut_part(
    part: LoadPart, catalog: "Catalog", csv_options: "CsvOptions", max_bytes: int, wants_edges: bool
) -> Iterator[LoadPiece]:
    if part.type_name is None:
        lines = _select_lines(iter_lines(part), wants_edges=wants_edges)
        yield from _join_lines(part, lines, max_bytes, csv_options)
        return
    entity_type = find_type(catalog, part.type_name)
    if (entity_type.kind == "edge") != wants_edges:
        return
    if part.size + _FORM_BYTES <= max_bytes:
        yield LoadPiece(part, SentFile(part.label), csv_options)
    elif part.file_format == "csv":
        yield from _cut_csv(part, entity_type, csv_options, max_bytes)
    elif part.file_format == "ndjson":
        yield from _join_lines(part, enumerate(iter_lines(part), 1), max_bytes, csv_options)
    else:
        yield from _cut_table(part, max_bytes, csv_options)


def find_type(catalog: "Catalog", type_name: str) -> "NodeType | EdgeType":
    """Return the type of a part. If the type is unknown, raise the same error that a load would raise."""
    from omnigraph.ingest.frames import FILE_HINT
    from omnigraph.lang.schema.type_names import resolve_type

    return resolve_type(catalog, type_name, ignore_case=True, fallback_hint=FILE_HINT)


# Lines ------------------------------------------------------------------------------------------


def iter_lines(part: LoadPart) -> Iterator[bytes]:
    """Yield the lines of a part without line ends. Each record of a JSON array counts as a line."""
    from omnigraph.ingest.files import cut_blocks
    from omnigraph.ingest.json_arrays import unwrap_array

    for block in cut_blocks(unwrap_array(part.chunks()), part.size):
        yield from block.split(b"\n")


def _select_lines(lines: Iterable[bytes], *, wants_edges: bool) -> Iterator[tuple[int, bytes]]:
    """Yield either the lines that describe edges or all other lines, with their line numbers; skip blank lines."""
    for line_number, line in enumerate(lines, 1):
        if line.strip() and is_edge_line(line) == wants_edges:
            yield line_number, line


def is_edge_line(line: bytes) -> bool:
    """Return whether a line describes an edge.

    >>> is_edge_line(b'{"edge": "Knows"}'), is_edge_line(b'{"type": "Doc", "data": {"edge": 1}}')
    (True, False)
    """
    if b"edge" not in line and b"\\" not in line:
        return False
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "edge" in document


def _join_lines(
    part: LoadPart, numbered_lines: Iterable[tuple[int, bytes]], max_bytes: int, csv_options: Any
) -> Iterator[LoadPiece]:
    joined: list[bytes] = []
    size, line_numbers = 0, array("Q")
    for line_number, line in numbered_lines:
        if joined and size + len(line) + 1 > max_bytes - _FORM_BYTES:
            yield _make_piece(part, b"\n".join(joined) + b"\n", _number_lines(line_numbers), csv_options)
            joined, size, line_numbers = [], 0, array("Q")
        joined.append(line)
        line_numbers.append(line_number)
        size += len(line) + 1
    if joined:
        yield _make_piece(part, b"\n".join(joined) + b"\n", _number_lines(line_numbers), csv_options)


def _number_lines(line_numbers: "array[int]") -> LineNumbers:
    return lambda line: line_numbers[line - 1] if 0 < line <= len(line_numbers) else line


def _make_piece(part: LoadPart, content: bytes, line_number: LineNumbers, csv_options: Any) -> LoadPiece:
    piece = replace(part, size=len(content), chunks=lambda: iter((content,)))
    return LoadPiece(piece, SentFile(part.label, line_number), csv_options)


# CSV --------------------------------------------------------------------------------------------


@record(eq=False)
class CsvRecords:
    """A block of complete records from a CSV file, and the file's header line with its line end (empty if none)."""

    dialect: Any
    header: bytes
    block: Any


def iter_csv(
    part: LoadPart, entity_type: "NodeType | EdgeType", options: "CsvOptions", block_bytes: int | None = None
) -> Iterator[CsvRecords]:
    """Yield the records of a CSV file in blocks."""
    from omnigraph.ingest.csv_reader import CsvSource, open_csv
    from omnigraph.ingest.csv_records import cut_records
    from omnigraph.ingest.load_limits import LoadLimits

    layout, text = open_csv(part.chunks(), CsvSource(options, part.column_mapping, part.label), entity_type)
    if layout is None:
        return
    header: bytes | None = None if options.has_header(entity_type.name) else b""
    for block in cut_records(text, layout.dialect, LoadLimits(line_bytes=part.size), block_bytes):
        records = block.without_blank()
        if header is None and len(records.starts):
            header, records = records.record(0) + b"\n", records.without_first()
        yield CsvRecords(layout.dialect, header or b"", records)


def _cut_csv(
    part: LoadPart, entity_type: "NodeType | EdgeType", options: "CsvOptions", max_bytes: int
) -> Iterator[LoadPiece]:
    """Split a CSV file at the ends of records. Each piece begins with the header line of the file."""
    for records in iter_csv(part, entity_type, options, max(1, min(max_bytes // 2, 4 << 20))):
        piece_options = replace(options, delimiter=records.dialect.delimiter, quote=records.dialect.quote)
        block, header = records.block, records.header
        for first, last in _cut_rows(block, max_bytes - _FORM_BYTES - len(header)):
            content = header + block.text[block.starts[first] : block.ends[last]] + b"\n"
            number = _number_records(int(block.line_numbers[first]), header.count(b"\n"))
            yield _make_piece(part, content, number, piece_options)


def _cut_rows(records: Any, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the first and the last record of each piece."""
    first, count = 0, len(records.starts)
    while first < count:
        last = first
        while last + 1 < count and records.ends[last + 1] - records.starts[first] < max_bytes:
            last += 1
        yield first, last
        first = last + 1


def _number_records(first_line: int, header_lines: int) -> LineNumbers:
    return lambda line: line if line <= header_lines else first_line + line - header_lines - 1


# Tables -----------------------------------------------------------------------------------------


def _cut_table(part: LoadPart, max_bytes: int, csv_options: Any) -> Iterator[LoadPiece]:
    """Split a Parquet file or an Arrow stream into Arrow streams."""
    first_row = 0
    for table in iter_tables(part):
        for rows in _halve_until(table, max_bytes - _FORM_BYTES):
            content = _encode_table(rows)
            piece = replace(part, file_format="arrow", size=len(content), chunks=_repeat(content))
            yield LoadPiece(piece, SentFile(part.label, _offset_rows(first_row)), csv_options)
            first_row += rows.num_rows


def _repeat(content: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter((content,))


def _offset_rows(first_row: int) -> LineNumbers:
    return lambda row: first_row + row


def iter_tables(part: LoadPart) -> Iterator[Any]:
    """Yield the rows of a Parquet file or an Arrow stream as tables of bounded size."""
    import pyarrow as pa
    import pyarrow.parquet

    with _open_table(part) as file:
        if part.file_format == "arrow":
            with pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        else:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(_BATCH_ROWS):
                yield pa.Table.from_batches([batch])


def _open_table(part: LoadPart) -> Any:
    """Return the bytes of a part as a temporary file, because Parquet files are not read from start to end."""
    from tempfile import TemporaryFile

    file = TemporaryFile()  # noqa: SIM115 - the caller closes it
    for chunk in part.chunks():
        file.write(chunk)
    file.seek(0)
    return file


def _halve_until(table: Any, max_bytes: int) -> Iterator[Any]:
    if table.nbytes <= max_bytes // 2 or table.num_rows <= 1:
        yield table
        return
    middle = table.num_rows // 2
    yield from _halve_until(table.slice(0, middle), max_bytes)
    yield from _halve_until(table.slice(middle), max_bytes)


def _encode_table(table: Any) -> bytes:
    from .load_parts import write_arrow

    return b"".join(write_arrow(table.combine_chunks()))
