"""Damaged and unknown objects in `_audit`, `__gc` and `_aside` stop nothing and are reported."""

import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from tests.publish.recovery.bad_records import contents, exercise

BODIES = {"empty": b"", "garbage": b"\xff\x00{", "list": b"[]", "other shape": b'{"names": 7}'}
RUN = "01J00000000000000000000000"
OBJECTS = {
    f"_audit/{RUN}.json": True,
    "_audit/notes.json": True,
    "_audit/sub/x.json": False,
    f"__gc/{RUN}.condemned": True,
    f"__gc/{RUN}.sweep": True,
    "__gc/notes.txt": False,
    "_aside/notes.json": False,
}


def spoil(graph: Graph, name: str, body: bytes) -> Path:
    path = Path(graph.uri, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


@pytest.mark.parametrize(
    "body", [pytest.param(one, marks=[] if one == "garbage" else [pytest.mark.full]) for one in BODIES]
)
def test_all_damaged_objects_together_stop_nothing(graph: Graph, body: str) -> None:
    before = contents(graph)
    paths = [spoil(graph, name, BODIES[body]) for name in OBJECTS]
    opened = exercise(graph.uri)
    assert contents(opened) == before
    assert all(one.read_bytes() == BODIES[body] for one in paths)
    told = {one.name for one in opened.maintenance.check(quick=True).findings}
    assert told == {name for name, reported in OBJECTS.items() if reported}
    assert {one.kind for one in opened.maintenance.operations.recoveries()} == {"unreadable"}
    assert opened.maintenance.repair().damage == ()


@pytest.mark.parametrize("part", ["condemned", "sweep"])
def test_cleanup_record_with_one_damaged_half_stops_nothing(graph: Graph, part: str) -> None:
    other = {"condemned": "sweep", "sweep": "condemned"}[part]
    spoil(graph, f"__gc/{RUN}.{other}", b'{"names": ["nodes/nothing"]}')
    spoil(graph, f"__gc/{RUN}.{part}", b"?")
    opened = exercise(graph.uri)
    past = opened.head.id
    opened.insert("Person", {"name": "newer"})
    assert opened.branches.create("old", commit=past).head.id == past


def test_damaged_claim_is_taken_over(graph: Graph) -> None:
    claim = spoil(graph, "__gc/claim", b"?")
    with pytest.raises(omnigraph.errors.ConcurrentCommit):
        graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
    os.utime(claim, (1, 1))
    graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
    assert exercise(graph.uri)


def test_lists_and_records_keep_working_beside_a_damaged_one(graph: Graph) -> None:
    spoil(graph, f"_audit/{RUN}.json", b'{"operation_id": 5, "heads": []}')
    (outcome,) = graph.maintenance.operations.recoveries()
    assert (outcome.operation_id, outcome.kind) == (RUN, "unreadable")
    assert outcome.error
