"""Read the contents of a file for a search: decompressed bytes, strings of Parquet and Arrow files.

The format is detected from the first bytes, never from the name. A file that cannot be unpacked is
searched as it is.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

_PIECE = 1 << 22
_GZIP, _ZSTD, _PARQUET, _ARROW = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"ARROW1"


def pieces_of(path: Path, overlap: int) -> Iterator[bytes]:
    """Yield the contents of a file in pieces; each starts with the last bytes of the previous one.

    The overlap finds matches that lie across two pieces.
    """
    try:
        yield from _unpacked(path, overlap)
    except (OSError, EOFError, zlib.error, pa.ArrowException):
        with path.open("rb") as file:
            yield from _overlapping(file, overlap)


def _unpacked(path: Path, overlap: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(_PARQUET):
        yield from _texts(_parquet_batches(path))
    elif start.startswith(_ARROW):
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as found:
            yield from _texts(found.get_batch(at) for at in range(found.num_record_batches))
    elif start.startswith(_GZIP):
        with gzip.open(path) as file:
            yield from _overlapping(file, overlap)
    elif start.startswith(_ZSTD):
        with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as packed:
            yield from _overlapping(packed, overlap)
    else:
        with path.open("rb") as file:
            yield from _overlapping(file, overlap)


def _parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as found:
        yield from found.iter_batches()


def _texts(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for column in batch.columns:
            yield from _values(column)


def _values(column: pa.Array) -> Iterator[bytes]:
    """Yield all strings of a column, joined by newlines; includes those in lists and structs."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary
        kind = column.type
    if pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _values(part)
    elif pa.types.is_nested(kind):
        yield from _values(column.flatten())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield "\n".join(one for one in column.to_pylist() if one is not None).encode()


def _overlapping(file: Any, overlap: int) -> Iterator[bytes]:
    kept = b""
    while piece := bytes(file.read(_PIECE)):
        yield kept + piece
        kept = piece[-overlap:] if overlap else b""
