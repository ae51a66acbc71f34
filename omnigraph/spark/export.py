"""Export a snapshot to files in parallel, as loadable NDJSON, Parquet or plain Lance.

Tasks write parts under temporary names. The driver renames a type's parts once all of them are complete, so incomplete
files cannot be mistaken for a complete type. An export does not change the graph.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.export import lines_of_rows, select_types
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.storage.arrow import table_key
from omnigraph.storage.blob_pieces import take_pieces
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.fragments import fragment_row_counts, read_fragments
from omnigraph.storage.large_blobs import blob_columns
from omnigraph.storage.plain_datasets import commit_plain_dataset, write_plain_fragments
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey

from .export_target import ExportTarget, parse_export_target
from .pinned_graph import PinnedGraph, pin_graph
from .read_leases import snapshot_lease
from .session import translate_spark_errors
from .step_progress import StepTracker, progress_callback
from .table_scan import group_fragments, scan
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ExportFormat = Literal["ndjson", "parquet", "lance"]
_PART_DDL = "part int, name string, rows bigint, data string"
_PART_SCHEMA = pa.schema([("part", pa.int32()), ("name", pa.string()), ("rows", pa.int64()), ("data", pa.string())])
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: entity counts and file names per table key, and the duration of each step in seconds."""

    form: ExportFormat
    commit_id: str
    rows: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The total number of entities."""
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class ExportTask:
    """The data that a task needs to write one part."""

    pinned_graph: PinnedGraph
    table_key: TableKey
    file_format: ExportFormat
    entity_type: NodeType | EdgeType
    schema: pa.Schema
    target: ExportTarget
    scratch_folder: str


def export_on_spark(  # noqa: PLR0913 - all but four are keyword-only
    spark: "SparkSession",
    snapshot: Snapshot,
    folder: str | os.PathLike[str],
    file_format: ExportFormat = "ndjson",
    *,
    types: Sequence[str] | None = None,
    ordered: bool = False,
    branch_state: BranchState | None = None,
    progress: Any = None,
) -> Exported:
    """Write a snapshot to an empty or new folder, as `nodes/<Type>` and `edges/<Type>`.

    If `ordered` is true, each type is sorted by id across its parts, so equal snapshots produce equal rows in the same
    order. The plain Lance format writes one dataset per type. A read lease prevents a cleanup from removing the data
    being read. `branch_state` is the snapshot's branch. `progress` is called regularly during the export.
    """
    if file_format not in get_args(ExportFormat):
        expected = ", ".join(get_args(ExportFormat))
        raise UsageError(reason=f"unknown format {file_format!r}; expected one of {expected}")
    entity_types = select_types(snapshot, types)
    export_target = parse_export_target(folder)
    export_target.claim_empty_folder()
    check_versions(spark)
    rows_by_key: dict[str, int] = {}
    files_by_key: dict[str, Sequence[str]] = {}
    step_tracker = StepTracker(spark, progress_callback(progress))
    with translate_spark_errors(spark), snapshot_lease(snapshot, branch_state), step_tracker.report_progress():
        for entity_type in entity_types:
            key = table_key(entity_type)
            step_tracker.begin(entity_type.name, snapshot.tables[key].row_count)
            rows_by_key[key], files_by_key[key] = _export_type(
                spark, snapshot, entity_type, export_target, file_format, ordered
            )
    step_tracker.end()
    return Exported(file_format, snapshot.commit_id, rows_by_key, files_by_key, step_tracker.seconds)


def _export_type(
    spark: "SparkSession",
    snapshot: Snapshot,
    entity_type: NodeType | EdgeType,
    export_target: ExportTarget,
    file_format: ExportFormat,
    ordered: bool,
) -> tuple[int, Sequence[str]]:
    type_key, table_entry = table_key(entity_type), snapshot.tables[table_key(entity_type)]
    pinned_graph = pin_graph(snapshot.store, {type_key: (table_entry.location, table_entry.lance_version)})
    stored_table = snapshot.table(type_key)
    schema = row_schema(stored_table.schema)
    scratch_folder = f"{entity_type.kind}s/{entity_type.name}/.{new_ulid()}"
    task = ExportTask(pinned_graph, type_key, file_format, entity_type, schema, export_target, scratch_folder)
    if not table_entry.row_count:
        return 0, _name_parts(task, [])
    part_frame = _export_ordered(spark, snapshot, task) if ordered else _export_fragments(spark, task, stored_table)
    try:
        part_reports = sorted(part_frame.toArrow().to_pylist(), key=lambda report: report["part"])
        file_names = _name_parts(task, [report for report in part_reports if report["rows"]])
    finally:
        with suppress(OSError):
            export_target.remove_folder(scratch_folder)
    return sum(report["rows"] for report in part_reports), file_names


def _name_parts(task: ExportTask, part_reports: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Rename the written parts to their final names, or commit them as one dataset in the Lance format."""
    import json

    type_folder = task.scratch_folder.rpartition("/")[0]
    if task.file_format == "lance":
        fragments = [fragment for report in part_reports for fragment in json.loads(report["data"])]
        file_name = f"{type_folder}.lance"
        commit_plain_dataset(task.target.full_path(file_name), task.schema, fragments, task.target.options)
        return [file_name]
    file_names = [f"{type_folder}/part-{part_number:05}.{task.file_format}" for part_number in range(len(part_reports))]
    for report, file_name in zip(part_reports, file_names, strict=True):
        task.target.rename_file(report["name"], file_name)
    return file_names


def _export_fragments(spark: "SparkSession", task: ExportTask, stored_table: Any) -> "DataFrame":
    fragment_groups = group_fragments(fragment_row_counts(stored_table))
    column_names = task.schema.names

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for group_number in batch.column(0).to_pylist():
                pinned_table = task.pinned_graph.table(task.table_key)
                row_batches = _read_group(pinned_table, fragment_groups[group_number], column_names)
                yield _write_part(task, group_number, row_batches)

    return spark.range(0, len(fragment_groups), 1, len(fragment_groups)).mapInArrow(run, _PART_DDL)


def _read_group(table: Table, fragment_ids: Sequence[int], column_names: Sequence[str]) -> Batches:
    """Yield the rows of some fragments; the number of rows in a batch depends on the size of their blobs."""
    if not blob_columns(table, list(column_names)):
        yield from read_fragments(table, fragment_ids, column_names)
        return
    for id_batch in read_fragments(table, fragment_ids, ["id"], with_row_ids=True):
        for rows in take_pieces(table, id_batch.column(ROW_ID)):
            yield from rows.select(column_names).combine_chunks().to_batches()


def _export_ordered(spark: "SparkSession", snapshot: Snapshot, task: ExportTask) -> "DataFrame":
    """Sort ids and row ids on Spark; each task then fetches the rows in its range in that order."""

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition_number = context.partitionId() if context is not None else 0
        yield _write_part(task, partition_number, _read_in_order(task, batches))

    id_rows = scan(spark, snapshot, task.table_key, ["id"], with_row_ids=True).select("id", "_rowid")
    return id_rows.orderBy("id").mapInArrow(run, _PART_DDL)


def _read_in_order(task: ExportTask, batches: Batches) -> Batches:
    pinned_table = task.pinned_graph.table(task.table_key)
    for batch in batches:
        row_ids = batch.column("_rowid").cast(pa.uint64())
        for rows in take_pieces(pinned_table, row_ids):
            yield from rows.to_batches()


def _write_part(task: ExportTask, part_number: int, row_batches: Batches) -> pa.RecordBatch:
    """Write a task's rows, and return the data that the driver needs to name the part."""
    import json

    counted_batches = CountingBatches(task.schema, row_batches)
    scratch_name, fragments_json = f"{task.scratch_folder}/{part_number}-{new_ulid()}", None
    if task.file_format == "lance":
        dataset_path = task.target.full_path(f"{task.scratch_folder.rpartition('/')[0]}.lance")
        fragments_json = json.dumps(
            write_plain_fragments(dataset_path, task.schema, counted_batches, task.target.options)
        )
    else:
        write_file = _write_ndjson if task.file_format == "ndjson" else _write_parquet
        with task.target.create_file(scratch_name) as output:
            write_file(task, output, counted_batches)
    report_columns = {
        "part": [part_number],
        "name": [scratch_name],
        "rows": [counted_batches.row_count],
        "data": [fragments_json],
    }
    return pa.RecordBatch.from_pydict(report_columns, schema=_PART_SCHEMA)


class CountingBatches:
    """An iterator that casts batches to one schema and counts their rows."""

    def __init__(self, schema: pa.Schema, batches: Batches) -> None:
        self.schema, self.batches, self.row_count = schema, batches, 0

    def __iter__(self) -> Batches:
        for batch in self.batches:
            self.row_count += batch.num_rows
            columns = [batch.column(field.name).cast(field.type) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _write_ndjson(task: ExportTask, output: Any, batches: CountingBatches) -> None:
    for batch in batches:
        for ndjson_line in lines_of_rows(task.entity_type, pa.Table.from_batches([batch])):
            output.write(ndjson_line)


def _write_parquet(task: ExportTask, output: Any, batches: CountingBatches) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(output, task.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
