"""A table that is compared by an external engine, because it has too many changed rows for one process.

This process keeps complete rows only for conflicting entities. For rows taken from the source, it keeps the ids and
the columns that rules need. Single entities are looked up in the snapshots of the merge. All other values stay in
storage until they are written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.diff import empty_changes, match_rows_by_id
from omnigraph.history.entities import OPS, Op
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.ingest.stage import stage_tables
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import Delta, Positions, TableDelta
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find, take_with_blobs
from omnigraph.storage.fragments import stage_appended_fragments, stage_changed_fragments, write_fragment
from omnigraph.storage.store import Store
from omnigraph.storage.table import StagedChange, Table
from omnigraph.values.table_key import TableKey

from .lookup_sides import LookupSides, VersionRows
from .recursive_base import find_rows
from .table_merge import Choice, Granularity

SOURCE_ROW_ID = "#row"  # the other side's row id for a row whose values are not in this process


class OffloadEngine(Protocol):
    """An external engine that compares tables and copies rows from one table version to another table."""

    def select_tables(self, merge_inputs: MergeInputs, table_keys: Sequence[TableKey]) -> frozenset[TableKey]:
        """Select the tables that this engine compares."""

    def compare(self, merge_inputs: MergeInputs, table_key: TableKey, granularity: Granularity) -> "OffloadedSides":
        """Return the changes that each side made to a table."""

    def write(
        self, store: Store, source_table: Table, target_table: Table, row_ids: Positions, kept_row_ids: Positions
    ) -> list[Mapping[str, Any]]:
        """Write rows from one table as fragments for another table, preserving the row ids in `kept_row_ids`."""


@dataclass(frozen=True)
class OffloadedSides(LookupSides):
    """The changes that each side made to a table. `ours` and `theirs` contain only conflicting entities.

    `inserted_rows` and `updated_rows` are the rows taken from the source, with only `SOURCE_ROW_ID` and the columns
    that rules read. `deleted_ids` are the ids of the rows that the source removed. `invalid_rows` are the taken rows
    that break a single-row rule, with all of their columns. `parallel_candidates` are edges from each side that may be
    the same edge.
    """

    merge_inputs: MergeInputs = field(kw_only=True)
    inserted_rows: pa.Table = field(kw_only=True)
    updated_rows: pa.Table = field(kw_only=True)
    deleted_ids: pa.Array = field(kw_only=True)
    parallel_candidates: tuple[pa.Table, pa.Table] = field(kw_only=True)
    invalid_rows: pa.Table = field(kw_only=True)

    def changes_to_take(self) -> tuple[pa.Table, pa.Table, pa.Array]:
        """Return the changes to take from the source: rows to add, rows to replace, and ids to remove."""
        return (
            self.inserted_rows,
            pa.concat_tables([self.updated_rows, self.to_rule_columns(self.combined_rows)]),
            self.deleted_ids,
        )

    def to_rule_columns(self, rows: pa.Table) -> pa.Table:
        """Reduce whole rows to the columns that rules read."""
        rule_columns = self.inserted_rows.column_names[:-1]
        local_rows = rows.select(rule_columns).append_column(SOURCE_ROW_ID, pa.nulls(rows.num_rows, pa.int64()))
        return local_rows.cast(self.inserted_rows.schema)

    def added_rows(self) -> tuple[pa.Table, pa.Table]:
        """Return each side's added edges that the other side may have added as well."""
        return self.parallel_candidates

    def edges_deleted_only_on(self, side: Choice, nodes_by_endpoint: Mapping[str, pa.Array]) -> pa.Table:
        """Return the edges at the given nodes that `side` deleted and the other side left unchanged."""
        nonempty_endpoints = {endpoint: node_ids for endpoint, node_ids in nodes_by_endpoint.items() if len(node_ids)}
        base_edges = [
            self._find_rows({endpoint: node_ids}, self.merge_inputs.base_snapshot)
            for endpoint, node_ids in nonempty_endpoints.items()
        ]
        edge_ids = sorted({edge_id for rows in base_edges for edge_id in rows["id"].to_pylist()})
        self.load_entities(edge_ids)
        deleted_edge_ids = [edge_id for edge_id in edge_ids if self.entity_states[edge_id].is_deleted_only_on(side)]
        deleted_rows = [row for edge_id in deleted_edge_ids if (row := self.entity_states[edge_id].base) is not None]
        full_schema = row_schema(self.merge_inputs.target_snapshot.table(self.table_key).schema)
        return pa.concat_tables([full_schema.empty_table(), *deleted_rows])

    def find_versions(self, condition: Mapping[str, pa.Array]) -> VersionRows:
        """Return the rows that meet a condition, in the base, target and source snapshots."""
        base, target = self.merge_inputs.base_snapshot, self.merge_inputs.target_snapshot
        base_rows, our_rows = self._find_rows(condition, base), self._find_rows(condition, target)
        return base_rows, our_rows, self._find_rows(condition, self.merge_inputs.source_snapshot)

    def _find_rows(self, condition: Mapping[str, pa.Array], snapshot: Any) -> pa.Table:
        return find_rows(snapshot, self.merge_inputs.target_snapshot.schema.ir, self.table_key, condition).sort_by("id")


@dataclass(frozen=True)
class OffloadedDelta(TableDelta):
    """The changes to a table. This process does not hold the row values, except for `local_rows`.

    `suspect_rows` are the rows that may violate a single-row rule: the local rows and the rows found to be invalid.
    """

    local_rows: pa.Table = field(kw_only=True)
    suspect_rows: pa.Table = field(kw_only=True)
    merge_inputs: MergeInputs = field(kw_only=True)
    engine: OffloadEngine | None = field(kw_only=True)

    @property
    def _source_rows(self) -> tuple[Positions, Any]:
        """Return the source row ids of offloaded rows, and a mask of the offloaded rows among all rows."""
        row_id_column = self.rows[SOURCE_ROW_ID].combine_chunks()
        is_offloaded = pc.is_valid(row_id_column).to_numpy(zero_copy_only=False)
        return row_id_column.drop_null().to_numpy(), is_offloaded

    def stage(self, txn: WriteTxn) -> StagedChange:
        """Write all rows and return them as one staged change."""
        table, (source_row_ids, is_offloaded) = txn.table(self.table_key), self._source_rows
        fragments = self._write_local_rows(txn, table, is_offloaded)
        if self.engine is not None and len(source_row_ids):
            source_table = self.merge_inputs.source_snapshot.table(self.table_key)
            fragments += self.engine.write(txn.store, source_table, table, source_row_ids, self.row_ids[is_offloaded])
        replaces_stored = self.row_ids >= 0
        removed_addresses = self.addresses[replaces_stored]
        if self.removed_rows is not None:
            removed_addresses = np.concatenate([removed_addresses, self.removed_rows["_rowaddr"].to_numpy()])
        if not len(removed_addresses):
            return stage_appended_fragments(table, fragments)
        kept_row_ids = self.row_ids[replaces_stored].tolist()
        return stage_changed_fragments(txn.store, table, fragments, removed_addresses.astype(np.uint64), kept_row_ids)

    def _write_local_rows(self, txn: WriteTxn, table: Table, is_offloaded: Any) -> list[Mapping[str, Any]]:
        """Write the local rows, in the order of the delta's ids."""
        if is_offloaded.all():
            return []
        local_ids = self.ids.filter(pa.array(~is_offloaded))
        local_row_ids = self.row_ids[~is_offloaded]
        rows = self.local_rows.take(pc.index_in(local_ids, value_set=self.local_rows["id"].combine_chunks()))
        fragments: list[Mapping[str, Any]] = []
        for keeps_row_ids in (False, True):
            selected = (local_row_ids >= 0) == keeps_row_ids
            if selected.any():
                kept_row_ids = local_row_ids[selected].tolist() if keeps_row_ids else None
                fragments.append(write_fragment(txn.store, table, rows.filter(pa.array(selected)), kept_row_ids))
        return fragments

    def read_all_rows(self) -> pa.Table:
        """Read all rows with all of their values. The rows must fit in memory."""
        source_table = self.merge_inputs.source_snapshot.table(self.table_key)
        source_row_ids, _ = self._source_rows
        source_rows = take_with_blobs(source_table, pa.array(source_row_ids, pa.uint64()))
        full_schema = row_schema(source_table.schema)
        return pa.concat_tables(
            [source_rows.cast(full_schema), self.local_rows.select(full_schema.names).cast(full_schema)]
        )

    def count_changes(self) -> dict[Op, int]:
        """Count the changed entities in the target by operation, reading only local rows."""
        _, is_offloaded = self._source_rows
        updated_count = int((self.row_ids[is_offloaded] >= 0).sum())
        op_counts = int(is_offloaded.sum()) - updated_count, updated_count, len(self.removed_ids)
        counts_by_op: dict[Op, int] = dict(zip(OPS, op_counts, strict=True))
        if self.local_rows.num_rows:
            table = self.merge_inputs.target_snapshot.table(self.table_key)
            stored_rows = find(table, {"id": self.local_rows["id"].combine_chunks()}, table.schema.names)
            local_counts = match_rows_by_id(
                self.table_key, stored_rows, self.local_rows, row_schema(table.schema)
            ).counts
            counts_by_op = {op: count + local_counts[op] for op, count in counts_by_op.items()}
        return counts_by_op


def make_offloaded_delta(
    table_delta: TableDelta, offloaded_sides: OffloadedSides, local_rows: pa.Table, engine: OffloadEngine | None
) -> OffloadedDelta:
    """Build a delta from complete local rows and from offloaded rows, of which only the rule columns are in memory."""
    table_delta = replace(table_delta, row_rules_checked=True)
    delta_values = {delta_field.name: getattr(table_delta, delta_field.name) for delta_field in fields(TableDelta)}
    offloaded_ids = table_delta.row_versions.filter(pc.is_valid(table_delta.row_versions[SOURCE_ROW_ID]))[
        "id"
    ].combine_chunks()
    invalid_rows = offloaded_sides.invalid_rows.filter(
        pc.is_in(offloaded_sides.invalid_rows["id"], value_set=offloaded_ids)
    )
    suspect_rows = pa.concat_tables([local_rows, invalid_rows.select(local_rows.column_names).cast(local_rows.schema)])
    return OffloadedDelta(
        **delta_values,
        local_rows=local_rows,
        suspect_rows=suspect_rows,
        merge_inputs=offloaded_sides.merge_inputs,
        engine=engine,
    )


def stage_delta(txn: WriteTxn, delta: Delta) -> dict[TableKey, StagedChange]:
    """Stage the changes to every changed table, whether the external engine compared the table or not."""
    offloaded_tables = {
        key: table_delta for key, table_delta in delta.tables.items() if isinstance(table_delta, OffloadedDelta)
    }
    local_tables = {key: table_delta for key, table_delta in delta.tables.items() if key not in offloaded_tables}
    staged_tables = dict(stage_tables(txn, replace(delta, tables=local_tables)))
    return staged_tables | {
        key: table_delta.stage(txn) for key, table_delta in offloaded_tables.items() if not table_delta.is_empty
    }


def unchanged_sides(merge_inputs: MergeInputs, table_key: TableKey, granularity: Granularity) -> OffloadedSides:
    """Return `OffloadedSides` that contain no changes and are used only to look up entities."""
    unchanged = empty_changes(table_key, merge_inputs.target_snapshot.table(table_key))
    empty_rows = unchanged.inserted
    empty_rule_rows = empty_rows.append_column(SOURCE_ROW_ID, pa.array([], pa.int64()))
    no_ids = pa.array([], pa.string())
    return OffloadedSides(
        table_key,
        unchanged,
        unchanged,
        granularity,
        merge_inputs=merge_inputs,
        inserted_rows=empty_rule_rows,
        updated_rows=empty_rule_rows,
        deleted_ids=no_ids,
        parallel_candidates=(empty_rows, empty_rows),
        invalid_rows=empty_rows,
    )
