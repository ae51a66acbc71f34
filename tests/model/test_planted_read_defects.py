"""Planted defects of grouping and unions: random queries find each of them.

The graph is the smallest form of `test_random_queries`; only queries with the planted part are run.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.engine import union_rows
from omnigraph.engine.operators import aggregate, group, having, project
from omnigraph.errors import TypeCheckError
from omnigraph.values import clock_and_ids
from tests.model.expected_values import listed, rows_shown
from tests.model.oracle import NOW, Oracle
from tests.model.product_view import answer_of
from tests.model.random_graphs import SCHEMA, ndjson, records
from tests.model.random_queries import Writer

GRAPH = 1


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("planted") / "g", SCHEMA, durability="os")
    graph.load(ndjson(records(Random(GRAPH))).encode(), mode="append")
    return graph


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle.of(SCHEMA, ndjson(records(Random(GRAPH))))


def differing_queries(graph: Graph, oracle: Oracle, word: str, seeds: range) -> int:
    """The number of random queries with a word for which the engine and the oracle differ."""
    differing = 0
    for seed in seeds:
        query = Writer(Random(seed)).query()
        if word not in query.text:
            continue
        try:
            wanted = rows_shown(oracle.query(query.text, query.given).rows)
        except TypeCheckError:
            continue
        with clock_and_ids.deterministic_ids(datetime.fromtimestamp(NOW / 1000, UTC)):
            _, rows = answer_of(graph, query.text, query.given)
        differing += listed(rows) != listed(wanted)
    return differing


@pytest.mark.parametrize("word", ["having", "union", "count(*)"])
def test_queries_with_the_part_equal_the_oracle(graph: Graph, oracle: Oracle, word: str) -> None:
    assert differing_queries(graph, oracle, word, range(150)) == 0


@pytest.mark.full
@pytest.mark.parametrize("word", ["having", "union", "count(*)"])
def test_many_queries_with_the_part_equal_the_oracle(graph: Graph, oracle: Oracle, word: str) -> None:
    assert differing_queries(graph, oracle, word, range(1000, 2500)) == 0


def _having_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group, "having_mask", lambda source, having: np.ones(source.count, np.bool_))


def _unknown_groups_kept(patch: pytest.MonkeyPatch) -> None:
    def kept(source: Any, predicate: Any) -> Any:
        return evaluate_predicate(source, predicate).fill_null(True).to_numpy(zero_copy_only=False)

    from omnigraph.engine.expressions.evaluate import evaluate_predicate

    patch.setattr(having, "true_mask", kept)


def _duplicates_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(union_rows, "distinct_rows", lambda table: np.arange(table.num_rows))


def _last_part_lost(patch: pytest.MonkeyPatch) -> None:
    def concat_tables(tables: list[pa.Table]) -> pa.Table:
        return pa.concat_tables(tables[:-1])

    arrow = type("arrow", (), vars(pa) | {"concat_tables": staticmethod(concat_tables)})
    patch.setattr(union_rows, "pa", arrow)


def _weights_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = aggregate._group_counts
    patch.setattr(aggregate, "_group_counts", lambda groups, weights: real(groups, None))


def _edge_ends_swapped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(project, "_ENDPOINT_COLUMNS", {"from": "dst", "to": "src"})


DEFECTS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "having is ignored": ("having", _having_ignored),
    "having keeps groups for which it is unknown": ("having", _unknown_groups_kept),
    "union keeps duplicates": ("union", _duplicates_kept),
    "union loses its last part": ("union", _last_part_lost),
    "count(*) forgets weights": ("count(*)", _weights_forgotten),
    "a whole edge swaps its ends": ("$w", _edge_ends_swapped),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_planted_defect_is_found(graph: Graph, oracle: Oracle, defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    word, plant = DEFECTS[defect]
    plant(monkeypatch)
    assert differing_queries(graph, oracle, word, range(150)) > 0
