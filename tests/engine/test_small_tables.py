"""A stream of a small table reads the columns in memory, with the same rows in the same order as a scan."""

from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.engine import result_stream
from omnigraph.storage import range_scans
from omnigraph.testing import graph as new_graph

QUERY = "match { $p: P } return { $p.k, $p.text }"
FILTERED = 'match { $p: P  $p.k >= "0002" } return { $p.k, $p.text }'
ROWS, BATCH_BYTES = 400, 1 << 18


@pytest.fixture
def graph() -> Iterator[Graph]:
    with new_graph("node P { k: String @key  text: String }") as created:
        yield created


def insert(graph: Graph, texts: list[str]) -> None:
    graph.insert("P", *({"k": f"{number:04}", "text": text} for number, text in enumerate(texts)))


def keys_of(graph: Graph, query: str = QUERY) -> list[str]:
    with graph.stream(query) as stream:
        return [key for batch in stream for key in batch["p.k"].to_pylist()]


def forbid_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the stream scanned the table")

    monkeypatch.setattr(result_stream, "stream_rows", refuse)


@pytest.mark.parametrize("query", [QUERY, FILTERED])
def test_rows_have_the_same_order_before_and_after_their_columns_are_in_memory(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    insert(graph, list("abcdef"))
    graph.update("P", where='k = "0003"', set={"text": "updated"})
    from_scan = keys_of(graph, query)
    keys_of(graph)
    forbid_scans(monkeypatch)
    assert keys_of(graph, query) == from_scan == [row[0] for row in graph.query(query).to_records()]


def test_a_filter_on_an_unread_column_scans_the_table(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(graph, list("abc"))
    keys = "match { $p: P } return { $p.k }"
    assert keys_of(graph, keys) == keys_of(graph, keys)
    forbid_scans(monkeypatch)
    assert len(keys_of(graph, keys)) == 3
    with pytest.raises(AssertionError, match="scanned"):
        keys_of(graph, 'match { $p: P  $p.text >= "b" } return { $p.k }')


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["x" * 10_000] * 200, id="few rows"),
        pytest.param([f"{number:05}" * 2_000 for number in range(ROWS)], id="distinct texts"),
        pytest.param(["x" * 20_000] * (ROWS - 40) + [str(number) for number in range(40)], id="one repeated text"),
    ],
)
def test_batches_of_long_texts_stay_bounded(graph: Graph, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    monkeypatch.setattr(range_scans, "BATCH_BYTES", BATCH_BYTES)
    insert(graph, texts)
    for _ in range(3):
        with graph.stream(QUERY) as stream:
            batches = list(stream)
        assert sum(batch.num_rows for batch in batches) == len(texts)
        assert max(batch.nbytes for batch in batches) <= BATCH_BYTES + max(map(len, texts))
