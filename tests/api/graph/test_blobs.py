"""NULL, empty and large blobs stay distinct through writes and rewrites."""

from pathlib import Path

import pyarrow as pa
from lance.blob import blob_array

import omnigraph
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.compact import stage_compaction
from omnigraph.storage.stage_rows import stage_append
from omnigraph.values.table_key import TableKey

LARGE = bytes(range(256)) * 20_000


def test_null_empty_and_large_blobs_are_distinct(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Doc { body: Blob? }", durability="os")
    values: dict[str, bytes | None] = {"null": None, "empty": b"", "large": LARGE}

    def add(name: str) -> None:
        def prepare(txn: WriteTxn) -> PublishPlan:
            table = txn.table(TableKey("node:Doc"))
            rows = pa.table({"id": [name], "body": blob_array([values[name]])})
            return PublishPlan("insert", {TableKey("node:Doc"): stage_append(txn.store, table, rows)})

        publish(graph._handle.branch_state, prepare)

    def rewrite(txn: WriteTxn) -> PublishPlan:
        staged = stage_compaction(txn.store, txn.table(TableKey("node:Doc")))
        assert staged is not None
        return PublishPlan("optimize", {TableKey("node:Doc"): staged}, maintenance=True)

    for name in values:
        add(name)
    before = bodies(graph.refresh())
    publish(graph._handle.branch_state, rewrite)
    assert len(graph.refresh().table("Doc").get_fragments()) == 1
    assert before == bodies(graph) == values


def bodies(graph: omnigraph.Graph) -> dict[str, bytes | None]:
    """Every blob as bytes."""
    dataset = graph.table("Doc")
    found = dataset.to_table(columns=["id"], with_row_id=True).to_pylist()
    blobs: dict[str, bytes | None] = {}
    for row in found:
        nulls = dataset.to_table(filter=f"id = '{row['id']}' AND body IS NULL", columns=["id"])
        if nulls.num_rows:
            blobs[row["id"]] = None
            continue
        (one,) = dataset.take_blobs("body", ids=[row["_rowid"]])
        with one as opened:
            blobs[row["id"]] = opened.read()
    return blobs
