"""Upkeep of a graph: indexes that the schema asks for. Content never changes by it.

Files are made before it is one's turn to write, so that a long build keeps no writer waiting; what
no longer fits when the turn comes is made again.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice

from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.missing import told_when_missing
from omnigraph.history.plan import PublishPlan, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.rules.check import type_named
from omnigraph.rules.indexed import every_index, pending_indexes, vector_columns
from omnigraph.storage.failures import reported
from omnigraph.storage.hands import Hands, Here
from omnigraph.storage.index import covered, finished, plan_indexes, why_waiting
from omnigraph.storage.lost_index import lost_segments
from omnigraph.storage.table import Staged, Table, replays

MAINTENANCE = "omnigraph:maintenance"


def ensure_indices(
    line: Line,
    signature: Signature | None = None,
    types: Collection[str] | None = None,
    hands: Hands | None = None,
) -> Commit | None:
    """Build the indexes that the schema asks for over all rows that none covers.

    Where files of an index are lost, those of the table are built anew.
    `types` are keys of tables. Gives the commit, or None when every row is covered already.
    """
    hands = hands or Here()
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    with told_when_missing(line.store, lambda: base.base.state.tables), reported("none"):
        made, began = _stage(base, {}, types, hands), base.base.state.head.gc_epoch

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        epoch = txn.base.state.head.gc_epoch
        # What was made before the collector passed may be gone.
        writes = _stage(txn, made if epoch == began else {}, types, hands)
        if not writes:
            return None
        return PublishPlan("ensure_indices", writes, maintenance=True, epoch=epoch)

    signature = signature or Signature()
    return publish(line, prepare, replace(signature, actor=signature.actor or MAINTENANCE))


def pending(table: Table, one: Node | Edge) -> list[tuple[str, str]]:
    """The indexes that the schema asks for and that are not built: (property, reason)."""
    waits = ((name, why_waiting(table, name, kind)) for name, kind in vector_columns(one).items())
    return pending_indexes(one) + [(name, why) for name, why in waits if why is not None]


def cover(txn: WriteTxn, tables: Mapping[str, Table], hands: Hands) -> dict[str, Staged]:
    """Indexes over every row of these tables that none covers; only where there is such a row."""
    plans = {
        key: plan_indexes(
            table,
            columns_of(txn, key),
            anew=bool(lost_segments(txn.store, table)),
            part_rows=hands.part_rows,
        )
        for key, table in tables.items()
    }
    jobs = [(tables[key], one) for key, plan in plans.items() for one in plan.new]
    done = iter(hands.index(txn.store, jobs) if jobs else ())
    made = {key: list(islice(done, len(plan.new))) for key, plan in plans.items()}
    staged = {key: finished(tables[key], plans[key], one) for key, one in made.items()}
    return {key: one for key, one in staged.items() if one is not None}


def columns_of(txn: WriteTxn, key: str) -> dict[str, str]:
    """The columns of a table that get an index, and its kind."""
    catalog = read_schema(txn.store, txn.base.state.schema).ir.catalog
    return every_index(type_named(catalog, key))


def built(before: Table, after: Table) -> list[str]:
    """The columns of a table whose index covers more than it did; all, if it was made anew."""
    was, now = covered(before), covered(after)
    return sorted(name for name in now if now[name] - was.get(name, frozenset())) or sorted(now)


def _stage(
    txn: WriteTxn, made: Mapping[str, Staged], types: Collection[str] | None, hands: Hands
) -> dict[str, Staged]:
    entries = txn.base.state.tables.items()
    chosen = [key for key, one in entries if one.rows and (types is None or key in types)]
    tables = {key: txn.table(key) for key in chosen}
    kept = {key: made[key] for key in chosen if key in made and replays(made[key], tables[key])}
    new = cover(txn, {key: one for key, one in tables.items() if key not in kept}, hands)
    return {key: one for key in chosen for one in (kept.get(key) or new.get(key),) if one}
