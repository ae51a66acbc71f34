"""The values of a conflict have the types of their properties."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import MergeConflict
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Person { name: String @key  born: Date?  seen: DateTime?  raw: Blob?  days: [Date]?  score: F64? }
edge Knows: Person -> Person { since: Date? }
"""
FIRST: dict[str, Any] = {
    "born": date(1990, 1, 2),
    "seen": datetime(2024, 1, 1, tzinfo=UTC),
    "raw": b"\x00",
    "days": [date(2000, 1, 1)],
    "score": 0.5,
}


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    graph.insert("Person", {"name": "ada", **FIRST}, {"name": "bob"})
    graph.insert("Knows", {"id": "k", "from": "ada", "to": "bob", "since": date(2020, 1, 1)})
    return graph


def test_values_of_nodes_have_their_types(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    ours, theirs = {**FIRST, "born": date(1, 1, 1)}, {**FIRST, "born": date(9999, 12, 31)}
    graph.update("Person", where="name = 'ada'", set={"born": ours["born"]})
    dev.update("Person", where="name = 'ada'", set={"born": theirs["born"]})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    preview = graph.merge("dev", dry_run=True)
    for (conflict,) in (caught.value.conflicts, preview.conflicts):
        assert conflict.changed == ("born",)
        for image, expected in ((conflict.base, FIRST), (conflict.ours, ours), (conflict.theirs, theirs)):
            assert image is not None
            assert {name: image[name] for name in expected} == expected


def test_values_of_edges_have_their_types(graph: Graph) -> None:
    receipt = graph.update("Knows", where="id = 'k'", set={"since": date(2021, 1, 1)})
    graph.update("Knows", where="id = 'k'", set={"since": date(2022, 1, 1)})
    assert receipt.commit_id is not None
    with pytest.raises(MergeConflict) as caught:
        graph.revisions.revert(receipt.commit_id)
    (conflict,) = caught.value.conflicts
    since = [image and image["since"] for image in (conflict.base, conflict.ours, conflict.theirs)]
    assert since == [date(2021, 1, 1), date(2022, 1, 1), date(2020, 1, 1)]
