"""Path searches respect the limits of a query, stream their rows, and are explained."""

from pathlib import Path

import pytest

from omnigraph.engine.explain import explain
from omnigraph.engine.operators import find_paths
from omnigraph.engine.query_limits import QueryLimits
from omnigraph.engine.run_query import stream_read
from omnigraph.errors import QueryTimeout, ResourceLimitExceeded
from omnigraph.lang.query import compile_query
from tests.engine.stored_graph import Small

SCHEMA = "node N { k: String @key }  edge E: N -> N { w: F64? }"
SIZE = 12
COUNT = "match { $a: N } return { count($a) as n }"


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """Every node has an edge to every node."""
    names = [f"n{number:02}" for number in range(SIZE)]
    edges = [{"id": f"{a}{b}", "src": a, "dst": b, "w": 1.0} for a in names for b in names]
    root: Path = tmp_path_factory.mktemp("limits") / "graph"
    return Small(root, SCHEMA, {"node:N": [{"id": name, "k": name} for name in names], "edge:E": edges})


@pytest.mark.parametrize("mode", ["walk", "trail", "acyclic", "simple"])
def test_too_many_paths_exceed_the_memory_limit_and_the_graph_stays_usable(complete: Small, mode: str) -> None:
    text = f'match {{ $a: N {{ k: "n00" }}  $p = {mode} $a e{{1,11}} $b }} return {{ count($p) as n }}'
    with pytest.raises(ResourceLimitExceeded):
        complete.run(text, QueryLimits(memory=16 << 20))
    assert complete.rows(COUNT) == [(SIZE,)]


def test_a_search_that_takes_too_long_ends(complete: Small) -> None:
    text = 'match { $a: N { k: "n00" }  $p = walk $a e{1,1000} $b } return { count($p) as n }'
    complete.rows(text.replace("1000", "1"))
    with pytest.raises(QueryTimeout):
        complete.run(text, QueryLimits(timeout=0.05, memory=1 << 40))
    assert complete.rows(COUNT) == [(SIZE,)]


def test_starts_are_searched_in_batches_without_adding_up_their_memory(
    complete: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "match { $a: N  $p = any shortest $a $e:e{1,3} $b by $e.w } return { $a.k, $b.k, nodes($p), cost($p) }"
    whole = complete.rows(text)
    monkeypatch.setattr(find_paths, "_MAX_PLACES", 1)
    assert complete.rows(text) == whole
    assert len(whole) == SIZE * (SIZE - 1)


def test_paths_are_streamed_with_their_values(complete: Small) -> None:
    text = "match { $a: N  $p = any shortest $a e{1,3} $b } return { $b.k, length($p), edges($p), $p }"
    query = compile_query(f"query q() {{ {text} }}", complete.snapshot.schema.ir.catalog)
    _, batches = stream_read(complete.snapshot, query, {})
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert len(rows) == SIZE * (SIZE - 1)
    assert all(row["length(p)"] == 1 and row["p"]["nodes"][1]["id"] == row["b.k"] for row in rows)


def test_explain_shows_the_search(complete: Small) -> None:
    text = "match { $a: N  $p = any shortest $a $e:e{1,3} $b where $e.w > 0 by $e.w } return { $p }"
    query = compile_query(f"query q() {{ {text} }}", complete.snapshot.schema.ir.catalog)
    plan = explain(complete.snapshot, query, {}, analyze=True)
    (step,) = [step for step in plan.steps if "paths" in step.description]
    assert step.description == "paths $p = any shortest $a -E-> {1,3} $b: N where $e.w > 0 by $e.w"
    assert step.stats is not None
    assert step.stats.rows == SIZE * (SIZE - 1)


@pytest.mark.parametrize(("by", "value"), [("", "length($p)"), (" by $e.w", "cost($p)")])
def test_the_length_or_cost_of_a_path_needs_no_choice_between_paths(
    complete: Small, monkeypatch: pytest.MonkeyPatch, by: str, value: str
) -> None:
    """Choosing reads ids, so a path is chosen only if a query returns its nodes or edges."""

    def refuse(*_: object) -> None:
        raise AssertionError("a path was chosen")

    ends = '$a: N { k: "n00" }  $b: N { k: "n05" }'
    text = f"match {{ {ends}  $p = any shortest $a $e:e{{1,3}} $b{by} }} return {{ VALUE }}"
    assert complete.rows(text.replace("VALUE", "nodes($p), length($p)")) == [(["n00", "n05"], 1)]
    monkeypatch.setattr(find_paths, "choose_paths", refuse)
    assert complete.rows(text.replace("VALUE", value)) == [(1,)]
    with pytest.raises(AssertionError, match="a path was chosen"):
        complete.rows(text.replace("VALUE", "edges($p)"))
