"""Writes for tests: a small graph of three tables, every kind of change, and its contents.

Stands in for the engine: it plans with `storage.table` and publishes with `history`. It may not
know how a write is made visible, since that is what tests use it for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.schemas import StoredSchema
from omnigraph.history.snapshot import SnapshotSelector, load_snapshot
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.publish.init import init_graph
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import AbsentIds, Requirement, SameContent
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import scan as scans
from omnigraph.storage import stage_rows
from omnigraph.storage import table as tables
from omnigraph.storage.compact import stage_compaction
from omnigraph.storage.effects import Effects
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Durability, Store, open_store
from omnigraph.storage.table import StagedChange
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey
from tests.rig import invariants

SCHEMA = """
node Person { n: I64? }
node City { n: I64? }
edge LivesIn: Person -> City { n: I64? }
"""
PERSON, CITY, LIVES_IN = TableKey("node:Person"), TableKey("node:City"), TableKey("edge:LivesIn")
TABLES = (PERSON, CITY, LIVES_IN)

Rows = Mapping[str, int]
check_invariants = invariants.check_invariants
Contents = dict[str, dict[str, list[tuple[str, int]]]]


@dataclass(frozen=True, slots=True)
class Change:
    """What to do with one table: how it is staged, and what it needs where it lands."""

    operation: str
    stage: Callable[[Store, tables.Table], StagedChange | None]
    needs: Callable[[WriteTxn, TableKey], tuple[Requirement, ...]]
    maintenance: bool = False


def init_small(root: str | Path, *, effects: Effects | None = None, durability: Durability = "os") -> Store:
    """A new graph with the three tables, all empty; gives the store that made it."""
    store = open_store(str(root), effects=effects, durability=durability)
    make_graph(store)
    return store


def make_graph(store: Store, *, force: bool = False) -> None:
    """Make the small graph in a store that is open already."""
    identity = new_identity(compile_schema(SCHEMA, "small.pg"), new_ulid())
    init_graph(store, StoredSchema(SCHEMA, identity), force=force)


def line_at(
    root: str | Path, branch: str = MAIN, *, effects: Effects | None = None, durability: Durability = "os"
) -> BranchState:
    """The line of a branch, on a store of its own unless this process holds the line already."""
    return open_branch(open_store(str(root), effects=effects, durability=durability), branch)


def append(rows: Rows) -> Change:
    """New rows; their ids must be absent where they land."""

    def stage(store: Store, table: tables.Table) -> StagedChange:
        return stage_rows.stage_append(store, table, shaped(table, rows))

    return Change("insert", stage, lambda _, key: (AbsentIds(key, tuple(rows)),))


def upsert(rows: Rows) -> Change:
    """Rows by id: the old ones keep their row ids, the others are new."""

    def needs(txn: WriteTxn, key: TableKey) -> tuple[Requirement, ...]:
        known = set(_present(txn.table(key), rows)["id"].to_pylist())
        return (AbsentIds(key, tuple(one for one in rows if one not in known)),)

    return Change("upsert", lambda store, table: _replace(store, table, rows, add=True), needs)


def update(rows: Rows) -> Change:
    """Rows by id, those that are there; strict."""
    return Change("update", lambda store, table: _replace(store, table, rows, add=False), _strict)


def delete(ids: Iterable[str]) -> Change:
    """Rows removed by id; strict."""
    wanted = list(ids)

    def stage(store: Store, table: tables.Table) -> StagedChange | None:
        gone = _present(table, wanted)["_rowaddr"].to_pylist()
        return stage_rows.stage_change(store, table, removed_addresses=gone) if gone else None

    return Change("delete", stage, _strict)


def overwrite(rows: Rows) -> Change:
    """All rows replaced; strict."""

    def stage(store: Store, table: tables.Table) -> StagedChange:
        return stage_rows.stage_overwrite(store, table, shaped(table, rows))

    return Change("overwrite", stage, _strict)


def rewrite() -> Change:
    """Maintenance: fragments put together, content unchanged."""
    return Change("optimize", stage_compaction, lambda *_: (), maintenance=True)


def write(
    line: BranchState,
    change: Change,
    keys: Sequence[TableKey] = (PERSON,),
    signature: CommitMetadata | None = None,
    conditions: Sequence[Requirement] = (),
) -> Commit | None:
    """Publish one change of some tables; None when there was nothing to do."""
    return publish(line, lambda txn: plan(txn, change, keys), signature, conditions)


def write_long(
    line: BranchState, change: Change, keys: Sequence[TableKey] = (PERSON,), signature: CommitMetadata | None = None
) -> Commit | None:
    """The same as a long operation, under an intent."""
    return publish_long_operation(
        line, change.operation, lambda txn: plan(txn, change, keys), signature or CommitMetadata(), tuple(keys)
    )


def plan(txn: WriteTxn, change: Change, keys: Sequence[TableKey] = (PERSON,)) -> PublishPlan | None:
    """One change of some tables, staged on the base of a write."""
    staged = {key: change.stage(txn.store, txn.table(key)) for key in keys}
    writes = {key: one for key, one in staged.items() if one is not None}
    if not writes:
        return None
    return PublishPlan(
        change.operation,
        writes,
        tuple(need for key in writes for need in change.needs(txn, key)),
        maintenance=change.maintenance,
        gc_epoch=txn.base.state.head.gc_epoch,
    )


def shaped(table: tables.Table, rows: Rows) -> pa.Table:
    """Rows in the columns of a table; the ends of edges are two fixed names."""
    columns: dict[str, Any] = {"id": list(rows), "n": list(rows.values())}
    for name in ("src", "dst"):
        columns[name] = [name] * len(rows)
    nothing = [None] * len(rows)  # columns that a later schema added
    named = {name: columns.get(name, nothing) for name in table.schema.names}
    return pa.table(named, schema=table.schema)


def read_rows(store: Store, entry: TableEntry) -> list[tuple[str, int]]:
    """The (id, n) of every row of a table version, sorted."""
    dataset = tables.open_table(store, entry.location, entry.lance_version).dataset
    found = dataset.to_table(columns=["id", "n"])
    return sorted(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def read_branch(line: BranchState, at: SnapshotSelector = None) -> dict[str, list[tuple[str, int]]]:
    """All rows of all tables of a branch, now or at a point of its past."""
    shown = load_snapshot(line.store, line, at)
    return {key: read_rows(line.store, entry) for key, entry in sorted(shown.tables.items())}


def read_graph(root: str | Path) -> Contents:
    """All rows of all tables of all branches, read by a store that knows nothing yet."""
    store = open_store(str(root))
    return {name: _fresh_branch(store, name) for name in list_branches(store)}


def _fresh_branch(store: Store, name: str) -> dict[str, list[tuple[str, int]]]:
    from omnigraph.history.manifest import read_manifest
    from omnigraph.history.refs import find_ref

    state = read_manifest(store, find_ref(store, name).ulid).state
    return {key: read_rows(store, entry) for key, entry in sorted(state.tables.items())}


def _present(table: tables.Table, ids: Iterable[str]) -> pa.Table:
    return scans.find_rows(table, "id", list(ids), ["id"])


def _replace(store: Store, table: tables.Table, rows: Rows, *, add: bool) -> StagedChange | None:
    found = _present(table, rows)
    known = found["id"].to_pylist()
    added = {one: n for one, n in rows.items() if one not in known} if add else {}
    if not known and not added:
        return None
    return stage_rows.stage_change(
        store,
        table,
        removed_addresses=found["_rowaddr"].to_pylist(),
        replacements=(found["_rowid"].to_pylist(), shaped(table, {one: rows[one] for one in known})),
        added_rows=shaped(table, added),
    )


def _strict(txn: WriteTxn, key: TableKey) -> tuple[Requirement, ...]:
    entry = txn.base.state.tables[key]
    return (SameContent(key, entry.content_id, entry.version),)
