"""Read file contents for a search: decompressed bytes, or the strings in Parquet and Arrow files.

The format is detected from the first bytes, never from the name. A file that cannot be unpacked is searched as it is.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

_PIECE_BYTES = 1 << 22
_GZIP, _ZSTD, _PARQUET, _ARROW = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"ARROW1"


def read_unpacked(file_path: Path, overlap_bytes: int) -> Iterator[bytes]:
    """Yield the contents of a file in pieces. Each piece starts with the last bytes of the previous piece.

    The overlap ensures that a match spanning two pieces is found.
    """
    try:
        yield from _read_by_format(file_path, overlap_bytes)
    except (OSError, EOFError, zlib.error, pa.ArrowException):
        with file_path.open("rb") as file:
            yield from _read_overlapping(file, overlap_bytes)


def _read_by_format(file_path: Path, overlap_bytes: int) -> Iterator[bytes]:
    with file_path.open("rb") as file:
        first_bytes = file.read(8)
    if first_bytes.startswith(_PARQUET):
        yield from _read_strings(_parquet_batches(file_path))
    elif first_bytes.startswith(_ARROW):
        with pa.memory_map(str(file_path)) as source, pa.ipc.open_file(source) as arrow_file:
            yield from _read_strings(
                arrow_file.get_batch(batch_index) for batch_index in range(arrow_file.num_record_batches)
            )
    elif first_bytes.startswith(_GZIP):
        with gzip.open(file_path) as file:
            yield from _read_overlapping(file, overlap_bytes)
    elif first_bytes.startswith(_ZSTD):
        with pa.CompressedInputStream(pa.OSFile(str(file_path)), "zstd") as decompressed:
            yield from _read_overlapping(decompressed, overlap_bytes)
    else:
        with file_path.open("rb") as file:
            yield from _read_overlapping(file, overlap_bytes)


def _parquet_batches(file_path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file_path) as parquet_file:
        yield from parquet_file.iter_batches()


def _read_strings(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for column in batch.columns:
            yield from _column_strings(column)


def _column_strings(column: pa.Array) -> Iterator[bytes]:
    """Yield all strings in a column, including strings in lists and structs, joined by newlines."""
    value_type = column.type
    if pa.types.is_dictionary(value_type):
        column = column.dictionary
        value_type = column.type
    if pa.types.is_struct(value_type):
        for child_column in column.flatten():
            yield from _column_strings(child_column)
    elif pa.types.is_nested(value_type):
        yield from _column_strings(column.flatten())
    elif pa.types.is_string(value_type) or pa.types.is_large_string(value_type):
        yield "\n".join(string_value for string_value in column.to_pylist() if string_value is not None).encode()


def _read_overlapping(file: Any, overlap_bytes: int) -> Iterator[bytes]:
    previous_end = b""
    while piece := bytes(file.read(_PIECE_BYTES)):
        yield previous_end + piece
        previous_end = piece[-overlap_bytes:] if overlap_bytes else b""
