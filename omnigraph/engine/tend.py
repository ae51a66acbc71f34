"""Upkeep of a graph: indexes that the schema asks for. Content never changes by it.

Files are made before it is one's turn to write, so that a long build keeps no writer waiting; what
no longer fits when the turn comes is made again.
"""

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.plan import PublishPlan, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.catalog import Edge, Index, Key, Node, Unique
from omnigraph.storage.arrow import table_key
from omnigraph.storage.index import stage_indexes
from omnigraph.storage.table import Staged, replays
from omnigraph.values import ScalarType

MAINTENANCE = "omnigraph:maintenance"


def ensure_indices(line: Line, signature: Signature | None = None) -> Commit | None:
    """Build the indexes that the schema asks for over all rows that none covers.

    Gives the commit, or None when every row is covered already.
    """
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    made, began = _stage(base, {}), base.base.state.head.gc_epoch

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        epoch = txn.base.state.head.gc_epoch
        # What was made before the collector passed may be gone.
        writes = _stage(txn, made if epoch == began else {})
        if not writes:
            return None
        return PublishPlan("ensure_indices", writes, maintenance=True, epoch=epoch)

    signature = signature or Signature()
    return publish(line, prepare, replace(signature, actor=signature.actor or MAINTENANCE))


def wanted(one: Node | Edge) -> list[str]:
    """The columns of a type that get an index: ids, ends, and single values of its constraints."""
    names = {"id": None} | (dict.fromkeys(("src", "dst")) if isinstance(one, Edge) else {})
    for rule in one.constraints:
        if isinstance(rule, Key | Unique) or (isinstance(rule, Index) and _is_btree(rule)):
            names |= dict.fromkeys(name for name in rule.columns if _is_single(one, name))
    return list(names)


def _is_btree(rule: Index) -> bool:
    return dict(rule.options).get("kind", "btree") == "btree"


def _is_single(one: Node | Edge, name: str) -> bool:
    prop = one.property(name)
    if prop is None:
        return True
    kind = prop.type
    return not (kind.is_list or kind.is_vector or kind.scalar is ScalarType.BLOB)


def _stage(txn: WriteTxn, made: Mapping[str, Staged]) -> dict[str, Staged]:
    catalog = read_schema(txn.store, txn.base.state.schema).ir.catalog
    found: dict[str, Staged] = {}
    types: list[Node | Edge] = [*catalog.nodes, *catalog.edges]
    for one in types:
        key = table_key(one)
        entry = txn.base.state.tables[key]
        if not entry.rows:
            continue
        table, before = txn.table(key), made.get(key)
        keep = before is not None and replays(before, table)
        staged = before if keep else stage_indexes(txn.store, table, wanted(one))
        if staged is not None:
            found[key] = staged
    return found
