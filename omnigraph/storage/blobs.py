"""Blob columns, which hold plain bytes in memory and use Lance's blob type in a table.

Code outside `storage` handles plain bytes, or placeholders for bytes in a file. Rows are converted to Lance's blob type
only when a table is written. NULL and the empty blob are distinct.
"""

import pyarrow as pa
from lance.blob import Blob, BlobType, blob_array

from .blob_placeholders import content_range


def row_schema(stored_schema: pa.Schema) -> pa.Schema:
    """Return the in-memory form of a table schema, in which blobs are bytes and all columns are nullable."""
    return pa.schema([_row_field(stored_field) for stored_field in stored_schema])


def to_stored_rows(rows: pa.Table, stored_schema: pa.Schema) -> pa.Table:
    """Convert rows to their stored form."""
    if not any(is_blob_field(stored_field) for stored_field in stored_schema):
        return rows
    columns = {
        stored_field.name: blob_array([_stored_blob(blob) for blob in rows[stored_field.name].to_pylist()])
        if is_blob_field(stored_field)
        else rows[stored_field.name]
        for stored_field in stored_schema
    }
    return pa.table(columns)


def _stored_blob(blob: bytes | None) -> bytes | Blob | None:
    """Return a blob in the form that Lance writes.

    If the blob is in a file, Lance copies the content from that file.
    """
    content = content_range(blob)
    if content is None:
        return blob
    uri = content.path.as_uri()
    return Blob.from_uri(uri, content.position, content.size) if content.size else Blob.empty()


def _row_field(stored_field: pa.Field) -> pa.Field:
    row_type = pa.large_binary() if is_blob_field(stored_field) else stored_field.type
    return pa.field(stored_field.name, row_type)


def columns_without_blobs(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that other programs can read directly: all columns except blob columns."""
    return [field.name for field in schema if not is_blob_field(field)]


def is_blob_field(field: pa.Field) -> bool:
    """Return whether a table column contains blobs."""
    return isinstance(field.type, BlobType)
