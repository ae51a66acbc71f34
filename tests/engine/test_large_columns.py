"""Columns that would not fit into memory: filters divide their rows, and results raise a typed error."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.expressions.evaluate import true_mask
from omnigraph.engine.operators import filter as filter_operator
from omnigraph.errors import ResourceLimitExceeded

TEXTS, MEGABYTE = 60, 1 << 20
SAME_LENGTH = "match { $a: Doc  $b: Doc  $a.text < $b.text } return { count(*) as n }"
ALL_PAIRS = "match { $a: Doc  $b: Doc } return { $a.text, $b.name }"


def make_docs(root: Path, text_bytes: int) -> Graph:
    graph = omnigraph.init(root, "node Doc { name: String @key  text: String }", durability="os")
    graph.insert("Doc", *({"name": f"d{n}", "text": f"{n:03}" + "x" * text_bytes} for n in range(TEXTS)))
    return graph


def test_a_filter_over_pairs_divides_the_rows_if_their_values_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make_docs(tmp_path / "graph", 1000)
    sizes: list[int] = []
    monkeypatch.setattr(filter_operator, "_CHUNK_COLUMN_BYTES", 100_000)

    def evaluate_and_count(source: Any, predicate: Any) -> Any:
        sizes.append(source.count)
        return true_mask(source, predicate)

    monkeypatch.setattr(filter_operator, "true_mask", evaluate_and_count)
    for _ in range(3):  # the columns move into memory when they have been read often enough
        assert graph.query(SAME_LENGTH).to_records()[0][0] == TEXTS * (TEXTS - 1) // 2
    assert min(size for size in sizes if size) <= 100


@pytest.mark.full
def test_a_filter_over_pairs_reads_more_than_two_gib_of_text(tmp_path: Path) -> None:
    graph = make_docs(tmp_path / "graph", MEGABYTE)
    for _ in range(2):
        assert graph.query(SAME_LENGTH).to_records()[0][0] == TEXTS * (TEXTS - 1) // 2


@pytest.mark.full
def test_a_result_with_more_than_two_gib_in_a_column_is_a_typed_error(tmp_path: Path) -> None:
    graph = make_docs(tmp_path / "graph", MEGABYTE)
    for _ in range(2):
        with pytest.raises(ResourceLimitExceeded) as caught:
            graph.query(ALL_PAIRS)
        assert (caught.value.resource, caught.value.effect) == ("query_column_bytes", "none")
    assert graph.query("match { $d: Doc } return { count(*) as n }").to_records()[0][0] == TEXTS
