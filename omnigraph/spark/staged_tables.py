"""Build a Spark load's staged changes from the fragments and removed rows that its tasks reported."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from omnigraph.ingest.load import LoadMode
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.fragments import stage_appended_fragments, stage_changed_fragments, stage_overwriting_fragments
from omnigraph.storage.patch_columns import stage_column_fragments
from omnigraph.storage.table import StagedChange
from omnigraph.values.table_key import TableKey

from .stage import LoadJob
from .task_reports import PatchedColumnsReport, RemovedRowsReport, StagedFragmentReport, TaskReport, select_reports


def stage_reported_tables(
    txn: WriteTxn, load_job: LoadJob, collected: Sequence[TaskReport], input_keys: frozenset[TableKey]
) -> tuple[dict[TableKey, StagedChange], int]:
    """Return the staged change to each table, and the number of bytes that the tasks wrote."""
    fragments_by_key: dict[str, list[Any]] = {key: [] for key in input_keys}
    removed_by_key: dict[str, list[Any]] = {key: [] for key in input_keys}
    written_bytes = 0
    for staged in select_reports(collected, StagedFragmentReport):
        fragments_by_key[staged.fragment.table_key].append(staged.fragment.metadata)
        written_bytes += staged.fragment.file_bytes
    for removed in select_reports(collected, RemovedRowsReport):
        removed_by_key[removed.table_key].append(removed.addresses)
    columns_by_key: dict[TableKey, list[Any]] = {}
    for patched in select_reports(collected, PatchedColumnsReport):
        columns_by_key.setdefault(patched.table_key, []).append(patched.written_fragment)
        written_bytes += patched.written_fragment["fragment"]["files"][-1]["file_size_bytes"] or 0
    staged_tables = {
        key: _stage_table(txn, key, load_job.mode, fragments_by_key[key], removed_by_key[key])
        for key in sorted(input_keys)
        if fragments_by_key[key] or (load_job.mode == "overwrite" and key in load_job.filled_keys)
    }
    for key, written_fragments in columns_by_key.items():
        staged_tables[key] = stage_column_fragments(txn.table(key), written_fragments)
    return staged_tables, written_bytes


def _stage_table(
    txn: WriteTxn, table_key: TableKey, mode: LoadMode, fragments: Sequence[Any], removed_addresses: Sequence[Any]
) -> StagedChange:
    table = txn.table(table_key)
    if mode == "overwrite":
        return stage_overwriting_fragments(table, fragments)
    if not removed_addresses:
        return stage_appended_fragments(table, fragments)
    return stage_changed_fragments(txn.store, table, fragments, np.concatenate(removed_addresses))
