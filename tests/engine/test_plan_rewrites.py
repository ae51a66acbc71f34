"""Plans rewritten for speed return the same rows, and are in fact rewritten."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.engine import passes
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.physical_operators import (
    DistinctExpand,
    DistinctValueScan,
    EdgeExists,
    NoNeighbor,
    WeightByDegree,
)
from omnigraph.engine.query_caches import QueryCaches
from omnigraph.engine.run_query import execute_plan
from omnigraph.lang.query import compile_query
from omnigraph.lang.query.plan import ReadPlan
from tests.engine.unchecked_graph import SmallGraph, Ungated, small_graph

PEOPLE = [f"p{at:02}" for at in range(12)]
QUERIES: dict[str, tuple[str, set[type]]] = {
    "all two-paths": ("$a: Person $a knows $b $b knows $c } return { count($c) as n", {WeightByDegree}),
    "neighbors": ("$a: Person $a knows $_ } return { count($a) as n", {WeightByDegree}),
    "rows of two-paths": ("$a: Person $a knows $b $b knows $c } return { count(*) as n", {WeightByDegree}),
    "having counts rows": (
        "$a: Person $a knows $b $b likes $c } return { $b.age as age } having { count($c) > 1 or count(*) = 0 } "
        "order { age",
        {WeightByDegree},
    ),
    "having looks at nodes": (
        "$a: Person $a knows $b } return { count(*) as n } having { max($b.age) >= 0 and 0 < count(distinct $b)",
        {WeightByDegree},
    ),
    "having looks at which nodes": (
        "$a: Person { age: 1 } $a knows $b $b knows $c } return { min($c.age) as n } having { 0 < count(distinct $c)",
        {DistinctExpand},
    ),
    "having counts what is not distinct": (
        "$a: Person { age: 1 } $a knows $b $b knows $c } return { min($c.age) as n } having { 2 < count($c)",
        set(),
    ),
    "having by value": (
        "$a: Person } return { $a.age as age } having { count(*) > 1 } order { age",
        {DistinctValueScan},
    ),
    "by age": (
        "$a: Person $a knows $b $b likes $c } return { $b.age as age, count($c) as n } order { age",
        {WeightByDegree},
    ),
    "a filter keeps its rows": ("$a: Person $a knows $b $b.age > 2 } return { count($b) as n", {WeightByDegree}),
    "alternation": ("$a: Person $a knows|likes $b } return { count($b) as n", {WeightByDegree}),
    "either way": ("$a: Person $a <knows> $b } return { count($b) as n, count($a) as m", {WeightByDegree}),
    "a star": ("$a: Person $a knows $b $a likes $c $d knows $a } return { count($d) as n", {WeightByDegree}),
    "distinct is looked at": (
        "$a: Person $a knows $b $b likes $c } return { count(distinct $b) as n, count($c) as m",
        {WeightByDegree},
    ),
    "triangles": ("$a: Person $a knows $b $b knows $c $c knows $a } return { count($c) as n", {EdgeExists}),
    "mutual": ("$a: Person $a knows $b $b likes|knows $a } return { $a.id as x, $b.id as y", {EdgeExists}),
    "not linked": ("$a: Person $b: Person not { $a <knows> $b } } return { $a.id as x, $b.id as y", {EdgeExists}),
    "nobody": ("$a: Person not { $a knows $_ } } return { $a.id as x", {NoNeighbor}),
    "nobody, in many steps": ("$a: Person not { $a knows{1,3} $_ } } return { $a.id as x", {NoNeighbor}),
    "two steps are not one": ("$a: Person not { $a knows{2,3} $_ } } return { $a.id as x", set()),
    "in an optional": (
        "$a: Person optional { $a knows $b $b likes $c $c knows $a } } return { $a.id as x, $c.id as y",
        {EdgeExists},
    ),
    "which nodes, not how often": (
        "$a: Person { age: 1 } $a knows $b $b knows $c } return { count(distinct $c) as n",
        {DistinctExpand},
    ),
    "which nodes, over alternations and bounds": (
        "$a: Person { age: 2 } $a knows|likes $b $b <knows> $c $c likes{1,2} $d $d.age >= 1 } "
        "return { count(distinct $d) as n, min($d.age) as low, max($d.id) as high",
        {DistinctExpand},
    ),
    "an average knows how often": ("$a: Person { age: 1 } $a knows $b $b knows $c } return { avg($c.age) as m", set()),
    "two variables are pairs": (
        "$a: Person $a knows $b $b knows $c } return { count(distinct $b) as n, count(distinct $c) as m",
        {WeightByDegree},
    ),
    "groups of values": (
        "$a: Person $a.age >= 1 } return { $a.age as age, count($a) as n, sum($a.age) as s } order { age",
        {DistinctValueScan},
    ),
    "values without groups": (
        "$a: Person } return { count($a.age) as n, min($a.age) as low, avg($a.age) as mean",
        {DistinctValueScan},
    ),
}


def kinds(operators: Any) -> set[type]:
    found = {type(one) for one in operators}
    return found.union(*(kinds(one.inner) for one in operators if hasattr(one, "inner")))


def answer(graph: SmallGraph, context: ExecutionContext, query: str, *, quick: bool) -> tuple[Any, set[type]]:
    ir = context.snapshot.schema.ir
    end = "" if query[-1].isdigit() else " }"
    compiled = compile_query(f"query q() {{ match {{ {query}{end} }}", context.catalog)
    what = compiled.plan
    assert isinstance(what, ReadPlan)
    what = passes.rewrite_plan(what, ir) if quick else what
    return execute_plan(context, what).to_pylist(), kinds(what.operators)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> SmallGraph:
    made = small_graph(tmp_path_factory.mktemp("shortcuts") / "g")
    made.append("node:Person", {"id": PEOPLE, "age": [None, *([0, 1, 2, 3] * 3)[:11]]})
    made.delete("node:Person", [PEOPLE[3]])
    return made


name = st.sampled_from([one for one in PEOPLE if one != PEOPLE[3]])
PAIRS = st.lists(st.tuples(name, name), max_size=25)


@settings(max_examples=settings().max_examples // 5)
@given(knows=PAIRS, likes=PAIRS)
def test_rewritten_plans_return_the_same_rows(
    graph: SmallGraph, knows: list[tuple[str, str]], likes: list[tuple[str, str]]
) -> None:
    for key, ends in (("edge:Knows", knows), ("edge:Likes", likes)):
        graph.overwrite(
            key,
            {
                "id": [f"e{at}" for at in range(len(ends))],
                "src": [one for one, _ in ends],
                "dst": [one for _, one in ends],
            },
        )
    context = graph.context()
    for title, (query, wanted) in QUERIES.items():
        slow, _ = answer(graph, context, query, quick=False)
        quick, made = answer(graph, context, query, quick=True)
        assert quick == slow, title
        assert wanted <= made, title
        assert wanted or not made & {WeightByDegree, EdgeExists, NoNeighbor}, title
        assert (DistinctExpand in wanted) == (DistinctExpand in made), title


def test_cached_columns_return_the_same_rows(tmp_path: Path) -> None:
    graph = small_graph(tmp_path / "g")
    ids = [f"n{at:04}" for at in np.random.default_rng(1).permutation(3000)]
    graph.append("node:Person", {"id": ids, "age": [at % 5 or None for at in range(3000)]})
    graph.delete("node:Person", ids[:7])
    graph.update("node:Person", ids[10:13], {"age": [77, None, 3]})
    graph.edges("edge:Knows", list(zip(ids[10:600], ids[20:610], strict=True)))
    queries = [
        "$a: Person $a.age = 77 } return { $a.id as x",
        "$a: Person } return { $a.age as age, count($a) as n } order { age",
        "$a: Person } return { $a.id as x, $a.age as age } order { $a.age desc } limit 20",
        "$a: Person $a knows $b $b.age > 2 } return { $a.id as x, $b.age as y",
    ]
    cold = [answer(graph, graph.context(), one, quick=True)[0] for one in queries]
    caches = QueryCaches()
    for _ in range(3):
        warm = [answer(graph, graph.context(caches), one, quick=True)[0] for one in queries]
        assert warm == cold
    kept = {key[3] for key in caches.memory.recent_keys() if isinstance(key, tuple)}
    assert {"rows", "column", "ranks", "folded"} <= kept
    graph.update("node:Person", ids[20:21], {"age": [78]})
    assert answer(graph, graph.context(caches), queries[0].replace("77", "78"), quick=True)[0] == [{"x": ids[20]}]


def test_count_that_overflows_is_rejected(tmp_path: Path) -> None:
    from omnigraph.engine.query_limits import QueryLimits
    from omnigraph.errors import ResourceLimitExceeded

    graph = small_graph(tmp_path / "g")
    many = [f"n{at:03}" for at in range(200)]
    graph.nodes("node:Person", many)
    graph.edges("edge:Knows", [(one, other) for one in many for other in many])
    context = graph.context(meter=Ungated(QueryLimits(memory=100_000_000)))
    steps = " ".join(f"$a knows $b{at}" for at in range(10))
    with pytest.raises(ResourceLimitExceeded):
        answer(graph, context, f"$a: Person {steps} }} return {{ count($a) as n", quick=True)
    steps = " ".join(f"$a knows $b{at}" for at in range(7))
    found, _ = answer(graph, context, f"$a: Person {steps} }} return {{ count($a) as n", quick=True)
    assert found == [{"n": 200**8}]


def test_end_of_a_path_is_looked_up_by_its_key(tmp_path: Path) -> None:
    graph = omnigraph.init(
        tmp_path / "g", "node P { name: String @key  age: I32? } edge Knows: P -> P", durability="os"
    )
    lines = [f'{{"type": "P", "data": {{"name": "{name}", "age": 1}}}}' for name in "abcd"]
    lines += [f'{{"edge": "Knows", "from": "{source}", "to": "{target}"}}' for source, target in ("ab", "bc", "ac")]
    graph.load("\n".join(lines).encode(), mode="append")
    path = "$p = any shortest $a knows{0,4} $b } return { $a.name, $b.name, length($p) as n }"
    for end, rows in (
        ('name: "c"', [("a", "c", 1)]),
        ('name: "c", age: 2', []),
        ('name: "d"', []),
        ('name: "a"', [("a", "a", 0)]),
        ('name: "nobody"', []),
    ):
        query = f'match {{ $a: P {{ name: "a" }}  $b: P {{ {end} }}  {path}'
        assert graph.query(query).to_records() == rows, end
        assert "look up $b: P by name" in str(graph.explain(query)), end
    optional = f'match {{ $a: P  optional {{ $b: P {{ name: "c" }}  {path.replace("} return", "} } return")}'
    assert graph.query(optional).to_records() == [("a", "c", 1), ("b", "c", 1), ("c", "c", 0), ("d", None, None)]
