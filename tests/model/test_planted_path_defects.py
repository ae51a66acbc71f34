"""The oracle of paths catches planted defects of the engine, by random queries alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from omnigraph.engine.operators import (
    breadth_first,
    choose_paths,
    edge_tests,
    enumerate_paths,
    expand,
    find_paths,
    path_layers,
    path_table,
    shortest_between,
)
from omnigraph.engine.operators.edge_costs import EdgeCosts
from omnigraph.errors import OmnigraphError, TypeCheckError
from tests.model.expected_values import rows_shown
from tests.model.random_queries import Writer
from tests.model.test_random_queries import Shelf, compare

Patch = pytest.MonkeyPatch
SEEDS = 1000
GRAPHS = 3


def without_the_start(patch: Patch) -> None:
    """Zero hops reach nothing."""
    whole = breadth_first.walk_breadth_first

    def walk(context: Any, adjacencies: Any, starts: Any, low: int, high: int) -> Any:
        return whole(context, adjacencies, starts, max(low, 1), high)

    patch.setattr(expand, "walk_each_start", walk)
    patch.setattr(expand, "walk_breadth_first", walk)


def untested_edges(patch: Patch) -> None:
    """Every edge passes."""
    accept_all = lambda self, edges: np.ones(len(edges), np.bool_)  # noqa: E731
    patch.setattr(edge_tests.EdgeAcceptance, "__call__", accept_all)


def last_by_id(patch: Patch) -> None:
    """Of several shortest paths, the last by id is chosen."""
    patch.setattr(choose_paths, "id_order", lambda context, binding: -binding.row_ids)


def repeated_edges(patch: Patch) -> None:
    """A trail may repeat an edge."""
    _repeats_as(patch, "trail", "walk")


def open_ends(patch: Patch) -> None:
    """A simple path never comes back to its first node."""
    _repeats_as(patch, "simple", "acyclic")


def repeated_nodes(patch: Patch) -> None:
    """An acyclic path may repeat a node, but no edge."""
    _repeats_as(patch, "acyclic", "trail")


def _repeats_as(patch: Patch, mode: str, other: Any) -> None:
    repeats = enumerate_paths._repeats

    def repeated(asked: Any, *rest: Any) -> Any:
        return repeats(other if asked == mode else asked, *rest)

    patch.setattr(enumerate_paths, "_repeats", repeated)


def backward_paths(patch: Patch) -> None:
    """A path that is found from its last node stays turned round."""
    patch.setattr(path_table.PathBlock, "reversed", lambda self: self)


def equal_costs(patch: Patch) -> None:
    """Every edge costs the same."""
    patch.setattr(EdgeCosts, "__call__", lambda self, layer: np.ones(len(layer.edges)))


def one_parallel_edge(patch: Patch) -> None:
    """`all shortest` takes only the first of several edges between two nodes."""
    whole = path_layers.prune_layers

    def pruned(found: Any) -> Any:
        layers = [layer.take(np.unique(layer.targets, return_index=True)[1]) for layer in whole(found).layers]
        return path_layers.PathLayers(found.starts, layers, found.ends)

    patch.setattr(path_layers, "prune_layers", pruned)


def unbounded_below(patch: Patch) -> None:
    """Between two nodes, the lower bound is ignored."""
    between = shortest_between.search_shortest_between

    def search(asked: Any, *rest: Any) -> Any:
        return between(replace(asked, min_hops=0), *rest)

    patch.setattr(find_paths, "search_shortest_between", search)


def late_meeting(patch: Patch) -> None:
    """Between two nodes, an edge that joins the nodes themselves is overlooked."""
    has_seen_any = shortest_between._SearchSide.has_seen_any
    patch.setattr(
        shortest_between._SearchSide,
        "has_seen_any",
        lambda self, nodes: len(self.levels) > 1 and has_seen_any(self, nodes),
    )


def any_parallel_edge(patch: Patch) -> None:
    """Of several edges between two nodes of a path, the last by id is chosen."""
    of_edges = choose_paths._EdgeRanking.of_edges
    patch.setattr(choose_paths._EdgeRanking, "of_edges", lambda self, layer: -of_edges(self, layer))


DEFECTS = [
    without_the_start,
    untested_edges,
    last_by_id,
    repeated_edges,
    open_ends,
    repeated_nodes,
    backward_paths,
    equal_costs,
    one_parallel_edge,
    unbounded_below,
    late_meeting,
    any_parallel_edge,
]


def differs(shelf: Shelf, seed: int) -> bool:
    """Whether the answer to a random query is wrong: about paths, or any other one every fourth time."""
    writer = Writer(Random(seed))
    query = writer.path_query() if seed % 4 else writer.query()
    try:
        wanted = rows_shown(shelf.oracle(seed % GRAPHS).query(query.text, query.given).rows)
        compare(shelf, seed % GRAPHS, "loaded", "csr", query, wanted)
    except TypeCheckError:
        return False
    except (AssertionError, OmnigraphError):
        return True
    return False


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    place: Path = tmp_path_factory.mktemp("defects")
    return Shelf(place)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", DEFECTS, ids=lambda plant: plant.__name__)
def test_a_planted_defect_is_caught(shelf: Shelf, plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    assert any(differs(shelf, seed) for seed in range(SEEDS)), plant.__doc__
