"""Upkeep of a graph: indexes that the schema asks for. Content never changes by it.

Files are made before it is one's turn to write, so that a long build keeps no writer waiting; what
no longer fits when the turn comes is made again.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.plan import PublishPlan, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.rules.check import type_named
from omnigraph.rules.indexed import every_index, pending_indexes, vector_columns
from omnigraph.storage.failures import reported
from omnigraph.storage.index import stage_indexes, why_waiting
from omnigraph.storage.lost_index import lost_segments
from omnigraph.storage.table import Staged, Table, replays

MAINTENANCE = "omnigraph:maintenance"


def ensure_indices(
    line: Line, signature: Signature | None = None, types: Collection[str] | None = None
) -> Commit | None:
    """Build the indexes that the schema asks for over all rows that none covers.

    Where files of an index are lost, those of the table are built anew.
    `types` are keys of tables. Gives the commit, or None when every row is covered already.
    """
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    with reported("none"):
        made, began = _stage(base, {}, types), base.base.state.head.gc_epoch

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        epoch = txn.base.state.head.gc_epoch
        # What was made before the collector passed may be gone.
        writes = _stage(txn, made if epoch == began else {}, types)
        if not writes:
            return None
        return PublishPlan("ensure_indices", writes, maintenance=True, epoch=epoch)

    signature = signature or Signature()
    return publish(line, prepare, replace(signature, actor=signature.actor or MAINTENANCE))


def pending(table: Table, one: Node | Edge) -> list[tuple[str, str]]:
    """The indexes that the schema asks for and that are not built: (property, reason)."""
    waits = ((name, why_waiting(table, name, kind)) for name, kind in vector_columns(one).items())
    return pending_indexes(one) + [(name, why) for name, why in waits if why is not None]


def _stage(
    txn: WriteTxn, made: Mapping[str, Staged], types: Collection[str] | None
) -> dict[str, Staged]:
    catalog = read_schema(txn.store, txn.base.state.schema).ir.catalog
    found: dict[str, Staged] = {}
    for key, entry in txn.base.state.tables.items():
        if not entry.rows or (types is not None and key not in types):
            continue
        one = type_named(catalog, key)
        table, before = txn.table(key), made.get(key)
        keep = before is not None and replays(before, table)
        lost = not keep and bool(lost_segments(txn.store, table))
        columns = every_index(one)
        staged = before if keep else stage_indexes(txn.store, table, columns, anew=lost)
        if staged is not None:
            found[key] = staged
    return found
