"""Expose an overlay as a snapshot, for reads that must see the writes of an unfinished operation.

The snapshot consists of private table versions, which are never published.
"""

from dataclasses import replace

from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.stage import stage_tables
from omnigraph.rules.existing_rows import resolve_existing
from omnigraph.storage.table import commit as commit_table

from .overlay import Overlay


def overlay_snapshot(overlay: Overlay) -> Snapshot:
    """Return the overlay's content as a snapshot of private, unpublished table versions."""
    txn = overlay.txn
    delta, _ = resolve_existing(overlay.delta(), overlay.lookup)
    state = txn.base.state
    tables = dict(state.tables)
    for table_key, staged in stage_tables(txn, delta).items():
        table_version = commit_table(txn.store, txn.table(table_key), staged).version
        entry = tables[table_key]
        tables[table_key] = replace(
            entry, lance_version=table_version, content_id=txn.commit_id, row_count=entry.row_count + staged.row_delta
        )
    head_commit = state.head.commit_id
    log = HistoryLog(txn.store, state)
    return Snapshot(txn.store, txn.branch, head_commit, txn.base.version, state.schema, tables, log)
