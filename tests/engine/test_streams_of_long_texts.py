"""A streamed query reads long texts in batches of bounded size, and short values in large batches."""

import pytest

from omnigraph.storage import range_scans
from omnigraph.testing import graph as new_graph

BATCH_BYTES, TEXT_BYTES, ROWS = 1 << 18, 10_000, 500


def test_batches_of_long_texts_have_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_scans, "BATCH_BYTES", BATCH_BYTES)
    with new_graph("node P { k: String @key  text: String }") as graph:
        graph.insert("P", *({"k": f"{number:04}", "text": "x" * TEXT_BYTES} for number in range(ROWS)))
        with graph.stream("match { $p: P } return { $p.k, $p.text }") as stream:
            texts = list(stream)
        with graph.stream("match { $p: P } return { $p.k }") as stream:
            keys = list(stream)
    assert sum(batch.num_rows for batch in texts) == ROWS
    assert max(batch.nbytes for batch in texts) <= BATCH_BYTES + TEXT_BYTES
    assert [batch.num_rows for batch in keys] == [ROWS]
