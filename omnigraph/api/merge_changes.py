"""The changes that a merge makes to its target, table by table, in the form that users see.

Large blobs in the rows of a merge are placeholders; this module replaces them with bytes. It never writes anything.
"""

from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import replace

import pyarrow as pa

from omnigraph.history.diff import diff_table, match_rows_by_id
from omnigraph.history.entities import TableChanges
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.merging.merge import MergeReport
from omnigraph.merging.offloaded_table import OffloadedDelta
from omnigraph.merging.planner import MergePlan
from omnigraph.merging.schema_alignment import aligned_target_rows
from omnigraph.rules.delta import TableDelta
from omnigraph.storage.blob_placeholders import restore_blobs
from omnigraph.storage.find_rows import find
from omnigraph.values.table_key import TableKey


def iter_merge_changes(merge_report: MergeReport, excluded_keys: Collection[str] = ()) -> Iterator[TableChanges]:
    """Yield the changes that a merge makes to the target, table by table, skipping the excluded tables."""
    merge_plan = merge_report.plan
    if merge_plan is None:
        return
    for table_key in sorted({*merge_plan.delta.tables, *merge_plan.adopted_tables} - {*excluded_keys}):
        with nullcontext() if merge_report.blobs is None else merge_report.blobs.activate():
            table_changes = _table_changes(merge_report.merge_inputs, merge_plan, table_key)
            shown_changes = _restore_blobs(table_changes)
        if not shown_changes.is_empty:
            yield shown_changes


def _table_changes(merge_inputs: MergeInputs, merge_plan: MergePlan, table_key: TableKey) -> TableChanges:
    if table_key in merge_plan.adopted_tables:
        return _diff_adopted_table(merge_inputs, table_key)
    return _match_written_rows(merge_inputs, merge_plan, merge_plan.delta.tables[table_key])


def _restore_blobs(changes: TableChanges) -> TableChanges:
    """Return the changes with bytes instead of the placeholders that the rows of a merge contain."""
    return replace(
        changes,
        inserted=restore_blobs(changes.inserted),
        updated_before=restore_blobs(changes.updated_before),
        updated_after=restore_blobs(changes.updated_after),
        deleted=restore_blobs(changes.deleted),
    )


def _diff_adopted_table(merge_inputs: MergeInputs, table_key: TableKey) -> TableChanges:
    """Return the changes to a table for which the merge adopts the source's version."""
    return diff_table(merge_inputs.target_snapshot, merge_inputs.source_snapshot, table_key)


def _match_written_rows(merge_inputs: MergeInputs, plan: MergePlan, table_delta: TableDelta) -> TableChanges:
    new_rows = table_delta.read_all_rows() if isinstance(table_delta, OffloadedDelta) else table_delta.rows
    affected_ids = pa.concat_arrays([table_delta.ids, table_delta.removed_ids])
    if plan.merged_schema is not None:
        old_rows = aligned_target_rows(merge_inputs, plan.merged_schema, table_delta.table_key, affected_ids)
    else:
        target_table = merge_inputs.target_snapshot.table(table_delta.table_key)
        old_rows = find(target_table, {"id": affected_ids}, target_table.schema.names)
    return match_rows_by_id(table_delta.table_key, old_rows, new_rows, new_rows.schema)
