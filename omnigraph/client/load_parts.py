"""The parts of a load into a graph on a server: files, and records of one type.

A part can be read several times, because a request may be repeated, and because a large load is sent in pieces. Files
are read from disk each time. Compressed text, other encodings, streams and records are first written to a temporary
file. This module sends nothing, and imports Arrow only for tables.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any

from omnigraph.errors import InputError
from omnigraph.ingest.files import detect_compression, open_text
from omnigraph.ingest.input_files import InputFile, ReadErrorContext, open_input_file
from omnigraph.records.frozen import record

from .load_body import LoadBody
from .load_records import FindCatalog, write_typed_lines
from .replies import CHUNK_BYTES

_MARKED_ENCODINGS = (BOM_UTF8, b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


@record(eq=False)
class LoadPart:
    """One part: its format, the type of its rows (None if each row names its own), its file name, and its bytes.

    The bytes of a text format are always UTF-8, whatever the encoding of the file on disk.
    """

    file_format: str
    type_name: str | None
    label: str | None
    size: int
    chunks: Callable[[], Iterator[bytes]]
    column_mapping: Mapping[str, str]


def prepare_parts(input_files: Iterable[InputFile], stack: ExitStack, find_catalog: FindCatalog) -> list[LoadPart]:
    """Return the parts of a load. Closing the stack deletes their temporary files."""
    return [_prepare_part(input_file, stack, find_catalog) for input_file in input_files]


def prepare_records(lines: Iterable[bytes], stack: ExitStack) -> LoadPart:
    """Return a part with NDJSON whose lines name their type."""
    body = stack.enter_context(closing(LoadBody(lines)))
    return LoadPart("ndjson", None, None, body.size, body.chunks, {})


def _prepare_part(input_file: InputFile, stack: ExitStack, find_catalog: FindCatalog) -> LoadPart:
    path = None if input_file.content is not None else Path(input_file.base_folder, input_file.path)
    file_format: str = input_file.file_format
    if file_format == "frame":
        file_format, chunks = _encode_rows(input_file, find_catalog)
    elif path is not None and "://" not in input_file.path and not _needs_conversion(input_file, path):
        size = path.stat().st_size
        return _make_part(input_file, file_format, size, lambda: _read_file(input_file, size))
    elif file_format == "parquet":
        chunks = _read_file(input_file, None)
    else:
        chunks = _read_text(input_file)
    body = stack.enter_context(closing(LoadBody(chunks)))
    return _make_part(input_file, file_format, body.size, body.chunks)


def _make_part(input_file: InputFile, file_format: str, size: int, chunks: Callable[[], Iterator[bytes]]) -> LoadPart:
    label = input_file.path or None
    return LoadPart(file_format, input_file.type_name, label, size, chunks, input_file.column_mapping)


def _needs_conversion(input_file: InputFile, path: Path) -> bool:
    """Return whether a text file is compressed or is not encoded as plain UTF-8."""
    if input_file.file_format == "parquet":
        return False
    if input_file.file_format == "csv" and input_file.csv_options.encoding is not None:
        return True
    with ReadErrorContext(input_file.path), path.open("rb") as file:
        first_bytes = file.read(4)
    return detect_compression(first_bytes) is not None or first_bytes.startswith(_MARKED_ENCODINGS)


def _read_text(input_file: InputFile) -> Iterator[bytes]:
    encoding = input_file.csv_options.encoding if input_file.file_format == "csv" else None
    name = input_file.path or None
    with open_input_file(input_file) as file, open_text(file, encoding, name) as (pieces, _):
        yield from pieces


def _read_file(input_file: InputFile, expected_bytes: int | None) -> Iterator[bytes]:
    """Yield the bytes of a file; raise `InputError` if the file does not have the expected size."""
    read_bytes = 0
    with ReadErrorContext(input_file.path), open_input_file(input_file) as file:
        while chunk := file.read(CHUNK_BYTES):
            read_bytes += len(chunk)
            if expected_bytes is not None and read_bytes > expected_bytes:
                break
            yield chunk
    if expected_bytes not in (None, read_bytes):
        raise InputError(f"{input_file.path} changed while it was being read", reason="unstable input")


def _encode_rows(input_file: InputFile, find_catalog: FindCatalog) -> tuple[str, Iterator[bytes]]:
    """Return tables as an Arrow stream, which keeps their column types, and records as lines of JSON."""
    rows, type_name = input_file.content, input_file.type_name
    if not isinstance(rows, list | tuple):
        from omnigraph.ingest.frames import is_frame, to_arrow_table

        if is_frame(rows):
            return "arrow", write_arrow(to_arrow_table(rows))
    return "ndjson", write_typed_lines(rows, type_name, find_catalog)


def write_arrow(table: Any) -> Iterator[bytes]:
    """Yield a table as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    yield sink.getvalue().to_pybytes()


def read_file_chunks(file: IO[Any]) -> Iterator[bytes]:
    """Yield the bytes of an open file, which may be a text file."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk.encode() if isinstance(chunk, str) else chunk
