"""Look up the endpoints of loaded edges among the ids of their node types, without shuffling edges.

Executors look up every endpoint in an id index, which each machine builds once and maps into memory. Only endpoints
that have no node are returned. `edge_checks` handles node types with records that were not written to fragments.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.rules.delta import as_single_array
from omnigraph.rules.endpoints import endpoint_columns
from omnigraph.storage.find_rows import find
from omnigraph.storage.find_rows import read_batches as stored_batches
from omnigraph.values.table_key import TableKey

from .id_index import IdIndex, open_id_index
from .pinned_graph import PinnedGraph
from .session import parallelism, shared_files_folder
from .staged_fragments import Batches, StagedFragment, map_staged_fragments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOST_ENDPOINT_DDL = "edge string, side string, id string, src string, dst string, spot bigint"
LOST_ENDPOINT_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("edge", "side", "id", "src", "dst")] + [("spot", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class NodeIdSource:
    """The sources of a node type's ids: fragments that the load wrote, and stored rows."""

    node_key: TableKey
    staged_fragments: Sequence[StagedFragment]
    indexed_stored_ids: int  # number of stored ids to include in the index
    looks_up_stored: bool  # whether stored ids are looked up in the table instead


@dataclass(frozen=True, slots=True)
class EndpointLookup:
    """The data that a task needs to look up endpoints.

    `endpoint_columns` maps the table key of an edge type to its endpoint columns, each with the table key of its node
    type.
    """

    load_id: str
    pinned_graph: PinnedGraph
    id_sources: Mapping[TableKey, NodeIdSource]
    endpoint_columns: Mapping[TableKey, Sequence[tuple[str, TableKey]]]

    def open_index(self, node_key: TableKey) -> IdIndex:
        """Open this machine's index of a node type's ids; build it if necessary."""
        id_source = self.id_sources[node_key]
        id_count = id_source.indexed_stored_ids + sum(fragment.row_count for fragment in id_source.staged_fragments)
        index_folder = scratch_folder(self.load_id) / node_key.replace(":", "-")
        return open_id_index(index_folder, id_count, lambda: _read_ids(self.pinned_graph, id_source))

    def find_lost(self, node_key: TableKey, id_index: IdIndex, endpoint_ids: pa.Array) -> Any:
        """Return the positions of the endpoints for which there is no node."""
        missing_positions = id_index.missing_positions(endpoint_ids)
        if not len(missing_positions) or not self.id_sources[node_key].looks_up_stored:
            return missing_positions
        missing_ids = endpoint_ids.take(pa.array(missing_positions))
        stored_ids = find(self.pinned_graph.table(node_key), {"id": missing_ids.unique()}, ["id"])["id"]
        absent_mask = pc.invert(pc.is_in(missing_ids, value_set=as_single_array(stored_ids)))
        return missing_positions[absent_mask.to_numpy(zero_copy_only=False)]


def scratch_folder(load_id: str) -> Path:
    """Return this machine's folder for one load's indexes; on a worker, Spark removes the folder at exit."""
    from pyspark import SparkFiles, TaskContext

    on_worker = TaskContext.get() is not None
    root_folder = SparkFiles.getRootDirectory() if on_worker else tempfile.gettempdir()
    return Path(root_folder, _scratch_name(load_id))


def _scratch_name(load_id: str) -> str:
    return f"omnigraph-{load_id}"


def _read_ids(pinned_graph: PinnedGraph, id_source: NodeIdSource) -> Iterator[pa.Array]:
    for fragment in id_source.staged_fragments:
        for batch in fragment.read_columns(pinned_graph, ["id"]):
            yield batch.column(0)
    if id_source.indexed_stored_ids:
        for batch in stored_batches(pinned_graph.table(id_source.node_key), ["id"]):
            yield batch.column("id")


def find_lost_endpoints(
    spark: "SparkSession",
    lookup: EndpointLookup,
    table_keys: Sequence[TableKey],
    edge_fragments: Sequence[StagedFragment],
    reported_edges: "DataFrame | None",
) -> tuple[list[dict[str, Any]], frozenset[TableKey]]:
    """Return every endpoint without a node, and the node types that may contain an id twice.

    `edge_fragments` are the staged fragments that contain edges, and `reported_edges` are the remaining edge records.
    The `type` column in `reported_edges` is an index into `table_keys`.
    """
    lost_frame: DataFrame = map_staged_fragments(
        spark, edge_fragments, lambda item: _lost_in_fragment(lookup, item), LOST_ENDPOINT_DDL
    )
    if reported_edges is not None:
        lost_frame = lost_frame.unionAll(
            reported_edges.mapInArrow(_make_report_task(lookup, table_keys), LOST_ENDPOINT_DDL)
        )
    lost_rows = lost_frame.toArrow().to_pylist()
    types_with_repeats = frozenset(TableKey(item["edge"]) for item in lost_rows if item["side"] is None)
    return [item for item in lost_rows if item["side"] is not None], types_with_repeats


def remove_scratch_folders(spark: "SparkSession", load_id: str) -> None:
    """Remove the indexes that executors built for a load. A local session needs no tasks for this."""
    shared_folder = shared_files_folder(spark)
    if shared_folder is not None:
        shutil.rmtree(shared_folder / _scratch_name(load_id), ignore_errors=True)
        return

    def run(batches: Batches) -> Batches:
        for _ in batches:
            shutil.rmtree(scratch_folder(load_id), ignore_errors=True)
        yield from ()

    task_count = parallelism(spark)
    spark.range(0, task_count, 1, task_count).mapInArrow(run, "n int").count()


def _lost_in_fragment(lookup: EndpointLookup, fragment: StagedFragment) -> Batches:
    """Yield a fragment's endpoints that have no node; edge ids are read only if there are such endpoints."""
    lost_by_column: list[tuple[str, Any]] = []
    indexes = {node_key: lookup.open_index(node_key) for _, node_key in lookup.endpoint_columns[fragment.table_key]}
    yield from (_repeated_type_row(node_key) for node_key, id_index in indexes.items() if id_index.may_repeat_ids)
    row_offset = 0
    for batch in fragment.read_columns(lookup.pinned_graph, ["src", "dst"]):
        for column, node_key in lookup.endpoint_columns[fragment.table_key]:
            positions = lookup.find_lost(node_key, indexes[node_key], batch.column(column))
            if len(positions):
                lost_by_column.append((column, row_offset + positions))
        row_offset += batch.num_rows
    if not lost_by_column:
        return
    edge_rows = pa.Table.from_batches(list(fragment.read_columns(lookup.pinned_graph, ["id", "src", "dst"])))
    for column in ("src", "dst"):
        position_arrays = [positions for lost_column, positions in lost_by_column if lost_column == column]
        if position_arrays:
            positions = np.concatenate(position_arrays)
            yield from _lost_endpoint_rows(
                fragment, column, edge_rows.take(pa.array(positions)), fragment.positions[positions]
            )


def _make_report_task(lookup: EndpointLookup, table_keys: Sequence[TableKey]) -> Any:
    """Return a Spark function that finds the endpoints of reported edges that have no node."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for type_number in pc.unique(batch.column("type")).to_pylist():
                type_batch = batch.filter(pc.equal(batch.column("type"), type_number))
                yield from _lost_in_table(lookup, table_keys[type_number], pa.Table.from_batches([type_batch]))

    return run


def _lost_in_table(lookup: EndpointLookup, edge_key: TableKey, edge_rows: pa.Table) -> Batches:
    for column, node_key in lookup.endpoint_columns[edge_key]:
        positions = lookup.find_lost(node_key, lookup.open_index(node_key), as_single_array(edge_rows[column]))
        lost_rows = edge_rows.take(pa.array(positions))
        constant_columns = {"edge": [edge_key] * len(positions), "side": [column] * len(positions)}
        for column_name in ("edge", "side"):
            lost_rows = lost_rows.append_column(column_name, pa.array(constant_columns[column_name], pa.string()))
        yield from (lost_rows.select(LOST_ENDPOINT_SCHEMA.names).cast(LOST_ENDPOINT_SCHEMA).to_batches())


def _repeated_type_row(node_key: TableKey) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"edge": node_key}], schema=LOST_ENDPOINT_SCHEMA)


def _lost_endpoint_rows(fragment: StagedFragment, column: str, edge_rows: pa.Table, positions: Any) -> Batches:
    row_count = edge_rows.num_rows
    arrays_by_name = {
        "edge": pa.array([fragment.table_key] * row_count),
        "side": pa.array([column] * row_count),
        "id": pa.nulls(row_count, pa.string()) if fragment.ids_generated else edge_rows["id"],
        "src": edge_rows["src"],
        "dst": edge_rows["dst"],
        "spot": pa.array(positions),
    }
    yield from pa.table(arrays_by_name).cast(LOST_ENDPOINT_SCHEMA).to_batches()


def endpoint_columns_of(edge_type: EdgeType) -> list[tuple[str, TableKey]]:
    """Return the two endpoint columns of an edge type, each with the key of the node type it refers to."""
    return [(column, node_key) for _, column, node_key in endpoint_columns(edge_type)]
