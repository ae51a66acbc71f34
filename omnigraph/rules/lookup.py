"""Questions about what is stored, a batch of values each; never one per row.

Owns the small protocol through which rules see a graph. Every answer is something the write has
read, so `Committed` writes down a requirement for each: it must still be so where the write lands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.history.plan import Requirement, SameAnswer, SameContent, WriteTxn
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find import find, read


class Lookup(Protocol):
    """What rules may ask of the committed state."""

    def find(
        self,
        key: str,
        where: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        places: bool = False,
    ) -> pa.Table:
        """Stored rows whose named columns have one of these values, with their places if asked."""

    def scan(self, key: str, columns: Sequence[str]) -> pa.Table:
        """All stored rows of a table."""


@dataclass(slots=True)
class Committed:
    """The state that a write is based on; remembers what was asked."""

    txn: WriteTxn
    requirements: list[Requirement] = field(default_factory=list)

    def find(
        self,
        key: str,
        where: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        places: bool = False,
    ) -> pa.Table:
        """Ask the table, unless it is empty; the answer becomes a requirement."""
        entry = self.txn.base.state.tables[key]
        table = self.txn.table(key)
        if entry.rows:
            found = find(table, where, columns, places=places)
        else:
            found = _nothing(table.schema, columns, places)
        answer = found.select(list(columns))
        self.requirements.append(SameAnswer(key, entry.content_id, tuple(where.items()), answer))
        return found

    def select(self, key: str, columns: Sequence[str], where: Any) -> pa.Table:
        """Rows that pass a filter of storage, with their places; the table must stay as it is."""
        entry = self.txn.base.state.tables[key]
        self.requirements.append(SameContent(key, entry.content_id, entry.version))
        table = self.txn.table(key)
        if not entry.rows:
            return _nothing(row_schema(table.schema), columns, places=True)
        return read(table, columns, where, places=True)

    def scan(self, key: str, columns: Sequence[str]) -> pa.Table:
        """Read whole columns; the table must stay as it is."""
        entry = self.txn.base.state.tables[key]
        self.requirements.append(SameContent(key, entry.content_id, entry.version))
        return read(self.txn.table(key), columns)


def _nothing(schema: pa.Schema, columns: Sequence[str], places: bool) -> pa.Table:
    fields = [schema.field(name) for name in columns]
    fields += [pa.field(name, pa.uint64()) for name in ("_rowid", "_rowaddr") if places]
    return pa.schema(fields).empty_table()
