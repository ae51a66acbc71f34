"""A graph with a history: two branches, a merge, a tag, changes by several actors."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from omnigraph import Graph
from omnigraph.values import clock_and_ids
from tests.rig.graph_hosts import GraphHost, act_as

SCHEMA = """
node Person { name: String @key  age: I64?  city: String?  score: F64?  photo: Blob? }
edge Knows: Person -> Person { since: I64? }
"""
START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def empty(graphs: GraphHost) -> Graph:
    """A graph without entities."""
    return graphs.init(SCHEMA, actor="ann")


@pytest.fixture
def graph(graphs: GraphHost) -> Iterator[Graph]:
    """Six commits, a day apart: `review` is merged into main, `v1` is the second commit."""
    with clock_and_ids.deterministic_ids(START) as clock:
        made = graphs.init(SCHEMA, actor="ann")
        clock.advance(days=1)
        people = [{"name": "ada", "age": 1}, {"name": "bob", "age": 2}]
        made.insert("Person", *people, message="two people")
        made.tag("v1")
        clock.advance(days=1)
        review = made.branches.create("review")
        act_as(review, "cy").update("Person", where="name = 'ada'", set={"city": "Ulm"}, message="moved")
        clock.advance(days=1)
        act_as(made, "bob").update("Person", where="name = 'bob'", set={"age": 3}, message="older")
        clock.advance(days=1)
        made.merge("review", message="the review")
        clock.advance(days=1)
        act_as(made, "dan").update("Person", where="name = 'ada'", set={"age": 9}, message="much older")
        yield made.refresh()
