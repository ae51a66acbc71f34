"""Read rows and their blobs in pieces that have a limited number of rows and a limited number of bytes.

An export reads every blob in a table, so the number of rows does not indicate how much memory it needs. Large blobs can
be streamed: their rows contain markers, and the caller reads the bytes block by block.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.records.frozen import record
from omnigraph.values.clock_and_ids import new_nonce

from .batch_sizes import BlockSize
from .find_rows import read_blobs, take_described, take_with_blobs
from .large_blobs import blob_columns, read_blob_blocks
from .table import Table

_PIECE_ROWS = 8192
_FIRST_PIECE_ROWS = 2  # the size of the values is not known yet
# The target for values other than blobs. Reading and encoding a piece takes up to twenty times this much memory.
_PIECE_VALUE_BYTES = 2 << 20
_PIECE_BYTES = 8 << 20  # maximum total size of the blobs in a piece, unless a single row exceeds it
_STREAMED_BYTES = 1 << 20  # blobs above this size are streamed
# All markers have the same length and start with the same random bytes, which no blob contains by accident. The length
# of the prefix is a multiple of three, so that its base64 digits do not depend on what follows.
MARKER_PREFIX = f"streamed blob {new_nonce()}".ljust(60).encode()
_MARKER_DIGITS = 12
ReadBlocks = Callable[[int], Iterator[bytes]]


@record(eq=False)
class RowPiece:
    """Some rows of a table, in which markers represent streamed blobs.

    For each marker, `streamed` contains a function that returns the blob in blocks of a given size.
    """

    rows: pa.Table
    streamed: dict[bytes, ReadBlocks]


def take_pieces(table: Table, row_ids: pa.Array) -> Iterator[pa.Table]:
    """Yield the rows with these row ids, in the given order and with blobs as bytes."""
    names, block_size = (
        blob_columns(table, table.schema.names),
        BlockSize(_FIRST_PIECE_ROWS, _PIECE_ROWS, _PIECE_VALUE_BYTES),
    )
    for piece_ids in _split_row_ids(table, row_ids, block_size, streams_blobs=False):
        piece = take_with_blobs(table, piece_ids)
        block_size.adapt(piece.num_rows, _plain_value_bytes(piece, names))
        yield piece


def take_streamed_pieces(table: Table, row_ids: pa.Array) -> Iterator[RowPiece]:
    """Yield the rows with these row ids, in the given order.

    Small blobs are returned as bytes, and large blobs as markers.
    """
    names, block_size = (
        blob_columns(table, table.schema.names),
        BlockSize(_FIRST_PIECE_ROWS, _PIECE_ROWS, _PIECE_VALUE_BYTES),
    )
    for piece_ids in _split_row_ids(table, row_ids, block_size, streams_blobs=True):
        piece = _take_streamed_piece(table, piece_ids)
        block_size.adapt(piece.rows.num_rows, _plain_value_bytes(piece.rows, names))
        yield piece


def _plain_value_bytes(rows: pa.Table, blob_names: list[str]) -> int:
    """Return the size of all values except blobs, whose size `_split_row_ids` limits separately."""
    return sum(rows[name].nbytes for name in rows.column_names if name not in blob_names)


def _split_row_ids(
    table: Table, row_ids: pa.Array, block_size: BlockSize, *, streams_blobs: bool
) -> Iterator[pa.Array]:
    names = blob_columns(table, table.schema.names)
    block_end = 0
    while block_end < len(row_ids):
        block_ids = row_ids.slice(block_end, block_size.rows)
        block_end += len(block_ids)
        if not names:
            yield block_ids
            continue
        piece_start = piece_bytes = 0
        for position, row_bytes in enumerate(_blob_bytes(table, block_ids, names, streams_blobs)):
            if piece_bytes and piece_bytes + row_bytes > _PIECE_BYTES:
                yield block_ids.slice(piece_start, position - piece_start)
                piece_start, piece_bytes = position, 0
            piece_bytes += row_bytes
        yield block_ids.slice(piece_start)


def _blob_bytes(table: Table, row_ids: pa.Array, names: list[str], streams_blobs: bool) -> list[int]:
    """For each row, return the number of blob bytes that are read into memory."""
    described_rows = take_described(table, row_ids, names)
    sizes_by_column = [_blob_sizes(described_rows, name) for name in names]
    return [
        sum(size for size in row_sizes if not (streams_blobs and size > _STREAMED_BYTES))
        for row_sizes in zip(*sizes_by_column, strict=True)
    ]


def _blob_sizes(described_rows: pa.Table, name: str) -> list[int]:
    sizes: list[int] = pc.fill_null(pc.struct_field(described_rows[name], "size"), 0).to_pylist()
    return sizes


def _take_streamed_piece(table: Table, row_ids: pa.Array) -> RowPiece:
    names = blob_columns(table, table.schema.names)
    rows = take_with_blobs(table, row_ids, [name for name in table.schema.names if name not in names])
    streamed: dict[bytes, ReadBlocks] = {}
    if not names:
        return RowPiece(rows, streamed)
    described_rows = take_described(table, row_ids, names)
    for name in names:
        blobs = _mark_large_blobs(table, name, row_ids, _blob_sizes(described_rows, name), streamed)
        rows = rows.append_column(name, pa.array(blobs, pa.large_binary()))
    return RowPiece(rows.select(table.schema.names), streamed)


def _mark_large_blobs(
    table: Table, column: str, row_ids: pa.Array, sizes: list[int], streamed: dict[bytes, ReadBlocks]
) -> list[bytes | None]:
    """Return the blobs in a column, replacing each large blob with a marker and adding the marker to `streamed`."""
    loaded_positions = [position for position, size in enumerate(sizes) if size <= _STREAMED_BYTES]
    loaded_blobs = read_blobs(table, column, row_ids.take(pa.array(loaded_positions, pa.int64()))).to_pylist()
    blob_by_position: dict[int, bytes | None] = dict(zip(loaded_positions, loaded_blobs, strict=True))
    for position, row_id in enumerate(row_ids.to_pylist()):
        if position not in blob_by_position:
            marker = MARKER_PREFIX + f"{len(streamed):0{_MARKER_DIGITS}}".encode()
            blob_by_position[position] = marker
            streamed[marker] = partial(read_blob_blocks, table, column, row_id)
    return [blob_by_position[position] for position in range(len(sizes))]
