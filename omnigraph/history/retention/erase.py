"""Rewrite tables that still hold deleted rows or dropped columns, so that their files can go.

A deleted row is only marked: its data file and the indexes keep it. A dropped column is only no
longer referenced. The content does not change: the rewrite is published as maintenance, and planned
again if it loses to a writer.
"""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.errors import BranchNotFound, HistoryReclaimed, ReadSetConflict
from omnigraph.history.branches import list_branches, open_line
from omnigraph.history.line import Line
from omnigraph.history.plan import PublishPlan, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.upkeep import in_smaller_bites
from omnigraph.history.verification import check_intact
from omnigraph.storage.compact import fragments_with_dropped, stage_rewrite
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.index import kinds_of, stage_indexes
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.storage.table import Staged

ACTOR = "omnigraph:maintenance"


def rewrite_deleted(store: Store) -> int:
    """Rewrite tables with deleted data on every branch, and rebuild their indexes.

    Return the number of commits. A tag is never rewritten: delete it, or its data stays.
    """
    made = 0
    for name in list_branches(store):
        with suppress(BranchNotFound):  # deleted since the listing
            made += _rewrite_branch(open_line(store, name))
    return made


def _rewrite_branch(line: Line) -> int:
    """Rewrite one branch; a branch that is deleted meanwhile needs no more work."""
    made = 0
    try:
        columns = _columns(line)  # read first: a rewrite may drop an index
        for _ in range(2):  # twice: a rewrite that lost to a writer covered fewer fragments
            made += _rewrite(line)
        return made + _index(line, columns)
    except (ReadSetConflict, HistoryReclaimed, AbsentError):
        if line.reload().state.head.closed:
            return made
        raise


def _rewrite(line: Line) -> bool:
    def stage(txn: WriteTxn, limit: int | None) -> PublishPlan | None:
        found: dict[str, Staged] = {}
        for key in sorted(txn.base.state.tables):
            table = txn.table(key)
            dropped = fragments_with_dropped(table)
            if dropped or any(one.metadata.deletion_file for one in table.dataset.get_fragments()):
                verify = partial(check_intact, txn.store, txn.base.state)
                staged = stage_rewrite(txn.store, table, at_most=limit, also=dropped, verify=verify)
                found |= {key: staged} if staged is not None else {}
        return PublishPlan("optimize", found, maintenance=True) if found else None

    return publish(line, in_smaller_bites(stage), Signature(ACTOR)) is not None


def _columns(line: Line) -> dict[str, dict[str, str]]:
    """Return the indexed columns of each table, with the kind of index."""
    txn = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    return {key: kinds_of(txn.table(key)) for key in txn.base.state.tables}


def _index(line: Line, known: dict[str, dict[str, str]]) -> bool:
    """Rebuild indexes, which still hold values of rows that were deleted since they were built."""

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        found: dict[str, Staged] = {}
        for key in sorted(txn.base.state.tables):
            table = txn.table(key)
            columns = known.get(key) or kinds_of(table)
            staged = stage_indexes(txn.store, table, columns, anew=True) if columns else None
            found |= {key: staged} if staged is not None else {}
        return PublishPlan("optimize", found, maintenance=True) if found else None

    return publish(line, prepare, Signature(ACTOR)) is not None
