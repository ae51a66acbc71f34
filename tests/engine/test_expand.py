"""Expansions equal a reference search on dictionaries."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.operators.expand import expand
from omnigraph.engine.operators.rows import Rows, VariableBinding
from omnigraph.engine.query_limits import QueryLimits
from omnigraph.errors import ResourceLimitExceeded
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey
from tests.engine.unchecked_graph import Pair, SmallGraph, Ungated, small_graph

PEOPLE = ["a", "b", "c", "d", "e"]
EDGES = {"edge:Knows": "Knows", "edge:Likes": "Likes"}


def pairs() -> st.SearchStrategy[list[Pair]]:
    name = st.sampled_from([*PEOPLE, "nobody"])
    return st.lists(st.tuples(name, name), max_size=14)


def expand_op(steps: tuple[plan.PlanStep, ...], low: int = 1, high: int = 1, edge: str | None = None) -> plan.Expand:
    return plan.Expand("p", "q", steps, "Person", low, high, edge_variable=edge)


class Model:
    """The same graph as lists of pairs."""

    def __init__(self, edges: dict[str, list[Pair]]) -> None:
        self.edges = {name: [one for one in ends if "nobody" not in one] for name, ends in edges.items()}

    def walked(self, step: plan.PlanStep) -> Iterator[Pair]:
        for one, other in self.edges[step.edge_type]:
            if step.direction in ("out", "both"):
                yield one, other
            if step.direction in ("in", "both"):
                yield other, one

    def neighbors(self, steps: tuple[plan.PlanStep, ...], node: str) -> set[str]:
        return {to for step in steps for one, to in self.walked(step) if one == node}

    def reached(self, op: plan.Expand, start: str) -> set[str]:
        found, seen, frontier = set(), {start}, {start}
        for distance in range(1, op.max_hops + 1):
            following: set[str] = set()
            for node in frontier:
                near = self.neighbors(op.steps, node)
                if node in near and distance >= op.min_hops:
                    found.add(node)
                following |= near - seen
            seen |= following
            frontier = following
            if distance >= op.min_hops:
                found |= following
        return found

    def by_edge(self, steps: tuple[plan.PlanStep, ...], node: str) -> list[tuple[str, str]]:
        found = []
        for step in steps:
            for one, other in self.edges[step.edge_type]:
                if step.direction != "in" and one == node:
                    found.append((step.edge_type, other))
                elif step.direction != "out" and other == node:
                    found.append((step.edge_type, one))
        return sorted(found)


def start_rows(context: ExecutionContext, ids: dict[str, int], starts: list[str | None]) -> Rows:
    known = [-1 if one is None else ids[one] for one in starts]
    return Rows.from_bindings({"p": VariableBinding((TableKey("node:Person"),), np.array(known, np.int64))})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> SmallGraph:
    made = small_graph(tmp_path_factory.mktemp("graph") / "g")
    made.nodes(TableKey("node:Person"), ["x", "a", "b"])
    made.nodes(TableKey("node:Person"), ["c", "d", "e"])
    made.delete(TableKey("node:Person"), ["x"])
    return made


def set_edges(graph: SmallGraph, edges: dict[str, list[Pair]]) -> None:
    for name, ends in edges.items():
        graph.overwrite(
            TableKey(f"edge:{name}"),
            {
                "id": [f"{name}{at}" for at in range(len(ends))],
                "src": [one for one, _ in ends],
                "dst": [one for _, one in ends],
            },
        )


DIRECTIONS: list[plan.Direction] = ["out", "in", "both"]
STEPS = st.one_of(
    st.sampled_from(DIRECTIONS).map(lambda d: (plan.PlanStep("Knows", d),)),
    st.sampled_from(DIRECTIONS).map(lambda d: (plan.PlanStep("Knows", d), plan.PlanStep("Likes", d))),
)
STARTS = st.lists(st.sampled_from([*PEOPLE, None]), max_size=8)


@pytest.mark.parametrize("mode", ["csr", "indexed"])
@settings(max_examples=settings().max_examples // 2)
@given(edges=st.fixed_dictionaries({"Knows": pairs(), "Likes": pairs()}), steps=STEPS, starts=STARTS, data=st.data())
def test_expansion_equals_a_reference_search(
    graph: SmallGraph,
    mode: str,
    edges: dict[str, list[Pair]],
    steps: tuple[plan.PlanStep, ...],
    starts: list[str | None],
    data: st.DataObject,
) -> None:
    set_edges(graph, edges)
    model = Model(edges)
    low = data.draw(st.integers(1, 3))
    op = expand_op(steps, low, low + data.draw(st.integers(0, 3)))
    by_edge = expand_op(steps, edge="w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
        context = graph.context()
        names = graph.ids("node:Person")
        rows = start_rows(context, {name: row for row, name in names.items()}, starts)
        found = expand(context, rows, op)
        with_edges = expand(context, rows, by_edge)

    def start_of(row: int) -> str | None:
        return names.get(row)

    got = sorted(
        (str(start_of(p)), names[q])
        for p, q in zip(found["p"].row_ids.tolist(), found["q"].row_ids.tolist(), strict=True)
    )
    want = sorted((one, other) for one in starts if one is not None for other in model.reached(op, one))
    assert got == want
    assert edge_rows(graph, with_edges, names) == sorted(
        (one, kind, other) for one in starts if one is not None for kind, other in model.by_edge(steps, one)
    )


def edge_rows(graph: SmallGraph, rows: Rows, names: dict[int, str]) -> list[tuple[str, str, str]]:
    """(start, edge type, end) of every row; the edge row must join the two."""
    edge, found = rows["w"], []
    tables = {key: ends_of(graph, key) for key in edge.table_keys}
    kinds = edge.type_indexes if edge.type_indexes is not None else np.zeros(len(edge.row_ids), np.int16)
    for p, q, row, kind in zip(rows["p"].row_ids, rows["q"].row_ids, edge.row_ids, kinds, strict=True):
        key = edge.table_keys[kind]
        assert {names[p], names[q]} == set(tables[key][row])
        found.append((names[p], key.removeprefix("edge:"), names[q]))
    return sorted(found)


def ends_of(graph: SmallGraph, key: str) -> dict[int, Pair]:
    found = graph.table(key).dataset.to_table(columns=["src", "dst"], with_row_id=True)
    ends = zip(found["src"].to_pylist(), found["dst"].to_pylist(), strict=True)
    return dict(zip(found["_rowid"].to_pylist(), ends, strict=True))


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_edges_between_two_types_do_not_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    graph = small_graph(tmp_path / "g")
    graph.nodes("node:Person", ["a", "b"])
    graph.nodes("node:Firm", ["f", "a"])
    graph.edges("edge:WorksAt", [("a", "f"), ("b", "a"), ("b", "f")])
    context = graph.context()
    firms = graph.ids("node:Firm")
    rows = Rows.from_bindings({"p": VariableBinding((TableKey("node:Person"),), np.array([0, 1], np.int64))})
    step = (plan.PlanStep("WorksAt", "out"),)
    one = expand(context, rows, plan.Expand("p", "q", step, "Firm", 1, 3))
    pairs = zip(one["p"].row_ids.tolist(), one["q"].row_ids.tolist(), strict=True)
    assert sorted((p, firms[q]) for p, q in pairs) == [(0, "f"), (1, "a"), (1, "f")]
    assert expand(context, rows, plan.Expand("p", "q", step, "Firm", 2, 3)).count == 0
    # A row of another type reaches nothing, though its number may be that of a person.
    mixed = VariableBinding(
        (TableKey("node:Firm"), TableKey("node:Person")), np.array([0, 0]), np.array([0, 1], np.int16)
    )
    found = expand(context, Rows.from_bindings({"p": mixed}), plan.Expand("p", None, step, "Firm"))
    assert found["p"].type_indexes is not None
    assert found["p"].type_indexes.tolist() == [1]


def test_oversized_expansion_is_rejected_before_it_is_built(tmp_path: Path) -> None:
    graph = small_graph(tmp_path / "g")
    many = [f"n{at}" for at in range(300)]
    graph.nodes("node:Person", many)
    graph.edges("edge:Knows", [("n0", one) for one in many])
    context = graph.context(meter=Ungated(QueryLimits(memory=200_000)))
    hub = Rows.from_bindings({"p": VariableBinding((TableKey("node:Person"),), np.zeros(100, np.int64))})
    with pytest.raises(ResourceLimitExceeded):
        expand(context, hub, expand_op((plan.PlanStep("Knows", "out"),)))
