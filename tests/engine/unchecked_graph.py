"""Small graphs for engine tests, built from dicts and written without rule checks.

Stands in for `load` where a test needs what rules refuse, such as edges without ends. Every change
is one commit, and the tables can be changed in every way that storage knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.query_caches import QueryCaches
from omnigraph.engine.query_limits import QueryMeter
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.schemas import StoredSchema
from omnigraph.history.snapshot import manifest_snapshot
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.publish.init import init_graph
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import scan as scans
from omnigraph.storage import stage_rows
from omnigraph.storage.compact import stage_compaction
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import open_store
from omnigraph.storage.table import StagedChange, Table
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey

SCHEMA = """
node Person { age: I64? }
node Firm { age: I64? }
edge Knows: Person -> Person { since: I64? }
edge Likes: Person -> Person { since: I64? }
edge WorksAt: Person -> Firm { since: I64? }
"""
Pair = tuple[str, str]


class Ungated(QueryMeter):
    """A meter that never waits: nobody ends these executions, so nobody would leave the gate."""

    def enter_gate(self) -> None:
        """Go on."""


@dataclass(frozen=True, slots=True)
class SmallGraph:
    """A graph on a disk, and the ways to change it."""

    line: BranchState

    def context(self, caches: QueryCaches | None = None, meter: QueryMeter | None = None) -> ExecutionContext:
        """What an operator needs, on the newest state."""
        state = self.line.refresh()
        snapshot = manifest_snapshot(self.line.store, self.line, state)
        catalog = compile_schema(SCHEMA, "small.pg")
        return ExecutionContext(snapshot, catalog, {}, meter or Ungated(), caches or QueryCaches())

    def table(self, key: str) -> Table:
        """A table of the newest state."""
        return self.context().table(TableKey(key))

    def nodes(self, key: str, ids: Iterable[str]) -> None:
        """Append nodes."""
        self.append(key, {"id": list(ids)})

    def edges(self, key: str, ends: Sequence[Pair], ids: Sequence[str] | None = None) -> None:
        """Append edges."""
        named = list(ids) if ids is not None else [new_ulid() for _ in ends]
        self.append(key, {"id": named, "src": [one for one, _ in ends], "dst": [one for _, one in ends]})

    def append(self, key: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows of these columns; others are null."""
        self.change(key, lambda txn, table: stage_rows.stage_append(txn.store, table, rows(table, columns)))

    def overwrite(self, key: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Replace all rows."""
        self.change(key, lambda txn, table: stage_rows.stage_overwrite(txn.store, table, rows(table, columns)))

    def update(self, key: str, ids: Sequence[str], columns: Mapping[str, Sequence[Any]]) -> None:
        """Replace rows of these ids, keeping their row ids."""

        def stage(txn: WriteTxn, table: Table) -> StagedChange:
            found = scans.find_rows(table, "id", list(ids), ["id"])
            place = {one: at for at, one in enumerate(ids)}
            order = [place[one] for one in found["id"].to_pylist()]
            given = rows(table, {"id": list(ids), **columns}).take(order)
            return stage_rows.stage_change(
                txn.store,
                table,
                removed_addresses=found["_rowaddr"].to_pylist(),
                replacements=(found["_rowid"].to_pylist(), given),
            )

        self.change(key, stage)

    def delete(self, key: str, ids: Sequence[str]) -> None:
        """Remove rows of these ids."""

        def stage(txn: WriteTxn, table: Table) -> StagedChange | None:
            gone = scans.find_rows(table, "id", list(ids), ["id"])["_rowaddr"].to_pylist()
            return stage_rows.stage_change(txn.store, table, removed_addresses=gone) if gone else None

        self.change(key, stage)

    def rewrite(self, key: str) -> None:
        """Put fragments together."""
        self.change(key, lambda txn, table: stage_compaction(txn.store, table))

    def change(self, key: str, stage: Any) -> None:
        """Publish one change of one table, if there is one."""

        def prepare(txn: WriteTxn) -> PublishPlan | None:
            staged = stage(txn, txn.table(TableKey(key)))
            if staged is None:
                return None
            return PublishPlan("test", {TableKey(key): staged}, gc_epoch=txn.base.state.head.gc_epoch)

        publish(self.line, prepare)

    def ids(self, key: str) -> dict[int, str]:
        """Ids by row id."""
        found = self.table(key).dataset.to_table(columns=["id"], with_row_id=True)
        return dict(zip(found["_rowid"].to_pylist(), found["id"].to_pylist(), strict=True))


def rows(table: Table, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Columns in the shape of a table."""
    count = len(next(iter(columns.values())))
    full = {name: columns.get(name, [None] * count) for name in table.schema.names}
    return pa.table(full, schema=table.schema)


def small_graph(root: Path) -> SmallGraph:
    """A new graph without rows."""
    store = open_store(str(root), durability="os")
    identity = new_identity(compile_schema(SCHEMA, "small.pg"), new_ulid())
    init_graph(store, StoredSchema(SCHEMA, identity))
    return SmallGraph(open_branch(store, MAIN))
