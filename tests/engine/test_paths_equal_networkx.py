"""Paths are those that networkx finds, on random graphs with loops, parallel edges and unreachable nodes.

All graphs of a batch are parts of one stored graph, so that a query answers for all of them at once.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from tests.rig.depth import repeats

networkx = pytest.importorskip("networkx")

SCHEMA = "node N { k: String @key }  edge E: N -> N { w: F64?  open: Bool? }"
BATCH = 200
Pair = tuple[str, str]
NodePath = tuple[str, ...]


def random_graph(dice: Random, name: str) -> Any:
    """A small directed graph; some edges have no weight, some are closed."""
    graph = networkx.MultiDiGraph()
    nodes = [f"{name}.{number}" for number in range(dice.randint(1, 8))]
    graph.add_nodes_from(nodes)
    for number in range(dice.randint(0, 2 * len(nodes))):
        weight = dice.choice([0.0, 0.5, 1.0, 1.0, 2.0, 3.25, 7.0])
        key = f"{name}-{number:02}"
        graph.add_edge(dice.choice(nodes), dice.choice(nodes), key=key, w=weight, open=dice.random() < 0.8)
    return graph


def stored(place: Path, parts: list[Any]) -> Graph:
    lines: list[dict[str, Any]] = [{"type": "N", "data": {"k": node}} for part in parts for node in part]
    for part in parts:
        for source, target, key, data in part.edges(keys=True, data=True):
            lines.append({"edge": "E", "from": source, "to": target, "data": {"id": key, **data}})
    graph = omnigraph.init(place, SCHEMA, durability="os")
    graph.load("".join(f"{json.dumps(line)}\n" for line in lines).encode(), mode="append")
    return graph


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, list[Any]]:
    parts = [random_graph(Random(number), f"g{number:04}") for number in range(BATCH)]
    return stored(tmp_path_factory.mktemp("paths") / "graph", parts), parts


def found(graph: Graph, path: str, more: str = "") -> dict[Pair, list[dict[str, Any]]]:
    """The rows of a path by its endpoints."""
    columns = f"$a.k as a, $b.k as b, nodes($p) as nodes, edges($p) as edges{more}"
    text = f"match {{ $a: N  $p = {path} }} return {{ {columns} }}"
    rows: dict[Pair, list[dict[str, Any]]] = defaultdict(list)
    for row in graph.query(text).to_dicts():
        rows[row["a"], row["b"]].append(row)
    return rows


def expected(parts: list[Any], paths_of: Callable[[Any], dict[Pair, Any]]) -> dict[Pair, Any]:
    return {pair: paths for part in parts for pair, paths in paths_of(part).items()}


def shortest_nodes(part: Any) -> dict[Pair, list[NodePath]]:
    """Every shortest path as nodes, to every node that can be reached."""
    reach = ((a, b) for a in part for b in networkx.descendants(part, a))
    plain = networkx.Graph(part) if not part.is_directed() else networkx.DiGraph(part)
    return {(a, b): sorted(map(tuple, networkx.all_shortest_paths(plain, a, b))) for a, b in reach}


def edge_choices(part: Any, nodes: NodePath) -> list[tuple[str, ...]]:
    """The edges that a path through these nodes may take."""
    return list(product(*(sorted(part[a][b]) for a, b in pairwise(nodes))))


def check_shortest(graph: Graph, parts: list[Any], edge: str) -> None:
    wanted = expected(parts, shortest_nodes)
    whole = networkx.compose_all(parts)
    one = found(graph, f"any shortest $a {edge}{{1,20}} $b")
    assert {pair: [tuple(row["nodes"]) for row in rows] for pair, rows in one.items()} == {
        pair: paths[:1] for pair, paths in wanted.items()
    }
    assert all(tuple(row["edges"]) == edge_choices(whole, row["nodes"])[0] for rows in one.values() for row in rows)
    every = found(graph, f"all shortest $a {edge}{{1,20}} $b")
    assert {pair: Counter((*row["nodes"], *row["edges"]) for row in rows) for pair, rows in every.items()} == {
        pair: Counter((*nodes, *edges) for nodes in paths for edges in edge_choices(whole, nodes))
        for pair, paths in wanted.items()
    }


def check_cheapest(graph: Graph, parts: list[Any]) -> None:
    rows = found(graph, "any shortest $a $e:e{0,20} $b by $e.w", ", cost($p) as cost")
    wanted = expected(parts, lambda part: _pairs(networkx.all_pairs_dijkstra_path_length(part, weight="w")))
    assert {pair: [row["cost"] for row in found_rows] for pair, found_rows in rows.items()} == {
        pair: [cost] for pair, cost in wanted.items()
    }
    weights = {key: data["w"] for part in parts for _, _, key, data in part.edges(keys=True, data=True)}
    assert all(sum(weights[key] for key in row["edges"]) == row["cost"] for one in rows.values() for row in one)


def _pairs(lengths: Any) -> dict[Pair, float]:
    return {(a, b): cost for a, costs in lengths for b, cost in costs.items()}


def check_acyclic(graph: Graph, parts: list[Any], hops: int) -> None:
    rows = found(graph, f"acyclic $a e{{1,{hops}}} $b")

    def paths_of(part: Any) -> dict[Pair, Counter[Any]]:
        pairs = ((a, b) for a in part for b in part if a != b)
        paths = ((pair, networkx.all_simple_edge_paths(part, *pair, cutoff=hops)) for pair in pairs)
        keys = (
            (pair, Counter(tuple(key for _, _, key in path) for path in found_paths)) for pair, found_paths in paths
        )
        return {pair: counted for pair, counted in keys if counted}

    assert {pair: Counter(tuple(row["edges"]) for row in one) for pair, one in rows.items()} == expected(
        parts, paths_of
    )


def check_all(graph: Graph, parts: list[Any]) -> None:
    check_shortest(graph, parts, "e")
    check_shortest(graph, [part.to_undirected() for part in parts], "<e>")
    check_cheapest(graph, parts)
    check_acyclic(graph, parts, 4)


def test_shortest_paths_are_those_of_networkx(batch: tuple[Graph, list[Any]]) -> None:
    check_shortest(*batch, "e")


def test_undirected_shortest_paths_are_those_of_networkx(batch: tuple[Graph, list[Any]]) -> None:
    graph, parts = batch
    check_shortest(graph, [part.to_undirected() for part in parts], "<e>")


def test_cheapest_paths_are_those_of_networkx(batch: tuple[Graph, list[Any]]) -> None:
    check_cheapest(*batch)


def test_acyclic_paths_are_those_of_networkx(batch: tuple[Graph, list[Any]]) -> None:
    check_acyclic(*batch, 4)


def test_paths_over_tested_edges_are_those_of_the_smaller_graph(batch: tuple[Graph, list[Any]]) -> None:
    graph, parts = batch
    opened = [
        networkx.subgraph_view(part, filter_edge=lambda a, b, key, part=part: part[a][b][key]["open"]) for part in parts
    ]
    rows = found(graph, "any shortest $a $e:e{1,20} $b where $e.open = true")
    wanted = expected(opened, shortest_nodes)
    assert {pair: [tuple(row["nodes"]) for row in one] for pair, one in rows.items()} == {
        pair: paths[:1] for pair, paths in wanted.items()
    }
    hops = graph.query("match { $a: N  $a $e:e{1,20} $b where $e.open = true  $a.id != $b.id } return { $a.k, $b.k }")
    assert {tuple(row) for row in hops.to_records()} == set(wanted)


@pytest.mark.parametrize(
    "path", ["any shortest $a e{0,9} $b", "all shortest $a <e>{0,9} $b", "any shortest $a $e:<e>{0,9} $b by $e.w"]
)
def test_paths_between_two_nodes_are_those_of_all_nodes(batch: tuple[Graph, list[Any]], path: str) -> None:
    """The search from both sides chooses the same paths as the one from the start."""
    graph, parts = batch
    every = found(graph, path)
    text = (
        f"match {{ $a: N {{ k: $from }}  $b: N {{ k: $to }}  $p = {path} }} return {{ nodes($p) as n, edges($p) as e }}"
    )
    for part in parts[::8]:
        first, last = min(part), max(part)
        pair = graph.query(f"query q($from: String, $to: String) {{ {text} }}", params={"from": first, "to": last})
        assert [(row["nodes"], row["edges"]) for row in every[first, last]] == [tuple(row) for row in pair.to_records()]


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(BATCH, 10 * BATCH, BATCH))
def test_many_paths_are_those_of_networkx(tmp_path: Path, first: int) -> None:
    parts = [random_graph(Random(number), f"g{number:04}") for number in range(first, first + BATCH)]
    check_all(stored(tmp_path / "graph", parts), parts)


def decimal_graph(dice: Random) -> Any:
    """A directed graph with decimal weights, whose sums depend on the order of additions."""
    part = networkx.MultiDiGraph()
    part.add_nodes_from(f"d{number}" for number in range(10))
    for number in range(24):
        ends = dice.sample(sorted(part), 2)
        part.add_edge(*ends, key=f"e{number:02}", w=dice.randint(1, 99) / 10)
    return part


def check_decimal_pairs(place: Path, number: int) -> None:
    """The cheapest path of every pair of nodes, each searched from both ends."""
    part = decimal_graph(Random(number))
    graph = stored(place / f"g{number}", [part])
    query = graph.prepare(
        "query q($a: String, $b: String) { match { $a1: N { k: $a }  $b1: N { k: $b }"
        "  $p = any shortest $a1 $e:e{1,20} $b1 by $e.w } return { cost($p) as cost, edges($p) as edges } }"
    )
    weights = {key: data["w"] for _, _, key, data in part.edges(keys=True, data=True)}
    for source, target in product(part, part):
        rows = query(a=source, b=target).to_dicts()
        if source != target and networkx.has_path(part, source, target):
            cost = networkx.dijkstra_path_length(part, source, target, weight="w")
            assert [row["cost"] for row in rows] == [pytest.approx(cost)], (number, source, target)
            assert sum(weights[key] for key in rows[0]["edges"]) == pytest.approx(cost)


def test_decimal_costs_equal_networkx(tmp_path: Path) -> None:
    for number in range(2):
        check_decimal_pairs(tmp_path, number)


@pytest.mark.full
def test_many_decimal_costs_equal_networkx(tmp_path: Path) -> None:
    for number in range(2, 2 + repeats(20)):
        check_decimal_pairs(tmp_path, number)
