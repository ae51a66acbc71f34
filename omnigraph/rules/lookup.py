"""Lookups of stored rows, a batch of values each; never one per row.

Owns the protocol through which rules read a graph. Every answer belongs to what the write has
read, so `RecordingLookup` records a requirement for each: it must still hold at commit time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.history.plan import Requirement, SameAnswer, SameContent, WriteTxn
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find import find, read


class Lookup(Protocol):
    """What rules may read of the committed state."""

    def find(
        self,
        key: str,
        where: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        places: bool = False,
    ) -> pa.Table:
        """Return stored rows whose columns have one of these values, with row ids if requested."""

    def scan(self, key: str, columns: Sequence[str]) -> pa.Table:
        """Return all stored rows of a table."""


@dataclass(slots=True)
class Committed:
    """Reads the base version of a write and records every answer as a requirement."""

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
        """Look up rows, skipping empty tables; the answer becomes a requirement."""
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
        """Return rows that pass a storage filter, with row ids; requires an unchanged table."""
        entry = self.txn.base.state.tables[key]
        self.requirements.append(SameContent(key, entry.content_id, entry.version))
        table = self.txn.table(key)
        if not entry.rows:
            return _nothing(row_schema(table.schema), columns, places=True)
        return read(table, columns, where, places=True)

    def scan(self, key: str, columns: Sequence[str]) -> pa.Table:
        """Return whole columns; requires an unchanged table."""
        entry = self.txn.base.state.tables[key]
        self.requirements.append(SameContent(key, entry.content_id, entry.version))
        return read(self.txn.table(key), columns)


def _nothing(schema: pa.Schema, columns: Sequence[str], places: bool) -> pa.Table:
    fields = [schema.field(name) for name in columns]
    fields += [pa.field(name, pa.uint64()) for name in ("_rowid", "_rowaddr") if places]
    return pa.schema(fields).empty_table()
