"""Look up stored rows in batches rather than one at a time.

Rules read a graph only through the protocol in this module. Every result belongs to the read set of the write, so
`RecordingLookup` records the requirement that the result is still the same at commit time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.publish.requirements import Requirement, SameContent, SameLookupResult
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find, read_rows
from omnigraph.values.table_key import TableKey

ROW_ID_COLUMNS = ("_rowid", "_rowaddr")


class Lookup(Protocol):
    """The operations that rules use to read the committed state."""

    def find(
        self,
        table_key: TableKey,
        values_by_column: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        with_row_ids: bool = False,
    ) -> pa.Table:
        """Return the stored rows in which every column in `values_by_column` has one of the values given for it.

        The result has the given columns, plus row ids if requested.
        """

    def scan(self, table_key: TableKey, columns: Sequence[str]) -> pa.Table:
        """Return the given columns of every stored row in a table."""


@dataclass(slots=True)
class RecordingLookup:
    """A lookup that reads the base version of a write and records every result as a requirement."""

    txn: WriteTxn
    requirements: list[Requirement] = field(default_factory=list)

    def find(
        self,
        table_key: TableKey,
        values_by_column: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        with_row_ids: bool = False,
    ) -> pa.Table:
        """Look up rows and record the result as a requirement. Empty tables are not read."""
        entry = self.txn.base.state.tables[table_key]
        table = self.txn.table(table_key)
        if entry.row_count:
            matching_rows = find(table, values_by_column, columns, with_row_ids=with_row_ids)
        else:
            matching_rows = empty_answer(table.schema, columns, with_row_ids=with_row_ids)
        answer = matching_rows.select(list(columns))
        self.requirements.append(SameLookupResult(table_key, entry.content_id, tuple(values_by_column.items()), answer))
        return matching_rows

    def select(self, table_key: TableKey, columns: Sequence[str], storage_filter: Any) -> pa.Table:
        """Return the rows that match a storage filter, including row ids, and require the table to stay unchanged."""
        entry = self.txn.base.state.tables[table_key]
        self.requirements.append(SameContent(table_key, entry.content_id, entry.version))
        table = self.txn.table(table_key)
        if not entry.row_count:
            return empty_answer(row_schema(table.schema), columns, with_row_ids=True)
        return read_rows(table, columns, storage_filter, with_row_ids=True)

    def select_by_id(self, table_key: TableKey, columns: Sequence[str], ids: pa.Array) -> pa.Table:
        """Return the rows with these entity ids, including row ids, and require the table to stay unchanged."""
        self.require_same_content(table_key)
        table = self.txn.table(table_key)
        if not len(ids) or not self.txn.base.state.tables[table_key].row_count:
            return empty_answer(row_schema(table.schema), columns, with_row_ids=True)
        return find(table, {"id": ids}, columns, with_row_ids=True)

    def require_same_content(self, table_key: TableKey) -> None:
        """Require a table to stay unchanged. Call this method for tables that were not read through this lookup."""
        entry = self.txn.base.state.tables[table_key]
        self.requirements.append(SameContent(table_key, entry.content_id, entry.version))

    def scan(self, table_key: TableKey, columns: Sequence[str]) -> pa.Table:
        """Return the given columns of every stored row, and require the table to stay unchanged."""
        entry = self.txn.base.state.tables[table_key]
        self.requirements.append(SameContent(table_key, entry.content_id, entry.version))
        return read_rows(self.txn.table(table_key), columns)


def empty_answer(schema: pa.Schema, columns: Sequence[str], *, with_row_ids: bool = False) -> pa.Table:
    """Return an empty result with the given columns, plus row ids if requested."""
    fields = [schema.field(column_name) for column_name in columns]
    fields += [pa.field(column_name, pa.uint64()) for column_name in ROW_ID_COLUMNS if with_row_ids]
    return pa.schema(fields).empty_table()
