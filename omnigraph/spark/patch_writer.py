"""Write the rows that a Spark load patches, one fragment at a time, after all records have been checked.

The load tasks report patched rows by fragment. This module collects all patches to a fragment in one task. If the
patches to a type change many rows in the affected fragments, new columns are written; otherwise, whole rows are
replaced.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.ingest.position_runs import pack_positions
from omnigraph.rules.delta import Positions
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import take_with_blobs
from omnigraph.storage.fragments import write_fragment
from omnigraph.storage.patch_columns import PatchSize, pays_off, write_fragment_columns
from omnigraph.storage.table import Table
from omnigraph.values.table_key import TableKey

from .arrow_bytes import pack_table, unpack_table
from .report_rows import PATCHED_ROWS
from .session import parallelism
from .staged_fragments import StagedFragment
from .task_reports import (
    REPORT_DDL,
    PatchedColumnsReport,
    PatchedRowsReport,
    RemovedRowsReport,
    StagedFragmentReport,
    TaskReport,
    collect_reports,
    select_reports,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.ingest.patch_rows import PatchedTable

    from .stage import LoadJob

_PACKED_ROWS = 1 << 16  # number of rows in one packed report
ReportBatches = Iterator[pa.RecordBatch]


def report_patched_rows(type_number: int, patched: "PatchedTable") -> ReportBatches:
    """Yield reports with the patched rows of each fragment and the size of these rows."""
    columns = patched.rows.select(patched.patched_names)
    located = columns.append_column("_rowid", pa.array(patched.row_ids))
    located = located.append_column("_rowaddr", pa.array(patched.addresses))
    fragment_ids = (patched.addresses >> np.uint64(32)).astype(np.int64)
    for fragment_id in np.unique(fragment_ids).tolist():
        rows = located.filter(pa.array(fragment_ids == fragment_id))
        for start in range(0, rows.num_rows, _PACKED_ROWS):
            packed = pa.array([pack_table(rows.slice(start, _PACKED_ROWS))], pa.binary())
            yield PATCHED_ROWS.to_report(PATCHED_ROWS.batch(1, type=type_number, grp=fragment_id, payload=packed))
        column_bytes = rows.select(patched.patched_names).nbytes
        yield PatchedRowsReport(
            patched.table_key, fragment_id, rows.num_rows, column_bytes, patched.patched_names
        ).to_batch()


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """The plan for patching one type: the patched columns, and whether only these columns are written."""

    column_names: tuple[str, ...]
    writes_columns: bool


def write_patches(
    spark: "SparkSession", load_job: "LoadJob", task_reports: "DataFrame", collected: Sequence[TaskReport]
) -> list[TaskReport]:
    """Write all patched rows, and return the task reports."""
    sizes = select_reports(collected, PatchedRowsReport)
    plans = _plan_patches(load_job, sizes)
    fragment_count = len({(report.table_key, report.fragment_id) for report in sizes})
    if not fragment_count:
        return []
    task_count = min(fragment_count, 2 * parallelism(spark))
    patched_rows = PATCHED_ROWS.select_from(task_reports).repartition(task_count, "type", "grp")
    ordered_rows = patched_rows.sortWithinPartitions("type", "grp")
    return collect_reports(ordered_rows.mapInArrow(_make_patch_task(load_job, plans), REPORT_DDL))


def _plan_patches(load_job: "LoadJob", sizes: Sequence[PatchedRowsReport]) -> dict[TableKey, PatchPlan]:
    plans = {}
    for table_key in sorted({report.table_key for report in sizes}):
        reports = [report for report in sizes if report.table_key == table_key]
        size = PatchSize(
            frozenset(report.fragment_id for report in reports),
            sum(report.row_count for report in reports),
            sum(report.column_bytes for report in reports),
        )
        names = tuple(sorted({name for report in reports for name in report.column_names}))
        plans[table_key] = PatchPlan(names, pays_off(load_job.pinned_graph.table(table_key), size, names))
    return plans


def _make_patch_task(
    load_job: "LoadJob", plans: Mapping[TableKey, PatchPlan]
) -> Callable[[ReportBatches], ReportBatches]:
    """Return a Spark function that writes packed rows; its input must be ordered by type and fragment."""

    def run(batches: ReportBatches) -> ReportBatches:
        packed_rows = (row for batch in batches for row in batch.to_pylist())
        for type_number, type_rows in groupby(packed_rows, lambda row: row["type"]):
            table_key = load_job.table_keys[type_number]
            by_fragment = (
                (fragment_id, [row["payload"] for row in rows])
                for fragment_id, rows in groupby(type_rows, lambda row: row["grp"])
            )
            writer = _write_columns if plans[table_key].writes_columns else _write_rows
            yield from writer(load_job, table_key, plans[table_key].column_names, by_fragment)

    return run


FragmentPayloads = Iterable[tuple[int, list[bytes]]]


def _write_columns(
    load_job: "LoadJob", table_key: TableKey, column_names: Sequence[str], by_fragment: FragmentPayloads
) -> ReportBatches:
    table, store = load_job.pinned_graph.table(table_key), load_job.pinned_graph.store()
    for fragment_id, payloads in by_fragment:
        rows = _unpack_rows(table, column_names, payloads)
        written = write_fragment_columns(store, table, fragment_id, _row_ids(rows), rows.select(column_names))
        yield PatchedColumnsReport(table_key, written).to_batch()


def _write_rows(
    load_job: "LoadJob", table_key: TableKey, column_names: Sequence[str], by_fragment: FragmentPayloads
) -> ReportBatches:
    """Write whole rows, combining rows from several stored fragments into new fragments of limited size."""
    table, pending, pending_rows = load_job.pinned_graph.table(table_key), list[pa.Table](), 0
    for _, payloads in by_fragment:
        pending.append(_unpack_rows(table, column_names, payloads))
        pending_rows += pending[-1].num_rows
        if pending_rows >= load_job.fragment_rows:
            yield from _replace_rows(load_job, table_key, column_names, pa.concat_tables(pending))
            pending, pending_rows = [], 0
    if pending:
        yield from _replace_rows(load_job, table_key, column_names, pa.concat_tables(pending))


def _replace_rows(
    load_job: "LoadJob", table_key: TableKey, column_names: Sequence[str], patched_rows: pa.Table
) -> ReportBatches:
    table, row_ids = load_job.pinned_graph.table(table_key), _row_ids(patched_rows)
    whole_rows = take_with_blobs(table, pa.array(row_ids.astype(np.uint64))).cast(row_schema(table.schema))
    for name in column_names:
        field = whole_rows.schema.field(name)
        new_values = patched_rows[name].cast(field.type)
        whole_rows = whole_rows.set_column(whole_rows.schema.get_field_index(name), field, new_values)
    metadata = write_fragment(load_job.pinned_graph.store(), table, whole_rows, row_ids.tolist())
    positions = pack_positions(np.arange(len(row_ids)))
    yield StagedFragmentReport(StagedFragment(table_key, metadata, positions, len(row_ids), False)).to_batch()
    yield RemovedRowsReport(table_key, patched_rows["_rowaddr"].to_numpy()).to_batch()


def _unpack_rows(table: Table, column_names: Sequence[str], payloads: Sequence[bytes]) -> pa.Table:
    """Unpack rows and return them with all patched columns.

    Columns that are missing from a payload are read from the table.
    """
    schema = row_schema(table.schema)
    fields = [pa.field("_rowid", pa.int64()), pa.field("_rowaddr", pa.uint64())]
    target = pa.schema([*fields, *(schema.field(name) for name in column_names)])
    tables = []
    for payload in payloads:
        rows = unpack_table(payload)
        missing_names = [name for name in column_names if name not in rows.column_names]
        if missing_names:
            stored = take_with_blobs(table, pa.array(_row_ids(rows).astype(np.uint64)), missing_names)
            for name in missing_names:
                rows = rows.append_column(name, stored[name])
        tables.append(rows.select(target.names).cast(target))
    return pa.concat_tables(tables)


def _row_ids(rows: pa.Table) -> Positions:
    row_ids: Positions = rows["_rowid"].to_numpy()
    return row_ids
