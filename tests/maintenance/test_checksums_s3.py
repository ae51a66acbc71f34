"""Checksums on S3: known without a request, and what check reports of other objects."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.history.file_checksums import collect_checksums
from tests.rig.plugin import S3

SCHEMA = "node P { name: String @key  n: I32?  raw: Blob? }\nedge E: P -> P"


@pytest.fixture
def graph(s3: S3) -> Graph:
    """A graph with data, blobs, deletions of several writes, and a compacted tail."""
    graph = omnigraph.init(s3.url, SCHEMA)
    graph.insert("P", *[{"name": f"p{n}", "n": n, "raw": bytes([n]) * 100_000} for n in range(3)])
    for n in range(2):
        graph.update("P", where=f'name = "p{n}"', set={"n": 10 + n})
    graph.delete("P", where='name = "p2"')
    for _ in range(6):
        graph.connect_nodes("E", [("p0", "p1")])
    return graph


def test_every_file_but_those_of_indexes_has_a_checksum(graph: Graph) -> None:
    checkup = graph.maintenance.check()
    assert checkup
    assert checkup.read["unrecorded"] == 0
    assert checkup.read["verified"] > 10
    names = match(graph)
    assert names == [["p0", 10], ["p1", 11]]


def test_blobs_of_compacted_files_have_checksums(graph: Graph) -> None:
    for number in range(3):
        graph.insert("P", {"name": f"q{number}", "raw": bytes([number + 9]) * 100_000})
    graph.maintenance.optimize()
    fresh = omnigraph.open(graph.uri)
    blobs = [one.name for one in fresh._handle.store.objects.list("nodes") if one.name.endswith(".blob")]
    state = fresh._handle.branch_state.refresh().state
    recorded = collect_checksums(fresh._handle.store, [state])
    assert set(blobs) <= recorded.keys()


def match(graph: Graph) -> list[list[object]]:
    query = "match { $p: P } return { $p.name, $p.n } order { $p.name }"
    return [list(row) for row in omnigraph.open(graph.uri).query(query).to_lists()]


@pytest.mark.parametrize("kind", ["data/", "_deletions/", "_versions/d", ".blob"])
def test_swapped_objects_are_named(graph: Graph, kind: str) -> None:
    objects = graph._handle.store.objects
    listed = [one.name for one in objects.list("nodes") if kind in one.name]
    names = [one for one in listed if kind != "data/" or one.endswith(".lance")]
    first, second = names[:2]
    bodies = [objects.read(name) for name in (first, second)]
    for name, body in zip((second, first), bodies, strict=True):
        assert body is not None
        objects.backend.replace(name, body)
    told = {one.name for one in graph.maintenance.check(sample=1.0).findings}
    assert told & {first, second}


def test_checksums_stay_valid_when_a_graph_moves_to_a_disk_and_back(graph: Graph, tmp_path: Path) -> None:
    graph.maintenance.copy_to(tmp_path / "local")
    local = omnigraph.open(tmp_path / "local")
    read = local.maintenance.check().read
    assert (read["unrecorded"], read["verified"]) == (0, graph.maintenance.check().read["verified"])
    local.insert("P", {"name": "new"})
    local.maintenance.copy_to(f"{graph.uri}-back")
    assert omnigraph.open(f"{graph.uri}-back").maintenance.check().read["unrecorded"] == 0
