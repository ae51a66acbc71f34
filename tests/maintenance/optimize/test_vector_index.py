"""Nearest neighbors are exact at any coverage of the vector index."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from omnigraph.api.graph import Graph
from omnigraph.engine.search import nearest
from omnigraph.storage import vector_index
from omnigraph.testing import graph as new_graph

WIDTH = 6
DEEP = pytest.mark.full
METRICS = ["cosine", *(pytest.param(one, marks=DEEP) for one in ("l2", "dot"))]
SCHEMA = """
node P {{ k: String @key  n: I64?  v: Vector(6)? @index(v, metric={metric}) }}
edge E: P -> P
"""


@pytest.fixture(autouse=True)
def seldom_simple(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many already."""
    monkeypatch.setattr(nearest, "COMPARE_ALL_MAX", 8)
    monkeypatch.setattr(nearest, "IN_MEMORY_MAX", 8)


@pytest.fixture
def proposals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many candidates each question to an index asked for."""
    asked: list[int] = []
    real = vector_index.nearest_candidates

    def counted(*given: Any) -> Any:
        asked.append(given[-1])
        return real(*given)

    monkeypatch.setattr(vector_index, "nearest_candidates", counted)
    return asked


def points(count: int, seed: int = 0) -> list[list[float] | None]:
    """Vectors of about length one, some of them twice, some missing."""
    chance = np.random.default_rng(seed)
    made = chance.normal(size=(count, WIDTH)) / WIDTH
    made[:: count // 5] = made[1]
    found: list[list[float] | None] = made.astype(np.float32).tolist()
    found[3] = None
    return found


def rows_of(some: Sequence[list[float] | None], start: int = 0) -> list[dict[str, Any]]:
    return [{"k": f"k{n:04}", "n": n % 5, "v": one} for n, one in enumerate(some, start)]


def ask(graph: Graph, point: list[float], limit: int = 7, where: str = "", offset: int = 0) -> list[tuple[str, float]]:
    text = f"""
    query q($v: Vector({WIDTH})) {{
        match {{ $p: P {where} }}
        return {{ $p.k as k, nearest($p.v, $v) as far }}
        order {{ nearest($p.v, $v) }} limit {limit} offset {offset}
    }}"""
    return [(one["k"], one["far"]) for one in graph.query(text, v=point)]


def simply(graph: Graph, *given: Any, **how: Any) -> list[tuple[str, float]]:
    """The same, from all vectors at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "COMPARE_ALL_MAX", 1 << 30)
        return ask(graph, *given, **how)


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"limit": 1},
    {"limit": 40},
    {"limit": 5, "offset": 3},
    {"where": "$p.n = 2"},
    {"where": "$p.n != 2", "limit": 30},
    {"limit": 10_000},
    {"limit": 0},
]


def looks(graph: Graph, questions: list[dict[str, Any]] = QUESTIONS) -> Iterator[Any]:
    """Each question from some points, by both ways."""
    for point in (one for one in points(10, seed=9)[:2] if one is not None):
        for how in questions:
            found = ask(graph, point, **how)
            assert found == simply(graph, point, **how), how
            yield found


@pytest.mark.parametrize(
    ("metric", "share"),
    [
        ("cosine", 50),
        ("l2", 100),
        ("dot", 0),
        *(pytest.param("cosine", share, marks=DEEP) for share in (0, 100)),
        *(pytest.param("l2", share, marks=DEEP) for share in (0, 50)),
        *(pytest.param("dot", share, marks=DEEP) for share in (50, 100)),
    ],
)
def test_nearest_results_do_not_depend_on_index_coverage(metric: str, share: int, proposals: list[int]) -> None:
    rows = rows_of(points(200))
    first = rows[: len(rows) * share // 100]
    with new_graph(SCHEMA.format(metric=metric)) as graph:
        if first:
            graph.load({"P": first}, mode="append")
            assert graph.maintenance.ensure_indices()
        if len(first) < len(rows):
            graph.load({"P": rows[len(first) :]}, mode="append")
        answers = list(looks(graph))
        with new_graph(SCHEMA.format(metric=metric), {"P": rows}) as plain:
            assert answers == list(looks(plain)), "what is indexed is not seen in an answer"
        assert bool(proposals) == bool(share)


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_written_after_the_index_are_found(metric: str, proposals: list[int]) -> None:
    with new_graph(SCHEMA.format(metric=metric), {"P": rows_of(points(150))}) as graph:
        graph.maintenance.ensure_indices()
        point = [0.3, 0.0, 0.0, 0.1, 0.0, 0.0]
        graph.delete("P", where="n = 1")
        graph.update("P", where="n = 4", set={"v": point})
        graph.update("P", where="n = 2", set={"v": None})
        graph.insert("P", {"k": "new", "v": point})
        list(looks(graph))
        far = ask(graph, point, limit=31)
        assert far == simply(graph, point, limit=31)
        if metric != "dot":
            assert all(one < 1e-7 for _, one in far)
            assert {"new", "k0004"} < {name for name, _ in far}
        assert proposals
        graph.maintenance.optimize()
        assert ask(graph, point, limit=31) == far
        assert not graph.maintenance.optimize()
        assert graph.maintenance.pending_indices() == []


@pytest.mark.parametrize("metric", METRICS)
def test_distances_equal_in_single_precision_are_ordered_exactly(metric: str, proposals: list[int]) -> None:
    """On a circle around the point, wherever the index believes they are."""
    turns = np.linspace(0, 2 * np.pi, 1500, endpoint=False)
    made = np.zeros((len(turns), WIDTH))
    made[:, 0], made[:, 1], made[:, 2] = 0.3 * np.cos(turns), 0.3 * np.sin(turns), 0.7
    point = [0.0, 0.0, 0.7, 0.0, 0.0, 0.0]
    rows = rows_of(made.astype(np.float32).tolist())
    with new_graph(SCHEMA.format(metric=metric), {"P": rows}) as graph:
        graph.maintenance.ensure_indices()
        assert ask(graph, point, limit=5) == simply(graph, point, limit=5)
        assert len(proposals) > 1, "the first candidates were not enough to be sure"


def test_distances_are_exact_with_large_offsets() -> None:
    chance = np.random.default_rng(4)
    made = (1000 + chance.normal(size=(400, WIDTH)) / 100).astype(np.float32).tolist()
    with new_graph(SCHEMA.format(metric="l2"), {"P": rows_of(made)}) as graph:
        graph.maintenance.ensure_indices()
        point = [1000.001] * WIDTH
        for limit in (1, 5, 20):
            assert ask(graph, point, limit=limit) == simply(graph, point, limit=limit)


@pytest.mark.parametrize(
    ("metric", "odd"),
    [
        ("cosine", [1e-25] * WIDTH),
        pytest.param("cosine", [1e25] * WIDTH, marks=DEEP),
        pytest.param("l2", [1e30] * WIDTH, marks=DEEP),
        pytest.param("dot", [9.0] * WIDTH, marks=DEEP),
        pytest.param("cosine", [0.0] * WIDTH, marks=DEEP),
    ],
)
def test_vectors_the_index_cannot_hold_are_still_found(metric: str, odd: list[float]) -> None:
    rows = rows_of([*points(60), odd, odd])
    with new_graph(SCHEMA.format(metric=metric), {"P": rows}) as graph:
        graph.maintenance.ensure_indices()
        waits = [why for _, name, why in graph.maintenance.pending_indices() if name == "v"]
        assert waits == ([] if not any(odd) else [vector_index.NOT_INDEXABLE])
        assert not graph.maintenance.ensure_indices(), "what waits is no work"
        list(looks(graph))
        for how in QUESTIONS:
            assert ask(graph, odd, **how) == simply(graph, odd, **how)
        graph.load({"P": rows_of(points(60, seed=2), start=500)}, mode="append")
        graph.maintenance.ensure_indices()
        list(looks(graph))
        graph.delete("P", where="k = 'k0060' or k = 'k0061'")
        graph.maintenance.optimize()
        assert graph.maintenance.pending_indices() == [], "what does not fit is gone"
        list(looks(graph))


def test_index_is_built_once_a_vector_exists() -> None:
    with new_graph(SCHEMA.format(metric="cosine")) as graph:
        told = [("node:P", "v", "there are no vectors to index yet")]
        assert graph.maintenance.pending_indices() == told
        graph.load({"P": rows_of([None] * 20)}, mode="append")
        done = graph.maintenance.optimize()
        (row,) = (one for one in done.datasets if one.type_key == "node:P")
        assert row.pending_indexes == (("v", told[0][2]),)
        assert graph.maintenance.pending_indices() == told
        assert not graph.maintenance.ensure_indices()
        graph.insert("P", {"k": "one", "v": [1.0] * WIDTH})
        assert graph.maintenance.ensure_indices()
        assert graph.maintenance.pending_indices() == []
        assert [name for name, far in ask(graph, [1.0] * WIDTH) if far < 1e-9] == ["one"]
        assert not graph.maintenance.ensure_indices()


def test_rows_reached_by_traversal_are_ranked(proposals: list[int]) -> None:
    with new_graph(SCHEMA.format(metric="l2"), {"P": rows_of(points(120))}) as graph:
        graph.connect_nodes("E", [("k0000", f"k{n:04}") for n in range(0, 120, 2)] * 2)
        graph.maintenance.ensure_indices()
        text = """
        query q($v: Vector(6)) {
            match { $a: P  $a e $p  $p.n != 3 }
            return { $a.k as a, $p.k as k, nearest($p.v, $v) as far }
            order { nearest($p.v, $v) } limit 9
        }"""
        point = [0.1] * WIDTH
        found = graph.query(text, v=point).to_dicts()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nearest, "COMPARE_ALL_MAX", 1 << 30)
            assert graph.query(text, v=point).to_dicts() == found
        assert len(found) == 9
        assert proposals


def test_explain_names_the_index() -> None:
    ordered = "return { $p.k } order { nearest($p.v, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) } limit 3"
    with new_graph(SCHEMA.format(metric="dot"), {"P": rows_of(points(30))}) as graph:
        assert "(index" not in str(graph.explain(f"match {{ $p: P }} {ordered}"))
        graph.maintenance.ensure_indices()
        assert "(index v_ivf_dot)" in str(graph.explain(f"match {{ $p: P }} {ordered}"))


def test_nearest_works_without_a_lost_index(monkeypatch: pytest.MonkeyPatch) -> None:
    with new_graph(SCHEMA.format(metric="l2"), {"P": rows_of(points(60))}) as graph:
        graph.maintenance.ensure_indices()
        monkeypatch.setattr(vector_index, "nearest_candidates", lambda *_: None)
        list(looks(graph))


def test_an_erased_vector_is_in_no_index(tmp_path: Any) -> None:
    with new_graph(SCHEMA.format(metric="l2"), {"P": rows_of(points(60))}) as graph:
        graph.maintenance.ensure_indices()
        (before,) = (one for one in graph.table("P").describe_indices() if one.name == "v_ivf_l2")
        graph.delete("P", where="k = 'k0007'")
        graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
        graph.refresh()
        (after,) = (one for one in graph.table("P").describe_indices() if one.name == "v_ivf_l2")
        old, new = ({str(one.uuid) for one in index.segments} for index in (before, after))
        assert not old & new
        list(looks(graph))
