"""Small graphs built through the public API."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph

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
def graph(tmp_path: Path) -> Iterator[Graph]:
    """A small graph of people, fresh for the test."""
    with omnigraph.init(tmp_path / "g", SCHEMA, durability="os") as made:
        yield fill(made)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """The same graph, shared by the tests of a module that only read."""
    where = tmp_path_factory.mktemp("people") / "g"
    with omnigraph.init(where, SCHEMA, durability="os") as made:
        fill(made)
        yield omnigraph.open(where, read_only=True)
