"""A graph with a history: two branches, a merge, a tag, changes by several actors."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.values import clock_and_ids

SCHEMA = """
node Person { name: String @key  age: I64?  city: String?  score: F64?  photo: Blob? }
edge Knows: Person -> Person { since: I64? }
"""
START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def empty(tmp_path: Path) -> Graph:
    """A graph without entities."""
    return omnigraph.init(tmp_path / "g", SCHEMA, durability="os", actor="ann")


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """Six commits, a day apart: `review` is merged into main, `v1` is the second commit."""
    with clock_and_ids.deterministic_ids(START) as clock:
        made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os", actor="ann")
        clock.advance(days=1)
        people = [{"name": "ada", "age": 1}, {"name": "bob", "age": 2}]
        made.insert("Person", *people, message="two people")
        made.tag("v1")
        clock.advance(days=1)
        review = made.branches.create("review")
        review.update("Person", where="name = 'ada'", set={"city": "Ulm"}, actor="cy", message="moved")
        clock.advance(days=1)
        made.update("Person", where="name = 'bob'", set={"age": 3}, actor="bob", message="older")
        clock.advance(days=1)
        made.merge("review", message="the review")
        clock.advance(days=1)
        made.update("Person", where="name = 'ada'", set={"age": 9}, actor="dan", message="much older")
        yield made
