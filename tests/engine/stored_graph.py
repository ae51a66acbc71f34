"""A small stored graph for engine tests, written through storage and history, read by name.

Rows are dictionaries; ids of nodes are their keys, edges are numbered in the order they are given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine.query_limits import QueryLimits
from omnigraph.engine.run_query import ReadOutput, run_read
from omnigraph.history.branches import open_branch
from omnigraph.history.schemas import StoredSchema
from omnigraph.history.snapshot import Snapshot, load_snapshot
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.publish.init import init_graph
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import scan as scans
from omnigraph.storage import stage_rows
from omnigraph.storage import table as tables
from omnigraph.storage.store import open_store
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class Small:
    """A graph at its newest state."""

    def __init__(self, root: Path, schema: str, rows: Rows) -> None:
        self.store = open_store(str(root), durability="os")
        init_graph(self.store, StoredSchema(schema, new_identity(compile_schema(schema, "s"), new_ulid())))
        self.line = open_branch(self.store, "main")
        if rows:
            self.append(rows)

    def append(self, rows: Rows) -> None:
        """Add rows by table key."""

        def plan(txn: WriteTxn) -> PublishPlan:
            staged = {
                TableKey(key): stage_rows.stage_append(
                    txn.store, txn.table(TableKey(key)), shaped(txn.table(TableKey(key)), some)
                )
                for key, some in rows.items()
            }
            return PublishPlan("load", staged, (), gc_epoch=txn.base.state.head.gc_epoch)

        publish(self.line, plan)

    def replace(self, key: str, ids: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Remove rows by id and put others in their places, or nowhere."""

        def plan(txn: WriteTxn) -> PublishPlan:
            table = txn.table(TableKey(key))
            found = scans.find_rows(table, "id", list(ids), ["id"])
            kept = found["_rowid"].to_pylist()[: len(rows)]
            staged = stage_rows.stage_change(
                txn.store,
                table,
                removed_addresses=found["_rowaddr"].to_pylist(),
                replacements=(kept, shaped(table, rows)) if rows else None,
            )
            return PublishPlan("update", {TableKey(key): staged}, (), gc_epoch=txn.base.state.head.gc_epoch)

        publish(self.line, plan)

    @property
    def snapshot(self) -> Snapshot:
        """The newest state."""
        return load_snapshot(self.store, self.line)

    def run(self, text: str, limits: QueryLimits | None = None, **params: Any) -> ReadOutput:
        """Run a query; a body without a header is wrapped."""
        if not text.lstrip().startswith("query"):
            text = f"query q() {{ {text} }}"
        shown = self.snapshot
        query = compile_query(text, shown.schema.ir.catalog)
        return run_read(shown, query, params, limits=limits)

    def rows(self, text: str, **params: Any) -> list[tuple[Any, ...]]:
        """The rows of a query as tuples, in order."""
        table = self.run(text, **params).table
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def shaped(table: tables.Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows in the columns of a table; what is not given is null."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in table.schema]
    return pa.table(columns, schema=table.schema)
