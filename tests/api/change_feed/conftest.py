"""A small graph with commits of every kind, fresh for a test or shared by readers."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  face: Blob? }
node Firm { name: String @key }
edge Knows: Person -> Person { since: DateTime? }
"""


def build(graph: Graph) -> Graph:
    """Five commits, seven changes: 2 inserts, 1 edge, 1 update, 1 delete and its edge, 1 insert."""
    graph.insert("Person", {"name": "ann", "age": 1}, {"name": "bob"}, actor="eve")
    graph.load([{"edge": "Knows", "from": "ann", "to": "bob", "data": {"id": "k"}}], mode="append")
    graph.mutate('update Person set { age: 2 } where name = "ann"')
    graph.mutate('delete Person where name = "bob"')
    graph.insert("Firm", {"name": "acme"})
    return graph


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the graph that `build` makes, to be copied."""
    where = tmp_path_factory.mktemp("feed") / "g"
    build(omnigraph.init(where, SCHEMA, durability="os")).close()
    return where


@pytest.fixture
def graph(tmp_path: Path, template: Path) -> Iterator[Graph]:
    """A graph of five commits after the first one, fresh for the test."""
    shutil.copytree(template, tmp_path / "g")
    with omnigraph.open(tmp_path / "g", durability="os") as made:
        yield made


@pytest.fixture(scope="module")
def shared(template: Path) -> Graph:
    """The same for tests that only read."""
    return omnigraph.open(template, read_only=True)


def told(blocks: Any) -> list[list[tuple[str, str, str]]]:
    """Blocks in short: op, type and id of each change."""
    return [[(one.op, one.type, one.id) for one in block.changes] for block in blocks]


FIVE = [
    [("insert", "Person", "ann"), ("insert", "Person", "bob")],
    [("insert", "Knows", "k")],
    [("update", "Person", "ann")],
    [("delete", "Person", "bob"), ("delete", "Knows", "k")],
    [("insert", "Firm", "acme")],
]
