"""Schema apply on an object store: every kind of rewrite once."""

import pytest

import omnigraph
from omnigraph.errors import HistoryReclaimed
from tests.evolve.cases import rows_of
from tests.rig.plugin import S3


@pytest.mark.full
def test_schema_is_applied_on_s3(s3: S3) -> None:
    graph = omnigraph.init(s3.url, "node A { k: String @key  n: I32?  o: Blob? }")
    graph.insert("A", {"k": "a", "n": 1, "o": b"hi"}, {"k": "b"})
    first = graph.head.id
    wide = 'm: I64? @rename_from("n")  o: Blob?  d: I32 @default(7)  v: Vector(2)?'
    graph.schema.apply(f"node A {{ k: String @key  {wide} }}")
    rows = rows_of(graph)["node:A"]
    assert {k: (row.get("m"), row["d"]) for k, row in rows.items()} == {"a": (1, 7), "b": (None, 7)}
    graph.schema.apply("node A { k: String @key  o: Blob?  d: I32 }", allow_data_loss=True)
    assert rows_of(graph)["node:A"]["a"]["o"] == rows["a"]["o"]
    with pytest.raises(HistoryReclaimed):
        rows_of(graph.at(first))
