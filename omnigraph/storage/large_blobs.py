"""Replace large blobs in rows with placeholders, so that a write can copy unchanged blobs without loading them.

Changing one property of a row rewrites the whole row. Therefore, reads during a write return placeholders for large
stored blobs, and the bytes are streamed from the stored file to the new file. Small blobs, which Lance stores among the
other values of a row, remain bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError

from .blob_placeholders import ContentRange, content_digest, placeholder_of
from .blobs import is_blob_field
from .failures import as_storage_errors
from .pending_blobs import PendingBlobs
from .scan import ROW_ADDRESS, ROW_ID
from .table import Table
from .table_fields import lance_columns

LARGE_BLOB_BYTES = 64 << 10  # threshold above which Lance stores blobs outside the data file
HEAVY_BLOB_BYTES = 64 << 20  # a fragment with a blob above this size is not rewritten merely because it has few rows
_COPY_BLOCK_BYTES = 4 << 20
_SEPARATE_FILE_KINDS = (1, 2)  # packed with other blobs, or in a file of its own

ReadBlobs = Callable[[Table, str, pa.Array], pa.Array]
Descriptor = Mapping[str, Any] | None


def blob_columns(table: Table, column_names: list[str]) -> list[str]:
    """Return the given columns that contain blobs."""
    schema = table.schema
    return [name for name in column_names if name in schema.names and is_blob_field(schema.field(name))]


def has_large_blobs(table: Table, described_rows: pa.Table) -> bool:
    """Return whether any blob is large. The rows must contain Lance's blob descriptions."""
    names = blob_columns(table, described_rows.column_names)
    return any(_is_large(descriptor) for name in names for descriptor in described_rows[name].to_pylist())


def find_heavy_fragments(table: Table) -> frozenset[int]:
    """Return the fragments that contain a very large blob and should therefore rarely be rewritten."""
    return frozenset(
        fragment_id
        for fragment_id, sizes in _blob_sizes_by_fragment(table).items()
        if max(sizes, default=0) > HEAVY_BLOB_BYTES
    )


def blob_bytes_by_fragment(table: Table) -> dict[int, int]:
    """Return the total blob size for each fragment that contains blobs."""
    return {fragment_id: sum(sizes) for fragment_id, sizes in _blob_sizes_by_fragment(table).items()}


def _blob_sizes_by_fragment(table: Table) -> dict[int, list[int]]:
    names = blob_columns(table, table.schema.names)
    sizes_by_fragment: dict[int, list[int]] = {}
    if not names:
        return sizes_by_fragment
    scanner = table.dataset.scanner(columns=names, with_row_address=True, blob_handling="blobs_descriptions")
    try:
        with as_storage_errors("none"):
            batches = list(scanner.to_batches())
    except (StorageError, pa.ArrowException):
        return {}  # damage must not make planning fail; it is reported when the files are verified or read
    for batch in batches:
        fragment_ids = [address >> 32 for address in batch[ROW_ADDRESS].to_pylist()]
        for name in names:
            sizes = pc.fill_null(pc.struct_field(batch[name], "size"), 0).to_pylist()
            for fragment_id, size in zip(fragment_ids, sizes, strict=True):
                sizes_by_fragment.setdefault(fragment_id, []).append(size)
    return sizes_by_fragment


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
    find_file_stems = cache(partial(_data_file_stems, table, column))
    values = [
        small_blobs[row_id]
        if descriptor is None or row_id in small_blobs
        else running_write.accept_stored(
            ("stored", table.location, table.version, column, row_id),
            _find_local_content(table, find_file_stems(address >> 32), descriptor),
            partial(read_blob_blocks, table, column, row_id),
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
    return _map_blobs(rows, comparable_blobs)


def with_content_digests(rows: pa.Table) -> pa.Table:
    """Replace large blobs and placeholders with hashes that are the same in every process."""
    return _map_blobs(comparable_rows(rows), _content_digests)


def _content_digests(blobs: pa.Array) -> pa.Array:
    values = [blob if blob is None else (content_digest(blob) or "").encode() or blob for blob in blobs.to_pylist()]
    return pa.array(values, blobs.type)


def _map_blobs(rows: pa.Table, convert: Callable[[pa.Array], pa.Array]) -> pa.Table:
    for position, column_field in enumerate(rows.schema):
        if pa.types.is_large_binary(column_field.type):
            blobs = pa.chunked_array([convert(chunk) for chunk in rows.column(position).chunks], column_field.type)
            rows = rows.set_column(position, column_field, blobs)
    return rows


def _is_large(descriptor: Descriptor) -> bool:
    return descriptor is not None and descriptor["size"] > LARGE_BLOB_BYTES


def _find_local_content(table: Table, file_stems: list[str], descriptor: Mapping[str, Any]) -> ContentRange | None:
    """Return the location of a blob in a local blob file, or None if there is no such file."""
    if "://" in table.dataset.uri or descriptor["kind"] not in _SEPARATE_FILE_KINDS:
        return None
    data_folder, (position, size) = Path(table.dataset.uri) / "data", (descriptor["position"], descriptor["size"])
    for file_stem in file_stems:
        blob_file = data_folder / file_stem / blob_file_name(descriptor["blob_id"])
        if blob_file.is_file() and blob_file.stat().st_size >= position + size:
            return ContentRange(blob_file, position, size)
    return None


def _data_file_stems(table: Table, column: str, fragment_id: int) -> list[str]:
    """Return the names, without suffixes, of the data files that contain a fragment's values for the column."""
    field_ids = next(
        set(stored_column.field_ids)
        for stored_column in lance_columns(table.dataset.lance_schema)
        if stored_column.name == column
    )
    data_files = table.dataset.get_fragment(fragment_id).metadata.files
    return [data_file.path.removesuffix(".lance") for data_file in data_files if field_ids & set(data_file.fields)]


def read_blob_blocks(table: Table, column: str, row_id: int, block_bytes: int = _COPY_BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the bytes of one stored blob in blocks of a given size. Only the last block may be shorter."""
    with as_storage_errors("none"):
        (blob_file,) = table.dataset.take_blobs(column, ids=[row_id])
        for start in range(0, blob_file.size(), block_bytes):
            yield blob_file.read_range(start, min(block_bytes, blob_file.size() - start))


def blob_file_name(blob_id: int) -> str:
    """Return the name that Lance gives to a blob file: the bits of the blob's id, lowest bit first.

    >>> blob_file_name(1)
    '10000000000000000000000000000000.blob'
    """
    return f"{blob_id:032b}"[::-1] + ".blob"
