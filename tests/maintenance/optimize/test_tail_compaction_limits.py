"""Tail compaction bounds the size of the values it joins, and its failures never fail a write."""

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import ConcurrentCommit
from omnigraph.storage import tail_compaction
from omnigraph.testing import graph as new_graph
from tests.evolve.test_concurrent_writers import before_effect

SCHEMA = "node P { k: String @key  text: String? }"
VALUE_LIMIT = 1 << 20
# The effects of a write that compacts: stage its row, stage the compaction, detach the compaction, detach its row.
STAGE_COMPACTION, DETACH_COMPACTION = 2, 3


def insert_rows(graph: Graph, count: int) -> None:
    for number in range(count):
        graph.insert("P", {"k": f"k{number}", "text": "short"})


def raise_error(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


def keys(graph: Graph) -> list[str]:
    return [row["k"] for row in graph.query("match { $p: P } return { $p.k as k } order { $p.k }")]


def value_bytes(graph: Graph) -> list[int]:
    """Return the uncompressed size of the texts in each fragment."""
    fragments = graph.table("P").get_fragments()
    return [fragment.to_table(columns=["text"]).nbytes for fragment in fragments]


@pytest.mark.parametrize("effect_number", [STAGE_COMPACTION, DETACH_COMPACTION])
@pytest.mark.parametrize(
    "error",
    [
        OSError("LanceError(Arrow): Offset overflow error: 2240000000"),
        pa.ArrowInvalid("Offset overflow error: 2240000000"),
        RuntimeError("an index could not be remapped"),
        MemoryError("no memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_tail_compaction_never_fails_the_write(
    effect_number: int, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with new_graph(SCHEMA) as graph, caplog.at_level(logging.WARNING, "omnigraph"):
        insert_rows(graph, 4)
        with before_effect(graph, effect_number, raise_error(error)):
            graph.insert("P", {"k": "k4", "text": "short"})
        assert keys(graph) == ["k0", "k1", "k2", "k3", "k4"]
        assert len(graph.table("P").get_fragments()) == 5
        (record,) = caplog.records
        assert (record.levelname, "the maintenance of nodes/" in record.getMessage()) == ("WARNING", True)
        assert graph.maintenance.check()
        graph.insert("P", {"k": "k5", "text": "short"})
        assert len(graph.table("P").get_fragments()) == 2, "the next write compacts"
        assert graph.maintenance.check()


def test_a_conflict_during_tail_compaction_is_reported() -> None:
    with new_graph(SCHEMA) as graph:
        insert_rows(graph, 4)
        conflict = ConcurrentCommit("another write came first")
        with before_effect(graph, STAGE_COMPACTION, raise_error(conflict)), pytest.raises(ConcurrentCommit):
            graph.insert("P", {"k": "k4"})
        assert keys(graph) == ["k0", "k1", "k2", "k3"]


def test_joined_values_are_bounded_by_their_uncompressed_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_compaction, "MAX_VALUE_BYTES", VALUE_LIMIT)
    with new_graph(SCHEMA) as graph:
        for number in range(8):
            graph.insert("P", *({"k": f"k{number}-{row}", "text": "x" * 10_000} for row in range(40)))
        assert max(value_bytes(graph)) <= VALUE_LIMIT
        stored_bytes = sum(
            data_file.file_size_bytes
            for fragment in graph.table("P").get_fragments()
            for data_file in fragment.metadata.files
        )
        assert stored_bytes < VALUE_LIMIT, "the values compress well"
        assert len(keys(graph)) == 320


def test_small_writes_after_long_values_are_still_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_compaction, "MAX_VALUE_BYTES", VALUE_LIMIT)
    with new_graph(SCHEMA) as graph:
        graph.insert("P", *({"k": f"long{row}", "text": "x" * 100_000} for row in range(12)))
        insert_rows(graph, 30)
        row_counts = [fragment.count_rows() for fragment in graph.table("P").get_fragments()]
        assert (row_counts[0], len(row_counts) < 8) == (12, True)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_more_than_two_gibibytes_of_compressible_text_can_be_written_and_exported() -> None:
    rows_per_write, writes = 560, 10
    text = "x" * 1_000_000
    with new_graph(SCHEMA) as graph:
        for number in range(writes):
            graph.insert("P", *({"k": f"k{number}-{row}", "text": text} for row in range(rows_per_write)))
        assert max(fragment.count_rows() for fragment in graph.table("P").get_fragments()) * len(text) < 1 << 31
        assert sum(1 for _ in graph.export()) == rows_per_write * writes
