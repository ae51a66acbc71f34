"""Merge branches with too many changes for one process, using Spark to compare tables and write rows.

Executors read only the fragments that differ, and match rows by id in a single shuffle of ids and row ids. The tasks
that read values also compare and write them. The driver receives ids, conflicting rows, and the columns needed for
rules that involve all rows. It handles conflicts and publishes the result as in any other merge.
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConfigError
from omnigraph.history.diff import count_rows_to_compare, match_rows_by_id
from omnigraph.history.entities import TableChanges
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.defaults import backfill_values
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.merging.offloaded_table import SOURCE_ROW_ID, OffloadedSides
from omnigraph.merging.table_merge import Granularity
from omnigraph.rules.delta import Positions
from omnigraph.rules.unique import rule_columns
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.column_identity import align_columns
from omnigraph.storage.find_rows import take_with_blobs
from omnigraph.storage.fragments import fragment_row_counts
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.storage.version_difference import compare_versions
from omnigraph.values.table_key import TableKey

from .arrow_bytes import unpack_table
from .merge_tasks import (
    BASE,
    ENTRY_DDL,
    OURS,
    RESULT_DDL,
    ROW_ID_COLUMNS,
    SOURCE,
    TARGET,
    THEIRS,
    DifferingFragments,
    ThreeWayTable,
    make_candidate_task,
    make_compare_task,
    make_write_task,
)
from .pinned_graph import pin_graph
from .session import spark_session, spark_session_or_none, translate_spark_errors
from .table_scan import group_fragments
from .versions import check_versions

SPARK_MIN_ROWS = 2_000_000  # Spark is used if the two sides together have at least this many changed rows
THRESHOLD_VARIABLE = "OMNIGRAPH_MERGE_SPARK_ROWS"
_MIN_TABLE_ROWS = 10_000  # a table with fewer changed rows is always compared in this process
_log = logging.getLogger("omnigraph")


def spark_row_threshold() -> int:
    """Read `OMNIGRAPH_MERGE_SPARK_ROWS`, the number of changed rows at which a merge starts to use Spark."""
    setting = os.environ.get(THRESHOLD_VARIABLE) or str(SPARK_MIN_ROWS)
    if not setting.isdecimal():
        raise ConfigError(f"{THRESHOLD_VARIABLE} must be a number of rows, not '{setting}'")
    return int(setting)


@dataclass(slots=True)
class SparkMerge:
    """Compares and writes a merge's tables on Spark: all of them if `forced`, otherwise those with many changes."""

    session: Any = None
    forced: bool = False

    def select_tables(self, merge_inputs: MergeInputs, table_keys: Sequence[TableKey]) -> frozenset[str]:
        """Select the tables to compare on Spark, or none if the merge is small or Spark is not available."""
        if self.forced:
            return frozenset(table_keys)
        min_rows = spark_row_threshold()
        # Check the upper bound from the row counts first, because that does not require opening a table.
        if sum(_max_changed_rows(merge_inputs, key) for key in table_keys) < min_rows:
            return frozenset()
        changed_rows = {key: _count_changed_rows(merge_inputs, key) for key in table_keys}
        if sum(changed_rows.values()) < min_rows:
            return frozenset()
        if self.session is None:
            self.session = spark_session_or_none()
        if self.session is None:
            _log.info("running a large merge in this process because Spark is not available")
            return frozenset()
        return frozenset(key for key, row_count in changed_rows.items() if row_count >= _MIN_TABLE_ROWS)

    def compare(self, merge_inputs: MergeInputs, table_key: TableKey, granularity: Granularity) -> OffloadedSides:
        """Return the changes that both sides made to a table."""
        entity_type = type_for_key(merge_inputs.target_snapshot.schema.ir.catalog, table_key)
        snapshots = {
            BASE: merge_inputs.base_snapshot,
            OURS: merge_inputs.target_snapshot,
            THEIRS: merge_inputs.source_snapshot,
        }
        pinned_tables = {
            version_name: _pinned_version(snapshot.table(table_key)) for version_name, snapshot in snapshots.items()
        }
        pinned_graph = pin_graph(merge_inputs.target_snapshot.store, pinned_tables)
        three_way = ThreeWayTable(
            pinned_graph, entity_type, tuple(rule_columns(entity_type)), backfill_values(entity_type)
        )
        tables_by_kind = self._compare_on_spark(three_way, _differing_fragments(merge_inputs, table_key))
        return _offloaded_sides(merge_inputs, table_key, granularity, three_way, tables_by_kind)

    def write(
        self, store: Store, source_table: Table, target_table: Table, row_ids: Positions, kept_row_ids: Positions
    ) -> list[Mapping[str, Any]]:
        """Write rows from the source table as fragments for the target table, preserving the given row ids."""
        spark = self._checked_session()
        pinned_graph = pin_graph(store, {SOURCE: _pinned_version(source_table), TARGET: _pinned_version(target_table)})
        write_order = np.lexsort((row_ids, kept_row_ids >= 0))
        with translate_spark_errors(spark):
            row_references = spark.createDataFrame(
                pa.table({"row": row_ids[write_order], "kept": kept_row_ids[write_order]})
            )
            result_rows = row_references.mapInArrow(make_write_task(pinned_graph), RESULT_DDL).toArrow()
        return [json.loads(fragment_json) for fragment_json in result_rows["data"].to_pylist()]

    def _compare_on_spark(
        self, three_way: ThreeWayTable, fragment_sets: Sequence[DifferingFragments]
    ) -> Mapping[str, list[pa.Table]]:
        from pyspark.sql import functions as sql

        tables_by_kind: dict[str, list[pa.Table]] = {}
        if not fragment_sets:
            return tables_by_kind
        spark = self._checked_session()
        with translate_spark_errors(spark):
            set_numbers = spark.range(0, len(fragment_sets), 1, len(fragment_sets))
            entries = set_numbers.mapInArrow(make_candidate_task(three_way.pinned_graph, fragment_sets), ENTRY_DDL)
            matched_entries = entries.groupBy("id").agg(*(sql.max(column).alias(column) for column in ROW_ID_COLUMNS))
            # Sort by row id so that adjacent rows are read together.
            read_order = sql.coalesce("theirs", "ours", "was_theirs", "was_ours")
            result_rows = (
                matched_entries.sortWithinPartitions(read_order)
                .mapInArrow(make_compare_task(three_way), RESULT_DDL)
                .toArrow()
            )
        for kind, packed_rows in zip(result_rows["kind"].to_pylist(), result_rows["data"].to_pylist(), strict=True):
            tables_by_kind.setdefault(kind, []).append(unpack_table(packed_rows))
        return tables_by_kind

    def _checked_session(self) -> Any:
        if self.session is None:
            self.session = spark_session()
        check_versions(self.session)
        return self.session


def _pinned_version(table: Table) -> tuple[str, int]:
    return table.location, table.version


def _max_changed_rows(merge_inputs: MergeInputs, table_key: TableKey) -> int:
    """Return an upper bound on the number of changed rows, without opening a table."""
    return sum(
        2 * snapshot.tables[table_key].row_count
        for snapshot in (merge_inputs.base_snapshot, merge_inputs.target_snapshot, merge_inputs.source_snapshot)
    )


def _count_changed_rows(merge_inputs: MergeInputs, table_key: TableKey) -> int:
    """Count the rows on both sides that must be compared."""
    return sum(
        count_rows_to_compare(merge_inputs.base_snapshot, side_snapshot, table_key)
        for side_snapshot in (merge_inputs.target_snapshot, merge_inputs.source_snapshot)
    )


def _differing_fragments(merge_inputs: MergeInputs, table_key: TableKey) -> list[DifferingFragments]:
    """Return the fragments in which each side differs from the base, grouped into tasks."""
    base_table, fragment_sets = merge_inputs.base_snapshot.table(table_key), []
    for side, snapshot in ((OURS, merge_inputs.target_snapshot), (THEIRS, merge_inputs.source_snapshot)):
        side_table = snapshot.table(table_key)
        base_sizes, side_sizes = fragment_row_counts(base_table), fragment_row_counts(side_table)
        if side_table.location == base_table.location:
            difference = compare_versions(base_table, side_table)
            base_sizes, side_sizes = (
                {entry.fragment_id: entry.physical_rows for entry in fragments}
                for fragments in (difference.removed, difference.added)
            )
            fragment_pairs = [
                (entry.old_fragment.fragment_id, entry.new_fragment.fragment_id) for entry in difference.redeleted
            ]
            fragment_sets += [
                DifferingFragments(side, (base_fragment,), (side_fragment,), only_deletions=True)
                for base_fragment, side_fragment in fragment_pairs
            ]
        fragment_sets += [
            DifferingFragments(side, base_fragments=tuple(fragments)) for fragments in group_fragments(base_sizes)
        ]
        fragment_sets += [
            DifferingFragments(side, side_fragments=tuple(fragments)) for fragments in group_fragments(side_sizes)
        ]
    return fragment_sets


def _offloaded_sides(
    merge_inputs: MergeInputs,
    table_key: TableKey,
    granularity: Granularity,
    three_way: ThreeWayTable,
    tables_by_kind: Mapping[str, list[pa.Table]],
) -> OffloadedSides:
    full_schema = row_schema(merge_inputs.source_snapshot.table(table_key).schema)
    rule_schema = pa.schema(
        [*(full_schema.field(column) for column in three_way.rule_columns), (SOURCE_ROW_ID, pa.int64())]
    )
    inserted_rows, updated_rows = (
        _concatenate_by_id(tables_by_kind.get(kind, ()), rule_schema) for kind in ("insert", "update")
    )
    deleted_ids = _concatenate_by_id(tables_by_kind.get("delete", ()), pa.schema([full_schema.field("id")]))["id"]
    clashing_rows = _concatenate_by_id(tables_by_kind.get("clash", ()), _CLASH_SCHEMA)
    our_changes, their_changes = (
        _clashing_changes(merge_inputs, table_key, three_way, clashing_rows, side) for side in (OURS, THEIRS)
    )
    added_edges = _concatenate_by_id(tables_by_kind.get("added", ()), _ADDED_SCHEMA)
    parallel_candidates = _parallel_candidates(merge_inputs, table_key, added_edges, inserted_rows)
    invalid_rows = _read_rows(
        merge_inputs.source_snapshot.table(table_key),
        _concatenate_by_id(tables_by_kind.get("broken", ()), _INVALID_SCHEMA)[SOURCE_ROW_ID],
    )
    return OffloadedSides(
        table_key,
        our_changes,
        their_changes,
        granularity,
        merge_inputs=merge_inputs,
        inserted_rows=inserted_rows,
        updated_rows=updated_rows,
        deleted_ids=deleted_ids.combine_chunks(),
        parallel_candidates=parallel_candidates,
        invalid_rows=invalid_rows,
    )


def _concatenate_by_id(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate the tables from all tasks and sort the rows by id, as a comparison in one process does."""
    combined = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
    return combined.sort_by("id").combine_chunks()


def _clashing_changes(
    merge_inputs: MergeInputs, table_key: TableKey, three_way: ThreeWayTable, clashing_rows: pa.Table, side: str
) -> TableChanges:
    """Return one side's changes, with all columns, to the entities that both sides changed differently."""
    base_table = merge_inputs.base_snapshot.table(table_key)
    side_table = _snapshot_of_side(merge_inputs, side).table(table_key)
    full_schema = row_schema(side_table.schema)
    base_rows, side_rows = (
        _read_rows(version_table, clashing_rows[version_name])
        for version_table, version_name in ((base_table, BASE), (side_table, side))
    )
    fitted_base_rows = align_columns(base_rows, base_table.schema, side_table.schema, three_way.initial_values)
    return match_rows_by_id(table_key, fitted_base_rows, side_rows, full_schema)


def _parallel_candidates(
    merge_inputs: MergeInputs, table_key: TableKey, added_edges: pa.Table, inserted_rows: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Return each side's added edges that connect the same two nodes as an edge added by the other side."""
    our_table = merge_inputs.target_snapshot.table(table_key)
    their_table = merge_inputs.source_snapshot.table(table_key)
    if not added_edges.num_rows or not inserted_rows.num_rows:
        return _read_rows(our_table, added_edges[SOURCE_ROW_ID][:0]), _read_rows(
            their_table, inserted_rows[SOURCE_ROW_ID][:0]
        )
    our_endpoints, their_endpoints = _endpoint_texts(added_edges), _endpoint_texts(inserted_rows)
    our_matches = added_edges.filter(pc.is_in(our_endpoints, value_set=their_endpoints))
    their_matches = inserted_rows.filter(pc.is_in(their_endpoints, value_set=our_endpoints))
    return _read_rows(our_table, our_matches[SOURCE_ROW_ID]), _read_rows(their_table, their_matches[SOURCE_ROW_ID])


def _endpoint_texts(rows: pa.Table) -> pa.Array:
    """Return both endpoints of each row as one string.

    Callers compare the rows themselves, so a collision is harmless.
    """
    endpoint_texts: pa.ChunkedArray = pc.binary_join_element_wise(rows["src"], rows["dst"], "\0")
    return endpoint_texts.combine_chunks()


def _read_rows(table: Table, row_ids: pa.ChunkedArray) -> pa.Table:
    row_values = take_with_blobs(table, row_ids.combine_chunks().drop_null().cast(pa.uint64()))
    return row_values.cast(row_schema(table.schema))


def _snapshot_of_side(merge_inputs: MergeInputs, side: str) -> Snapshot:
    return merge_inputs.target_snapshot if side == OURS else merge_inputs.source_snapshot


_INVALID_SCHEMA = pa.schema([("id", pa.string()), (SOURCE_ROW_ID, pa.int64())])
_CLASH_SCHEMA = pa.schema([("id", pa.string()), *((name, pa.int64()) for name in (BASE, OURS, THEIRS))])
_ADDED_SCHEMA = pa.schema([*((name, pa.string()) for name in ("id", "src", "dst")), (SOURCE_ROW_ID, pa.int64())])
