"""An export reads long texts in pieces of bounded size."""

import pytest

from omnigraph.storage import blob_pieces
from omnigraph.storage.scan import ROW_ID
from omnigraph.testing import graph as new_graph

PIECE_BYTES = 1 << 20


def test_pieces_of_long_texts_have_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_PIECE_VALUE_BYTES", PIECE_BYTES)
    with new_graph("node P { k: String @key  text: String? }") as graph:
        graph.insert("P", *({"k": f"{number:04}", "text": "x" * 10_000} for number in range(1_500)))
        snapshot = graph.snapshot
        (table_key,) = snapshot.tables
        table = snapshot.table(table_key)
        row_ids = table.dataset.to_table(columns=["k"], with_row_id=True)[ROW_ID].combine_chunks()
        first_piece, *later_pieces = blob_pieces.take_pieces(table, row_ids)
        assert first_piece.num_rows + sum(piece.num_rows for piece in later_pieces) == 1_500
        assert max(piece.nbytes for piece in later_pieces) <= PIECE_BYTES
        assert sum(1 for _ in graph.export()) == 1_500
