"""Blob columns: bytes in memory, Lance's own form in a table.

Rows are handled with plain bytes everywhere above; the form of Lance exists only where a table is
written. Nothing and empty stay apart.
"""

import pyarrow as pa
from lance.blob import BlobType, blob_array


def row_schema(stored: pa.Schema) -> pa.Schema:
    """The columns of a table as rows in memory have them: blobs are bytes, anything may be null."""
    return pa.schema([_field(one) for one in stored])


def stored_form(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """Rows as a table takes them."""
    if not any(is_blob(one) for one in stored):
        return rows
    columns = {
        one.name: blob_array(rows[one.name].to_pylist()) if is_blob(one) else rows[one.name]
        for one in stored
    }
    return pa.table(columns)


def _field(one: pa.Field) -> pa.Field:
    kind = pa.large_binary() if is_blob(one) else one.type
    return pa.field(one.name, kind)


def is_blob(one: pa.Field) -> bool:
    """Whether a column of a table holds blobs."""
    return isinstance(one.type, BlobType)
