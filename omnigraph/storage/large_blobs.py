"""Replace large blobs in rows with placeholders, so that a write can copy unchanged blobs without loading them.

Changing one property rewrites the whole row. Reads during a write therefore return placeholders for large stored blobs,
and the bytes are streamed from the old file to the new file. Small blobs remain bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError

from .blobs import is_blob_field
from .failures import as_storage_errors
from .pending_blobs import PendingBlobs, placeholder_of
from .scan import ROW_ADDRESS, ROW_ID
from .table import Table

LARGE_BLOB_BYTES = 4 << 20  # Lance stores each blob above this size in a separate file
HEAVY_BLOB_BYTES = 64 << 20  # a fragment with a blob above this size is never rewritten just because it has few rows
_COPY_BLOCK_BYTES = 4 << 20
_OWN_FILE_KIND = 2

ReadBlobs = Callable[[Table, str, pa.Array], pa.Array]
Descriptor = Mapping[str, Any] | None


def blob_columns(table: Table, column_names: list[str]) -> list[str]:
    """Return the given columns that contain blobs."""
    schema = table.schema
    return [name for name in column_names if name in schema.names and is_blob_field(schema.field(name))]


def has_large_blobs(described_rows: pa.Table, columns: list[str]) -> bool:
    """Return whether any blob is large; the given columns must contain Lance's blob descriptions."""
    return any(_is_large(descriptor) for name in columns for descriptor in described_rows[name].to_pylist())


def find_heavy_fragments(table: Table) -> frozenset[int]:
    """Return the fragments that contain a blob too large to hold in memory or to rewrite unnecessarily."""
    names = blob_columns(table, table.schema.names)
    if not names:
        return frozenset()
    scanner = table.dataset.scanner(columns=names, with_row_address=True, blob_handling="blobs_descriptions")
    try:
        with as_storage_errors("none"):
            batches = list(scanner.to_batches())
    except (StorageError, pa.ArrowException):
        return frozenset()  # planning must not fail; damage is reported once the files are verified or read
    return frozenset(address >> 32 for batch in batches for name in names for address in _heavy_addresses(batch, name))


def _heavy_addresses(batch: pa.RecordBatch, column: str) -> list[int]:
    sizes = pc.fill_null(pc.struct_field(batch[column], "size"), 0)
    addresses: list[int] = batch[ROW_ADDRESS].filter(pc.greater(sizes, HEAVY_BLOB_BYTES)).to_pylist()
    return addresses


def with_placeholders(
    table: Table, described_rows: pa.Table, columns: list[str], running_write: PendingBlobs, read_blobs: ReadBlobs
) -> pa.Table:
    """Return the rows with small blobs as bytes and large blobs as placeholders.

    The rows must have row ids and addresses.
    """
    for name in columns:
        blobs = _resolve_blob_column(table, name, described_rows, running_write, read_blobs)
        described_rows = described_rows.set_column(described_rows.column_names.index(name), name, blobs)
    return described_rows


def _resolve_blob_column(
    table: Table, column: str, described_rows: pa.Table, running_write: PendingBlobs, read_blobs: ReadBlobs
) -> pa.Array:
    descriptors: list[Descriptor] = described_rows[column].to_pylist()
    row_ids = described_rows[ROW_ID].to_pylist()
    small_ids = [row_id for row_id, descriptor in zip(row_ids, descriptors, strict=True) if not _is_large(descriptor)]
    read_values = read_blobs(table, column, pa.array(small_ids, pa.uint64())).to_pylist()
    small_blobs = dict(zip(small_ids, read_values, strict=True))
    addresses = described_rows[ROW_ADDRESS].to_pylist()
    values = [
        small_blobs[row_id]
        if descriptor is None or row_id in small_blobs
        else running_write.accept_stored(
            ("stored", table.location, table.version, column, row_id),
            _find_local_file(table, address, descriptor),
            partial(_read_blocks, table, column, row_id),
        )
        for row_id, address, descriptor in zip(row_ids, addresses, descriptors, strict=True)
    ]
    return pa.array(values, pa.large_binary())


def comparable_blobs(blobs: pa.Array) -> pa.Array:
    """Replace large blobs in a column with placeholders, so that the column can be compared with stored rows."""
    lengths = pc.fill_null(pc.binary_length(blobs), 0)
    if not pc.any(pc.greater(lengths, LARGE_BLOB_BYTES)).as_py():
        return blobs
    values = [
        placeholder_of(blob) if blob is not None and len(blob) > LARGE_BLOB_BYTES else blob
        for blob in blobs.to_pylist()
    ]
    return pa.array(values, blobs.type)


def comparable_rows(rows: pa.Table) -> pa.Table:
    """Replace large blobs with placeholders, so that the rows can be compared with stored rows."""
    for position, column_field in enumerate(rows.schema):
        if pa.types.is_large_binary(column_field.type):
            blobs = pa.chunked_array(
                [comparable_blobs(chunk) for chunk in rows.column(position).chunks], column_field.type
            )
            rows = rows.set_column(position, column_field, blobs)
    return rows


def _is_large(descriptor: Descriptor) -> bool:
    return descriptor is not None and descriptor["size"] > LARGE_BLOB_BYTES


def _find_local_file(table: Table, address: int, descriptor: Mapping[str, Any]) -> Path | None:
    """Return the file that contains only this blob, or None if the blob shares a file or is on an object store."""
    if "://" in table.dataset.uri or descriptor["kind"] != _OWN_FILE_KIND:
        return None
    data_folder = Path(table.dataset.uri) / "data"
    for data_file in table.dataset.get_fragment(address >> 32).metadata.files:
        candidate: Path = data_folder / data_file.path.removesuffix(".lance") / blob_file_name(descriptor["blob_id"])
        if candidate.is_file() and candidate.stat().st_size == descriptor["size"]:
            return candidate
    return None


def _read_blocks(table: Table, column: str, row_id: int) -> Iterator[bytes]:
    with as_storage_errors("none"):
        (blob_file,) = table.dataset.take_blobs(column, ids=[row_id])
        for start in range(0, blob_file.size(), _COPY_BLOCK_BYTES):
            yield blob_file.read_range(start, min(_COPY_BLOCK_BYTES, blob_file.size() - start))


def blob_file_name(blob_id: int) -> str:
    """Return Lance's name for a blob file: the bits of its id, lowest bit first.

    >>> blob_file_name(1)
    '10000000000000000000000000000000.blob'
    """
    return f"{blob_id:032b}"[::-1] + ".blob"
