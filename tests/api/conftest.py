"""Small graphs built through the public API."""

from typing import Any

import pytest

from omnigraph import Graph
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    tags: [String]?
    team: String?
    born: Date?
    @range(age, 0..150)
}
node Firm { name: String @key  size: I64? }
node Note { text: String }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Firm
"""

PEOPLE: list[dict[str, Any]] = [
    {"name": "ann", "age": 30, "tags": ["x", "y"], "team": "core", "born": "1990-01-01"},
    {"name": "bob", "age": 25, "team": "core"},
    {"name": "cyd"},
    {"name": "dee", "age": 30, "team": "web"},
]
KNOWS: list[tuple[Any, ...]] = [
    ("ann", "bob", {"since": "2020-01-01"}),
    ("ann", "bob", {"since": "2021-01-01"}),
    ("bob", "cyd"),
    ("cyd", "ann"),
    ("dee", "dee"),
    ("bob", "dee"),
]


def fill(graph: Graph) -> Graph:
    graph.insert("Person", PEOPLE)
    graph.insert("Firm", {"name": "acme"}, {"name": "zeta"})
    graph.connect_nodes("Knows", KNOWS)
    graph.connect_nodes("WorksAt", [("ann", "acme"), ("bob", "acme"), ("cyd", "zeta")])
    return graph


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    """A small graph of people, fresh for the test."""
    return fill(graphs.init(SCHEMA))


@pytest.fixture(scope="module")
def people(graphs: GraphHost) -> Graph:
    """The same graph, shared by the tests of a module that only read."""
    return open_again(fill(graphs.init(SCHEMA)), read_only=True)
