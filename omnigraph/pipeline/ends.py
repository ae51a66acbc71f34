"""Look up the endpoints of loaded edges among all ids of their node types, without moving edges.

Executors look every endpoint up in an index of the ids, which each machine builds once and maps
into memory. Only endpoints without a node are returned. Node types with records that were not
written to fragments are left to `check`.
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

from omnigraph.lang.schema.catalog import Edge
from omnigraph.rules.delta import flat
from omnigraph.rules.endpoints import ends_of
from omnigraph.storage.find import batches as stored_batches
from omnigraph.storage.find import find

from .known import Known, known
from .place import Place
from .session import parallelism
from .staged import Batches, Fragment, over_staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DDL = "edge string, side string, id string, src string, dst string, spot bigint"
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("edge", "side", "id", "src", "dst")] + [("spot", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class Nodes:
    """Where the ids of a node type are: in fragments of the load, and among stored rows."""

    key: str
    staged: Sequence[Fragment]
    stored: int  # number of stored ids that belong in the index
    asked: bool  # whether stored ids are looked up in the table instead


@dataclass(frozen=True, slots=True)
class Ends:
    """What a task needs to look up endpoints.

    `endpoint_columns` maps an edge key to its endpoint columns and the node key of each.
    """

    load: str
    place: Place
    nodes: Mapping[str, Nodes]
    sides: Mapping[str, Sequence[tuple[str, str]]]

    def index(self, key: str) -> Known:
        """Open the index of a node type's ids on this machine, building it if needed."""
        of = self.nodes[key]
        count = of.stored + sum(one.rows for one in of.staged)
        folder = scratch(self.load) / key.replace(":", "-")
        return known(folder, count, lambda: _ids(self.place, of))

    def lost(self, key: str, index: Known, column: pa.Array) -> Any:
        """Return the positions of endpoints that no node has."""
        places = index.unknown(column)
        if not len(places) or not self.nodes[key].asked:
            return places
        named = column.take(pa.array(places))
        there = find(self.place.table(key), {"id": named.unique()}, ["id"])["id"]
        absent = pc.invert(pc.is_in(named, value_set=flat(there)))
        return places[absent.to_numpy(zero_copy_only=False)]


def scratch(load: str) -> Path:
    """Return this machine's folder for one load; on a worker, Spark removes it at exit anyway."""
    from pyspark import SparkFiles, TaskContext

    on_worker = TaskContext.get() is not None
    root = SparkFiles.getRootDirectory() if on_worker else tempfile.gettempdir()
    return Path(root, f"omnigraph-{load}")


def _ids(place: Place, of: Nodes) -> Iterator[pa.Array]:
    for one in of.staged:
        for batch in one.read(place, ["id"]):
            yield batch.column(0)
    if of.stored:
        for batch in stored_batches(place.table(of.key), ["id"]):
            yield batch.column("id")


def lost_ends(
    spark: "SparkSession",
    ends: Ends,
    keys: Sequence[str],
    edges: Sequence[Fragment],
    noted: "DataFrame | None",
) -> tuple[list[dict[str, Any]], frozenset[str]]:
    """Return every endpoint without a node, and the node types that may contain an id twice.

    `edge_fragments` are the staged fragments of edges; `reported_edges` are the other edge records,
    whose column `type` is the index of a table key.
    """
    found: DataFrame = over_staged(spark, edges, lambda one: _of_fragment(ends, one), DDL)
    if noted is not None:
        found = found.unionAll(noted.mapInArrow(_of_notes(ends, keys), DDL))
    rows = found.toArrow().to_pylist()
    repeated = frozenset(one["edge"] for one in rows if one["side"] is None)
    return [one for one in rows if one["side"] is not None], repeated


def forget(spark: "SparkSession", load: str) -> None:
    """Remove the indexes that executors built for a load."""

    def run(batches: Batches) -> Batches:
        for _ in batches:
            shutil.rmtree(scratch(load), ignore_errors=True)
        yield from ()

    count = parallelism(spark)
    spark.range(0, count, 1, count).mapInArrow(run, "n int").count()


def _of_fragment(ends: Ends, one: Fragment) -> Batches:
    """Lost endpoints of a fragment; its ids are read only if there are any."""
    lost: list[tuple[str, Any]] = []
    indexes = {key: ends.index(key) for _, key in ends.sides[one.key]}
    yield from (_told(key) for key, index in indexes.items() if index.repeats)
    start = 0
    for batch in one.read(ends.place, ["src", "dst"]):
        for side, key in ends.sides[one.key]:
            places = ends.lost(key, indexes[key], batch.column(side))
            if len(places):
                lost.append((side, start + places))
        start += batch.num_rows
    if not lost:
        return
    rows = pa.Table.from_batches(list(one.read(ends.place, ["id", "src", "dst"])))
    for side in ("src", "dst"):
        named = [places for which, places in lost if which == side]
        if named:
            places = np.concatenate(named)
            yield from _shown(one, side, rows.take(pa.array(places)), one.spots[places])


def _of_notes(ends: Ends, keys: Sequence[str]) -> Any:
    """Make the Spark function that finds lost endpoints of reported edges."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in pc.unique(batch.column("type")).to_pylist():
                some = batch.filter(pc.equal(batch.column("type"), number))
                yield from _of_some(ends, keys[number], pa.Table.from_batches([some]))

    return run


def _of_some(ends: Ends, edge: str, rows: pa.Table) -> Batches:
    for side, key in ends.sides[edge]:
        places = ends.lost(key, ends.index(key), flat(rows[side]))
        lost = rows.take(pa.array(places))
        named = {"edge": [edge] * len(places), "side": [side] * len(places)}
        for name in ("edge", "side"):
            lost = lost.append_column(name, pa.array(named[name], pa.string()))
        yield from lost.select(SCHEMA.names).cast(SCHEMA).to_batches()


def _told(key: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"edge": key}], schema=SCHEMA)


def _shown(one: Fragment, side: str, rows: pa.Table, spots: Any) -> Batches:
    count = rows.num_rows
    columns = {
        "edge": pa.array([one.key] * count),
        "side": pa.array([side] * count),
        "id": pa.nulls(count, pa.string()) if one.made else rows["id"],
        "src": rows["src"],
        "dst": rows["dst"],
        "spot": pa.array(spots),
    }
    yield from pa.table(columns).cast(SCHEMA).to_batches()


def sides_of(edge: Edge) -> list[tuple[str, str]]:
    """Both endpoints of an edge type: the column, and the key of the node type it refers to."""
    return [(side, to) for _, side, to in ends_of(edge)]
