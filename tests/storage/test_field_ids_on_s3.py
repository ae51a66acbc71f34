"""Rows that are written to an object store keep their values in tables whose field ids have gaps or another order."""

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from tests.rig.plugin import S3

WIDE = "node A { k: String @key  n: I32?  tags: [String]?  x: F64?  note: String? }"
DROPPED = "node A { k: String @key  tags: [String]?  x: F64?  note: String? }"
ADDED = "node A { k: String @key  tags: [String]?  x: F64?  note: String?  size: I64? }"


def _rows(graph: Graph) -> list[tuple[object, ...]]:
    reopened = omnigraph.open(graph.uri)
    nodes = [reopened.node("A", key) for key in ("a", "b", "c")]
    return [tuple(node[name] for name in ("tags", "x", "note", "size")) for node in nodes if node is not None]


def test_rows_keep_their_values_after_a_property_was_dropped(s3: S3) -> None:
    graph = omnigraph.init(s3.url, WIDE)
    graph.insert("A", {"k": "a", "n": 1, "tags": ["t"], "x": 1.5, "note": "first"})
    graph.schema.apply(DROPPED, allow_data_loss=True)
    graph.insert("A", {"k": "b", "tags": ["u", "v"], "x": 2.5, "note": "second"})
    graph.schema.apply(ADDED)
    graph.upsert("A", {"k": "c", "tags": ["w"], "x": 3.5, "note": "third", "size": 9})
    assert _rows(graph) == [
        (["t"], 1.5, "first", None),
        (["u", "v"], 2.5, "second", None),
        (["w"], 3.5, "third", 9),
    ]


def test_rows_keep_their_values_after_a_property_was_widened(s3: S3) -> None:
    graph = omnigraph.init(s3.url, "node A { k: String @key  n: I32?  note: String? }")
    graph.insert("A", {"k": "a", "n": 1, "note": "first"})
    graph.schema.apply("node A { k: String @key  n: I64?  note: String? }")
    graph.insert("A", {"k": "b", "n": 1 << 40, "note": "second"})
    reopened = omnigraph.open(s3.url)
    nodes = [reopened.node("A", key) for key in "ab"]
    assert [(node["n"], node["note"]) for node in nodes if node is not None] == [(1, "first"), (1 << 40, "second")]


@pytest.mark.parametrize("first", ["main", "side"])
def test_rows_keep_their_values_after_both_branches_added_a_property(s3: S3, first: str) -> None:
    graph = omnigraph.init(s3.url, "node A { k: String @key }")
    graph.insert("A", {"k": "a"})
    side = graph.branches.create("side")
    added = {"main": ("note: String?", graph), "side": ("level: I32 @default(3)", side)}
    for name in sorted(added, key=lambda branch: branch != first):
        declaration, handle = added[name]
        handle.schema.apply(f"node A {{ k: String @key  {declaration} }}")
    side.insert("A", {"k": "b", "level": 4})
    graph.merge("side")
    graph.insert("A", {"k": "c", "note": "third"})
    reopened = omnigraph.open(s3.url)
    nodes = {key: reopened.node("A", key) for key in "abc"}
    assert {key: (node["note"], node["level"]) for key, node in nodes.items() if node is not None} == {
        "a": (None, 3),
        "b": (None, 4),
        "c": ("third", 3),
    }
