"""Index maintenance: builds the indexes that the schema declares. Never changes content.

Index files are built before the writer slot is taken, so that a long build blocks no writer; what
no longer applies by then is built again.
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
    """Build the indexes that the schema declares over all rows that are not yet covered.

    If files of an index are missing, the indexes of that table are rebuilt.
    `types` are table keys. Return the commit, or None when every row is covered already.
    """
    hands = hands or Here()
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    with told_when_missing(line.store, lambda: base.base.state.tables), reported("none"):
        made, began = _stage(base, {}, types, hands), base.base.state.head.gc_epoch

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        epoch = txn.base.state.head.gc_epoch
        # A garbage collection since then may have deleted the files.
        writes = _stage(txn, made if epoch == began else {}, types, hands)
        if not writes:
            return None
        return PublishPlan("ensure_indices", writes, maintenance=True, epoch=epoch)

    signature = signature or Signature()
    return publish(line, prepare, replace(signature, actor=signature.actor or MAINTENANCE))


def pending(table: Table, one: Node | Edge) -> list[tuple[str, str]]:
    """Return the declared indexes that are not built, as (property, reason)."""
    waits = ((name, why_waiting(table, name, kind)) for name, kind in vector_columns(one).items())
    return pending_indexes(one) + [(name, why) for name, why in waits if why is not None]


def cover(txn: WriteTxn, tables: Mapping[str, Table], hands: Hands) -> dict[str, Staged]:
    """Stage indexes over all uncovered rows of these tables; only for tables that have any."""
    plans = {
        key: plan_indexes(
            table,
            columns_of(txn, key),
            anew=bool(lost_segments(txn.store, table)),
            part_rows=hands.part_rows,
        )
        for key, table in tables.items()
    }
    jobs = [(tables[key], task) for key, plan in plans.items() for task in plan.new]
    done = iter(hands.index(txn.store, jobs) if jobs else ())
    made = {key: list(islice(done, len(plan.new))) for key, plan in plans.items()}
    staged = {key: finished(tables[key], plans[key], parts) for key, parts in made.items()}
    return {key: indexes for key, indexes in staged.items() if indexes is not None}


def columns_of(txn: WriteTxn, key: str) -> dict[str, str]:
    """Return the index keys of a table and the kind of each index."""
    catalog = read_schema(txn.store, txn.base.state.schema).ir.catalog
    return every_index(type_named(catalog, key))


def built(before: Table, after: Table) -> list[str]:
    """Return the columns whose index covers more than before; all if it was rebuilt."""
    was, now = covered(before), covered(after)
    return sorted(name for name in now if now[name] - was.get(name, frozenset())) or sorted(now)


def _stage(
    txn: WriteTxn, made: Mapping[str, Staged], types: Collection[str] | None, hands: Hands
) -> dict[str, Staged]:
    entries = txn.base.state.tables.items()
    chosen = [key for key, entry in entries if entry.rows and (types is None or key in types)]
    tables = {key: txn.table(key) for key in chosen}
    kept = {key: made[key] for key in chosen if key in made and replays(made[key], tables[key])}
    new = cover(txn, {key: table for key, table in tables.items() if key not in kept}, hands)
    return {key: staged for key in chosen if (staged := kept.get(key) or new.get(key))}
