"""A check beside writers and a cleanup reports nothing, and graphs of every kind are healthy."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.maintenance import check as checks
from omnigraph.maintenance.branch_log import BranchLog, read_branch_log
from tests.maintenance.conftest import again
from tests.rig.plugin import S3


def test_check_during_writes_and_cleanup_finds_nothing(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the check began with is gone before it looks at the files."""
    moves = iter(range(2))

    def late(store: Any, head: Any) -> BranchLog:
        if next(moves, None) is not None:
            graph.load({"Person": [{"name": "ada", "age": 99}]}, mode="merge")
            graph.mutate('update Person set { age: 98 } where name = "bob"')
            graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
        return read_branch_log(store, head)

    monkeypatch.setattr(checks, "read_branch_log", late)
    found = again(graph).maintenance.check()
    assert found.findings == ()
    assert found.readable["main"] == again(graph).head.id


def test_check_during_a_branch_deletion_finds_nothing(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(store: Any, head: Any) -> BranchLog:
        if head.label == "side" and "side" in graph.branches:
            graph.branches.delete("side", force=True)
            graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
        return read_branch_log(store, head)

    monkeypatch.setattr(checks, "read_branch_log", late)
    found = again(graph).maintenance.check()
    assert found.findings == ()
    assert "side" not in found.readable


def test_compatibility_graph_is_healthy(checkout: Path, tmp_path: Path) -> None:
    with tarfile.open(checkout / "tests/compat/graph-100/graph.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    (root,) = {one.parent.parent for one in tmp_path.rglob("__manifest/_versions")}
    found = omnigraph.open(root, read_only=True).maintenance.check()
    # It was made below the rules, with edges that lead nowhere.
    assert {one.kind for one in found.findings} == {"endpoint"}
    assert not found.damage


def test_graph_with_every_value_type_is_healthy(tmp_path: Path) -> None:
    schema = """
    node Thing {
        a: I64  b: F32  day: Date  at: DateTime
        text: String?  flag: Bool?  few: [I32]?  raw: Blob?  v: Vector(2)?  e: enum(x, y)?
        @key(a, day)
        @unique(b, at)
    }
    edge Has: Thing -> Thing { since: Date?  @unique(src, dst) }
    """
    graph = omnigraph.init(tmp_path / "g", schema, durability="os")
    rows = [
        {"a": n, "b": n / 3, "day": "2024-01-02", "at": "2024-01-02T03:04:05Z", "raw": "base64:AAEC"} for n in range(3)
    ]
    graph.load({"Thing": rows}, mode="append")
    ids = graph.table("Thing").to_table(columns=["id"])["id"].to_pylist()
    graph.load({"Has": [{"from": ids[0], "to": ids[1]}]}, mode="append")
    graph.maintenance.ensure_indices()
    assert graph.maintenance.check().findings == ()
    graph.schema.apply(schema.replace("text: String?", 'word: String? @rename_from("text")'))
    graph.schema.apply(schema.replace("text: String?", "").replace("flag: Bool?", ""))
    assert again(graph).maintenance.check().findings == ()
    assert again(graph).maintenance.repair().damage == ()


@pytest.mark.full
def test_graph_on_s3_is_healthy(s3: S3) -> None:
    graph = omnigraph.init(f"{s3.url}/g", "node P { name: String @key }")
    graph.load({"P": [{"name": "a"}, {"name": "b"}]}, mode="append")
    graph.maintenance.ensure_indices()
    found = graph.maintenance.check()
    assert found.findings == ()
    assert graph.maintenance.status().bytes > 0
    assert graph.maintenance.repair().damage == ()
    from omnigraph.maintenance.doctor import diagnose_environment

    assert all(one.outcome != "error" for one in diagnose_environment(graph.uri))
