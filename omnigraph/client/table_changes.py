"""Read the previewed changes to one table, which a server sends as Arrow streams in base64."""

from base64 import b64decode

import pyarrow as pa

from omnigraph.history.entities import TableChanges
from omnigraph.values.table_key import TableKey

from .commit_documents import Document

_PARTS = ("inserted", "updated_before", "updated_after", "deleted")


def read_table_changes(document: Document) -> TableChanges:
    """Return the changes to one table."""
    return TableChanges(TableKey(document["type_key"]), *(_read_rows(document[part]) for part in _PARTS))


def _read_rows(text: str) -> pa.Table:
    with pa.ipc.open_stream(pa.BufferReader(b64decode(text))) as reader:
        return reader.read_all()
