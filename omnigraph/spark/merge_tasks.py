"""Spark merge tasks, which list rows that may differ, compare them, and write rows to the target.

The tasks run on executors and use the same comparison and storage code as a merge in one process. Only ids and row ids
are shuffled. Each task reads the values that it compares, one piece at a time. The tasks publish nothing. This module
does not import pyspark; `merge` passes its functions to Spark.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.merging.offloaded_table import SOURCE_ROW_ID
from omnigraph.rules.row_rules import row_violations
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.column_identity import align_columns
from omnigraph.storage.differing_rows import one_sided_rows
from omnigraph.storage.find_rows import take_with_blobs
from omnigraph.storage.fragments import read_fragments, write_fragment
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.storage.table import Table
from omnigraph.storage.value_equality import same_rows

from .arrow_bytes import pack_table
from .pinned_graph import PinnedGraph

BASE, OURS, THEIRS = "base", "ours", "theirs"
SOURCE, TARGET = "source", "target"
# The row ids of an entity that may have changed: for each side, its row id in the base and its row id on that side.
ROW_ID_COLUMNS = ("was_ours", "ours", "was_theirs", "theirs")
ENTRY_DDL = ", ".join(["id string", *(f"{name} bigint" for name in ROW_ID_COLUMNS)])
RESULT_DDL = "kind string, data binary"
_ENTRY_SCHEMA = pa.schema([("id", pa.string()), *((name, pa.int64()) for name in ROW_ID_COLUMNS)])
_PIECE_ROWS = 8_192  # number of rows that are compared together
_MAX_ROWS, _MAX_BYTES = FRAGMENT_ROWS, FRAGMENT_BYTES  # limits on the size of a fragment
Batches = Iterator[pa.RecordBatch]
BatchFunction = Callable[[Batches], Batches]
BoolMask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DifferingFragments:
    """Fragments in which one side differs from the base.

    If `only_deletions` is true, there is one fragment in the base and one on the side, and these two fragments differ
    only in their deleted rows.
    """

    side: str
    base_fragments: tuple[int, ...] = ()
    side_fragments: tuple[int, ...] = ()
    only_deletions: bool = False


@dataclass(frozen=True, slots=True)
class ThreeWayTable:
    """One table in three versions: base, ours and theirs.

    `rule_columns` are the columns that rules involving all rows read. `initial_values` are the values of base rows in
    the columns that the base lacks.
    """

    pinned_graph: PinnedGraph
    entity_type: NodeType | EdgeType
    rule_columns: tuple[str, ...]
    initial_values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_edge_table(self) -> bool:
        """Whether the rows are edges."""
        return "src" in self.rule_columns


def make_candidate_task(pinned_graph: PinnedGraph, fragment_sets: Sequence[DifferingFragments]) -> BatchFunction:
    """Return a Spark function that lists the rows that may have changed.

    The function takes the numbers of fragment sets and yields batches with the schema `ENTRY_DDL`.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for set_number in batch.column(0).to_pylist():
                yield from _candidate_entries(pinned_graph, fragment_sets[set_number])

    return run


def _candidate_entries(pinned_graph: PinnedGraph, fragment_set: DifferingFragments) -> Batches:
    fragments_by_version = ((BASE, fragment_set.base_fragments), (fragment_set.side, fragment_set.side_fragments))
    if fragment_set.only_deletions:
        base_fragment, side_fragment = (
            (pinned_graph.table(version_name), fragment_ids[0]) for version_name, fragment_ids in fragments_by_version
        )
        base_batches, side_batches = (
            iter(lone_table.to_batches())
            for lone_table in one_sided_rows(pinned_graph.store(), base_fragment, side_fragment)
        )
    else:
        base_batches, side_batches = (
            read_fragments(pinned_graph.table(version_name), fragment_ids, ["id"], with_row_ids=True)
            if fragment_ids
            else iter(())
            for version_name, fragment_ids in fragments_by_version
        )
    for batches, column in ((base_batches, f"was_{fragment_set.side}"), (side_batches, fragment_set.side)):
        for rows in batches:
            arrays_by_name = {"id": rows.column("id"), column: rows.column("_rowid").cast(pa.int64())}
            null_array = pa.nulls(rows.num_rows, pa.int64())
            arrays = [arrays_by_name.get(version_name, null_array) for version_name in _ENTRY_SCHEMA.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ENTRY_SCHEMA)


def make_compare_task(three_way: ThreeWayTable) -> BatchFunction:
    """Return a Spark function that compares matched entries and yields tables of several kinds.

    `insert` and `update` contain rows that only the source changed, `delete` contains the ids of rows that only the
    source removed, and `broken` contains rows in the source that violate a row rule. For entities that both sides
    changed differently, `clash` contains the row ids in each version. `added` contains edges that only the target
    added.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for start in range(0, batch.num_rows, _PIECE_ROWS):
                yield from _compare_entries(three_way, batch.slice(start, _PIECE_ROWS))

    return run


def _compare_entries(three_way: ThreeWayTable, entries: pa.RecordBatch) -> Batches:
    ids, (our_base_rows, our_rows, their_base_rows, their_rows) = (
        entries.column("id"),
        map(entries.column, ROW_ID_COLUMNS),
    )
    changed_by_us = _changed_mask(three_way, OURS, our_base_rows, our_rows)
    changed_by_them = _changed_mask(three_way, THEIRS, their_base_rows, their_rows)
    only_theirs, exists_in_theirs = changed_by_them & ~changed_by_us, _valid_mask(their_rows)
    for kind, mask in (("insert", ~_valid_mask(their_base_rows)), ("update", _valid_mask(their_base_rows))):
        selected = np.flatnonzero(only_theirs & exists_in_theirs & mask)
        if len(selected):
            yield from _taken_rows(three_way, kind, their_rows.take(pa.array(selected)))
    deleted = np.flatnonzero(only_theirs & ~exists_in_theirs)
    if len(deleted):
        yield _result_batch("delete", pa.table({"id": ids.take(pa.array(deleted))}))
    clashing = pa.array(
        np.flatnonzero(_clashing_mask(three_way, changed_by_us & changed_by_them, our_rows, their_rows))
    )
    if len(clashing):
        clash_columns = ("id", BASE, OURS, THEIRS)
        clash_sources = (ids, our_base_rows, our_rows, their_rows)
        clash_arrays = [row_array.take(clashing) for row_array in clash_sources]
        yield _result_batch("clash", pa.table(dict(zip(clash_columns, clash_arrays, strict=True))))
    added_positions = np.flatnonzero(
        changed_by_us & ~changed_by_them & _valid_mask(our_rows) & ~_valid_mask(our_base_rows)
    )
    if three_way.is_edge_table and len(added_positions):
        added_row_ids = our_rows.take(pa.array(added_positions))
        endpoint_rows = _read_rows(three_way.pinned_graph.table(OURS), added_row_ids, ("id", "src", "dst"))
        yield _result_batch("added", endpoint_rows.append_column(SOURCE_ROW_ID, added_row_ids))


def _taken_rows(three_way: ThreeWayTable, kind: str, row_ids: pa.Array) -> Batches:
    """Yield the rows to take from the source.

    Rows that break a row rule are also yielded as `broken`, because the source's rows may never have been validated.
    """
    source_table = three_way.pinned_graph.table(THEIRS)
    source_rows = _read_rows(source_table, row_ids).cast(row_schema(source_table.schema))
    rule_rows = source_rows.select(three_way.rule_columns).append_column(SOURCE_ROW_ID, row_ids)
    yield _result_batch(kind, rule_rows)
    invalid_ids = {str(violation.entity_id) for violation in row_violations(three_way.entity_type, source_rows)}
    if invalid_ids:
        invalid_rows = rule_rows.filter(pc.is_in(rule_rows["id"], value_set=pa.array(sorted(invalid_ids), pa.string())))
        yield _result_batch("broken", invalid_rows.select(["id", SOURCE_ROW_ID]))


def _valid_mask(column: pa.Array) -> BoolMask:
    mask: BoolMask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _changed_mask(three_way: ThreeWayTable, side: str, base_row_ids: pa.Array, side_row_ids: pa.Array) -> BoolMask:
    """Return a mask of the entities that `side` added, removed or changed, compared with the base."""
    in_base, in_side = _valid_mask(base_row_ids), _valid_mask(side_row_ids)
    in_both = pa.array(np.flatnonzero(in_base & in_side))
    changed = in_base ^ in_side
    changed[in_both.to_numpy()] = ~_same_values_mask(
        three_way, side, base_row_ids.take(in_both), side_row_ids.take(in_both)
    )
    return changed


def _same_values_mask(three_way: ThreeWayTable, side: str, base_row_ids: pa.Array, side_row_ids: pa.Array) -> BoolMask:
    if not len(base_row_ids):
        return np.ones(0, np.bool_)
    base_table, side_table = three_way.pinned_graph.table(BASE), three_way.pinned_graph.table(side)
    side_schema = row_schema(side_table.schema)
    base_values = align_columns(
        _read_rows(base_table, base_row_ids), base_table.schema, side_table.schema, three_way.initial_values
    ).cast(side_schema)
    return same_rows(base_values, _read_rows(side_table, side_row_ids).cast(side_schema))


def _clashing_mask(
    three_way: ThreeWayTable, changed_by_both: BoolMask, our_row_ids: pa.Array, their_row_ids: pa.Array
) -> BoolMask:
    """Return a mask of the entities that both sides changed differently."""
    in_ours, in_theirs = _valid_mask(our_row_ids), _valid_mask(their_row_ids)
    clashing = changed_by_both & (in_ours ^ in_theirs)
    common_positions = pa.array(np.flatnonzero(changed_by_both & in_ours & in_theirs))
    if len(common_positions):
        our_values = _read_rows(three_way.pinned_graph.table(OURS), our_row_ids.take(common_positions))
        their_values = _read_rows(three_way.pinned_graph.table(THEIRS), their_row_ids.take(common_positions))
        clashing[common_positions.to_numpy()] = ~same_rows(our_values, their_values)
    return clashing


def _read_rows(table: Table, row_ids: pa.Array, columns: Sequence[str] | None = None) -> pa.Table:
    return take_with_blobs(table, row_ids.cast(pa.uint64()), columns)


def _result_batch(kind: str, result_rows: pa.Table) -> pa.RecordBatch:
    cells = [pa.array([kind]), pa.array([pack_table(result_rows)], pa.binary())]
    return pa.RecordBatch.from_arrays(cells, names=["kind", "data"])


def make_write_task(pinned_graph: PinnedGraph) -> BatchFunction:
    """Return a Spark function that writes rows as fragments for the target table.

    The function's input columns are `row`, the row id in the source, and `kept`, the row id to keep in the target, or a
    negative number if there is none.
    """

    def run(batches: Batches) -> Batches:
        buffers = {
            False: _FragmentBuffer(pinned_graph, keeps_row_ids=False),
            True: _FragmentBuffer(pinned_graph, keeps_row_ids=True),
        }
        for batch in batches:
            kept_row_ids = batch.column("kept").to_numpy()
            for keeps_row_ids, buffer in buffers.items():
                buffer_rows = batch.filter(pa.array((kept_row_ids >= 0) == keeps_row_ids))
                for start in range(0, buffer_rows.num_rows, _PIECE_ROWS):
                    yield from buffer.add(buffer_rows.slice(start, _PIECE_ROWS))
        for buffer in buffers.values():
            yield from buffer.flush()

    return run


class _FragmentBuffer:
    """Collects rows and writes them as one fragment."""

    def __init__(self, pinned_graph: PinnedGraph, *, keeps_row_ids: bool) -> None:
        self.pinned_graph, self.keeps_row_ids = pinned_graph, keeps_row_ids
        self.row_tables: list[pa.Table] = []
        self.kept_row_ids: list[int] = []
        self.row_count = self.byte_count = 0

    def add(self, row_references: pa.RecordBatch) -> Batches:
        row_values = _read_rows(self.pinned_graph.table(SOURCE), row_references.column("row"))
        self.row_tables.append(row_values)
        self.kept_row_ids += row_references.column("kept").to_pylist() if self.keeps_row_ids else []
        self.row_count += row_values.num_rows
        self.byte_count += row_values.nbytes
        if self.row_count >= _MAX_ROWS or self.byte_count >= _MAX_BYTES:
            yield from self.flush()

    def flush(self) -> Batches:
        if not self.row_count:
            return
        row_values = pa.concat_tables(self.row_tables)
        row_ids = self.kept_row_ids if self.keeps_row_ids else None
        target_table = self.pinned_graph.table(TARGET)
        fragment_json = json.dumps(
            write_fragment(self.pinned_graph.store(), target_table, row_values, row_ids)
        ).encode()
        self.row_tables, self.kept_row_ids, self.row_count, self.byte_count = [], [], 0, 0
        cells = [pa.array(["fragment"]), pa.array([fragment_json], pa.binary())]
        yield pa.RecordBatch.from_arrays(cells, names=["kind", "data"])
