"""Rows that were deleted, replaced or indexed before and after a schema change."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import PropertyValueError
from omnigraph.testing import graph as new_graph
from tests.evolve.cases import rows_of

BEFORE = "node A { k: I64 @key  n: I32? @index  s: String? }"


def records(count: int) -> dict[str, pa.Table]:
    keys = range(count)
    numbers = pa.array([None if n % 5 == 0 else n % 7 for n in keys], pa.int32())
    return {"A": pa.table({"k": list(keys), "n": numbers, "s": [f"s{n}" for n in keys]})}


@pytest.mark.parametrize("kind", ["I32", "I64"])
def test_nulls_in_deleted_rows_do_not_block_required_properties(kind: str) -> None:
    """They stay in their files, in columns that must have a value now."""
    with new_graph(BEFORE, records(40)) as graph:
        graph.delete("A", where="n is null")
        graph.schema.apply(BEFORE.replace("n: I32?", f'n: {kind}  d: String @default("x")'))
        rows = rows_of(graph)["node:A"]
        assert len(rows) == 32
        assert {row["d"] for row in rows.values()} == {"x"}
        graph.update("A", where="n = 3", set={"n": 1 << 30, "d": "y"})
        with pytest.raises(PropertyValueError):
            graph.load(b'{"type":"A","data":{"k":99,"n":null}}', mode="append")
        found = graph.query("match { $a: A  $a.n > 1000 } return { $a.d }").to_dicts()
        assert found == [{"a.d": "y"}] * len(found)
        assert found


def test_row_ids_are_kept() -> None:
    """Neighbors of a row are named by them, and by nothing else."""
    with new_graph(BEFORE, records(20)) as graph:
        before = graph.table("A").to_table(columns=["id"], with_row_id=True).to_pydict()
        graph.schema.apply(BEFORE.replace("n: I32?", 'm: I64? @rename_from("n")  d: I32 @default(1)'))
        assert graph.table("A").to_table(columns=["id"], with_row_id=True).to_pydict() == before


def _by_index(graph: Graph, column: str, value: object) -> list[str]:
    dataset = graph.table("A")
    test = pc.field(column) == pc.scalar(value)
    assert "ScalarIndexQuery" in dataset.scanner(filter=test).explain_plan()
    found = dataset.to_table(columns=["id"], filter=test)["id"].to_pylist()
    every = dataset.to_table(columns=["id", column])
    assert sorted(found) == sorted(every.filter(pc.equal(every[column], value))["id"].to_pylist())
    return sorted(found)


def test_indexes_of_unchanged_columns_stay_correct() -> None:
    with new_graph(BEFORE, records(60)) as graph:
        graph.maintenance.ensure_indices()
        found = _by_index(graph, "n", 3)
        after = 'node A { k: I64 @key  m: I32? @index @rename_from("n")  t: String? }'
        graph.schema.apply(after)
        assert _by_index(graph, "m", 3) == found
        graph.load({"A": [{"k": 1000, "m": 3}]}, mode="append")
        graph.update("A", where="k = 3", set={"m": 4})
        graph.delete("A", where="k = 10")
        now = _by_index(graph, "m", 3)
        assert set(now) == {*found, "1000"} - {"3", "10"}
        graph.maintenance.ensure_indices()
        assert _by_index(graph, "m", 3) == now


def _bytes(graph: Graph, part: str = "") -> int:
    return sum(
        os.path.getsize(Path(folder, name))  # noqa: PTH202 - quicker over many files
        for folder, _, names in os.walk(graph.uri)
        if part in folder
        for name in names
    )


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_adding_a_nullable_property_writes_no_data(count: int) -> None:
    with new_graph(BEFORE, records(count)) as graph:
        whole, data = _bytes(graph), _bytes(graph, "/data")
        graph.schema.apply(BEFORE.replace("s: String?", "s: String?  x: String?  v: Vector(64)?"))
        assert _bytes(graph, "/nodes") > 0
        assert _bytes(graph) - whole < 64_000
        tables = _bytes(graph, "nodes/")
        graph.schema.apply(BEFORE)
        assert _bytes(graph) - whole < 128_000
        assert _bytes(graph, "nodes/") - tables < 32_000
        # The state of the branch lies in files of its own, which are called data, too.
        assert _bytes(graph, "/data") - data < 32_000
