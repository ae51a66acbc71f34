"""A real fragment with more than 2 GiB of text can be read, checked, compared and split."""

import pytest

from omnigraph.api.graph import Graph
from omnigraph.storage import stage_rows
from omnigraph.testing import graph as new_graph

TEXT = ("the quick brown fox jumps over the lazy dog " * 25_000)[:1_000_000]
ROWS = 2_300


def fragment_rows(graph: Graph) -> list[int]:
    return [fragment.count_rows() for fragment in graph.table("P").get_fragments()]


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("in_one_fragment", [True, False])
def test_more_than_two_gibibytes_of_text(in_one_fragment: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if in_one_fragment:
        monkeypatch.setattr(stage_rows, "MAX_WRITTEN_BYTES", 1 << 40)
    with new_graph("node P { k: String @key  text: String? }") as graph:
        graph.insert("P", *({"k": f"k{number:04}", "text": TEXT} for number in range(ROWS)))
        assert (len(fragment_rows(graph)) == 1) == in_one_fragment
        assert graph.maintenance.check()
        unmatched = graph.query('match { $p: P { text: "x" } } return { $p.k as k }')
        assert len(list(unmatched)) == 0
        assert sum(1 for _ in graph.export()) == ROWS
        graph.maintenance.optimize()
        assert max(fragment_rows(graph)) * len(TEXT) < 1 << 30
        assert sum(fragment_rows(graph)) == ROWS
        assert graph.maintenance.check()
