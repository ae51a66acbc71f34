"""Blob columns: bytes in memory, Lance's blob type in a table.

Code outside storage handles plain bytes; Lance's form exists only where a table is written. NULL
and the empty blob are distinct.
"""

import pyarrow as pa
from lance.blob import BlobType, blob_array


def row_schema(stored: pa.Schema) -> pa.Schema:
    """Return the columns of a table as rows in memory have them: blobs as bytes, all nullable."""
    return pa.schema([_field(one) for one in stored])


def stored_form(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """Convert rows to the form in which a table stores them."""
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
    """Return whether a column of a table holds blobs."""
    return isinstance(one.type, BlobType)
