"""Indexes through the public API: results are the same with and without them."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConstraintViolation

SCHEMA = """
node Item { code: String @key  n: I32? @index }
node Doc { name: String @key  v: Vector(2)? @index }
edge Near: Item -> Item
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA, durability="os")


def test_null_vectors_do_not_prevent_an_index(graph: Graph) -> None:
    graph.insert("Doc", *({"name": f"d{n}"} for n in range(20)))
    assert graph.maintenance.ensure_indices()
    nearest = "match { $d: Doc } return { $d.name } order { nearest($d.v, [1.0, 0.0]) } limit 3"
    assert graph.query(nearest).to_dicts() == []
    graph.upsert("Doc", {"name": "d3", "v": [0.9, 0.1]}, {"name": "d4", "v": [0.0, 1.0]})
    assert graph.maintenance.ensure_indices()
    assert [one["d.name"] for one in graph.query(nearest).to_dicts()] == ["d3", "d4"]


def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Lance does for every filter that it is given from now on."""
    seen: list[str] = []
    original = lance.LanceDataset.scanner

    def scanner(dataset: Any, *given: Any, **how: Any) -> Any:
        scan = original(dataset, *given, **how)
        if how.get("filter") is not None:
            seen.append(scan.explain_plan())
        return scan

    monkeypatch.setattr(lance.LanceDataset, "scanner", scanner)
    return seen


def test_comparison_with_a_wider_number_uses_the_index_exactly(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.insert("Item", *({"code": f"c{n}", "n": n} for n in range(500)))
    graph.maintenance.ensure_indices()
    seen = plans(monkeypatch)
    for given, kind in ((2, "I64"), (2, "I32")):
        asked = f"query q($n: {kind}) {{ match {{ $i: Item  $i.n = $n }} return {{ $i.code }} }}"
        assert graph.query(asked, n=given).scalar() == "c2"
    assert seen
    assert all("ScalarIndexQuery" in one for one in seen)
    broken = "query q($n: F64) { match { $i: Item  $i.n = $n } return { $i.code } }"
    assert graph.query(broken, n=2.7).to_dicts() == []
    assert graph.query(broken, n=2.0).scalar() == "c2"


def test_lookup_by_id_works_without_an_index(graph: Graph) -> None:
    codes = pa.array([f"c{n}" for n in range(20_000)])
    graph.load({"Item": pa.table({"code": codes, "n": pa.array(range(20_000), pa.int32())})}, mode="append")
    assert graph.refresh().table("Item").describe_indices() == []
    assert graph["Item", "c19999"].n == 19_999
    assert graph.node("Item", "c20000") is None
    asked = 'match { $i: Item  $i.id = "c777" } return { $i.n }'
    assert graph.query(asked).scalar() == 777


def test_edge_from_a_missing_node_is_rejected(graph: Graph) -> None:
    graph.insert("Item", {"code": "a"})
    with pytest.raises(ConstraintViolation) as refused:
        graph.load(b'{"edge":"Near","from":"ghost","to":"a"}', mode="append")
    assert "ghost" in str(refused.value)
    assert graph.node("Item", "ghost") is None
    assert len(list(graph.export())) == 1
