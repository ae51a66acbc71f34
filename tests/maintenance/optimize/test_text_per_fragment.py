"""Compaction bounds the uncompressed text in a fragment, and splits fragments with too much text."""

from collections.abc import Iterator

import lance.optimize
import pytest

from omnigraph.api.graph import Graph
from omnigraph.storage import compact, stage_rows, tail_compaction
from omnigraph.testing import graph as new_graph

SCHEMA = "node P { k: String @key  text: String? }"
LONG, SHORT = "x" * 10_000, "short"
FRAGMENT_BYTES = 1 << 20


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    monkeypatch.setattr(compact, "FRAGMENT_BYTES", FRAGMENT_BYTES)
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 1 << 30)  # only `optimize` compacts
    with new_graph(SCHEMA) as created:
        yield created


def insert(graph: Graph, prefix: str, count: int, text: str) -> None:
    graph.insert("P", *({"k": f"{prefix}{number:04}", "text": text} for number in range(count)))


def text_bytes(graph: Graph) -> list[int]:
    """Return the uncompressed size of the texts in each fragment."""
    return [fragment.to_table(columns=["text"]).nbytes for fragment in graph.table("P").get_fragments()]


def rows(graph: Graph) -> list[tuple[str, str]]:
    return [(row.k, row.text) for row in graph.query("match { $p: P } return { $p.k as k, $p.text as text }")]


def row_ids(graph: Graph) -> dict[str, int]:
    stored = graph.table("P").to_table(columns=["k"], with_row_id=True)
    return dict(zip(stored["k"].to_pylist(), stored["_rowid"].to_pylist(), strict=True))


def test_optimize_joins_only_as_much_text_as_fits_into_a_fragment(graph: Graph) -> None:
    for number in range(8):
        insert(graph, f"{number}-", 50, LONG)
    before, ids_before = rows(graph), row_ids(graph)
    graph.maintenance.optimize()
    sizes = text_bytes(graph)
    assert 1 < len(sizes) < 8
    assert max(sizes) < 2 * FRAGMENT_BYTES
    assert (rows(graph), row_ids(graph)) == (before, ids_before)
    assert graph.maintenance.check()


def test_optimize_splits_a_fragment_with_too_much_text(graph: Graph) -> None:
    insert(graph, "a", 600, LONG)
    assert len(text_bytes(graph)) == 1
    before, ids_before = rows(graph), row_ids(graph)
    graph.maintenance.optimize()
    sizes = text_bytes(graph)
    assert len(sizes) > 1
    assert max(sizes) < 2 * FRAGMENT_BYTES
    assert (rows(graph), row_ids(graph)) == (before, ids_before)
    assert graph.maintenance.check()


def test_optimize_leaves_fragments_alone_after_it_has_split_them(graph: Graph) -> None:
    insert(graph, "a", 600, LONG)
    graph.maintenance.optimize()
    graph.maintenance.optimize()  # may still join the remainders
    head = graph.head
    graph.maintenance.optimize()
    assert graph.head == head


def test_small_writes_next_to_full_fragments_are_joined(graph: Graph) -> None:
    insert(graph, "a", 300, LONG)
    for number in range(5):
        insert(graph, f"b{number}-", 1, SHORT)
    graph.maintenance.optimize()
    assert [fragment.count_rows() for fragment in graph.table("P").get_fragments()] == [300, 5]


def test_a_fragment_with_deleted_rows_and_too_much_text_is_split(graph: Graph) -> None:
    insert(graph, "a", 900, LONG)
    graph.delete("P", where='k < "a0300"')
    before = rows(graph)
    graph.maintenance.optimize()
    assert max(text_bytes(graph)) < 2 * FRAGMENT_BYTES
    assert rows(graph) == before
    assert sum(fragment.num_deletions for fragment in graph.table("P").get_fragments()) == 0


def test_an_overflow_that_the_estimate_did_not_predict_splits_the_fragments(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "estimate_text_bytes", lambda *_: {})
    for number in range(4):
        insert(graph, f"{number}-", 100, LONG)
    before = rows(graph)

    class OverflowingTask:
        @staticmethod
        def from_json(_: str) -> "OverflowingTask":
            return OverflowingTask()

        def execute(self, _: object) -> None:
            raise OSError("LanceError(Arrow): Offset overflow error: 2240000000")

    monkeypatch.setattr(lance.optimize, "CompactionTask", OverflowingTask)
    graph.maintenance.optimize()
    assert max(text_bytes(graph)) < 2 * FRAGMENT_BYTES
    assert rows(graph) == before


def test_an_insert_is_split_by_the_size_of_its_values(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_rows, "MAX_WRITTEN_BYTES", FRAGMENT_BYTES)
    insert(graph, "a", 600, LONG)
    sizes = text_bytes(graph)
    assert (len(sizes), max(sizes) <= FRAGMENT_BYTES) == (8, True)
    graph.upsert("P", *({"k": f"a{number:04}", "text": "y" * 10_000} for number in range(600)))
    assert max(text_bytes(graph)) <= FRAGMENT_BYTES
    assert {text for _, text in rows(graph)} == {"y" * 10_000}
