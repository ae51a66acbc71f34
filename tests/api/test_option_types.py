"""Options of the wrong type are rejected as input errors, before anything is written."""

from datetime import UTC, datetime
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import InputError
from tests.rig.graph_hosts import GraphHost


@pytest.fixture(scope="module")
def graph(graphs: GraphHost) -> Graph:
    return graphs.init("node Person { name: String @key }")


def test_a_write_rejects_an_actor_that_is_not_text(graph: Graph) -> None:
    check_text_option(graph, "actor")


@pytest.mark.parametrize("option", ["message", "idempotency_key"])
def test_a_write_rejects_an_option_that_is_not_text(graph: Graph, option: str) -> None:
    check_text_option(graph, option)


def check_text_option(graph: Graph, option: str) -> None:
    number: Any = {option: 5}
    with pytest.raises(InputError, match=f"{option} must be a string, got integer 5"):
        graph.insert("Person", {"name": "ada"}, **number)
    long_text: Any = {option: "x" * 4097}
    with pytest.raises(InputError, match=f"{option} has more than 4096 characters"):
        graph.insert("Person", {"name": "ada"}, **long_text)
    assert not list(graph.nodes("Person"))


def test_a_tag_rejects_a_message_that_is_not_text(graph: Graph) -> None:
    number: Any = 5
    with pytest.raises(InputError, match="message must be a string"):
        graph.tag("v1", message=number)
    assert "v1" not in graph.tags


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"since": datetime(2024, 1, 1)}, "`since` has no time zone: 2024-01-01T00:00:00"),
        ({"since": "2024-01-01"}, "`since` must be a datetime, got string '2024-01-01'"),
        ({"actor": 5}, "actor must be a string, got integer 5"),
        ({"limit": "3"}, "limit must be a non-negative integer, got string '3'"),
        ({"limit": -1}, "limit must be a non-negative integer, got integer -1"),
    ],
)
def test_a_log_rejects_a_filter_of_the_wrong_type(graph: Graph, options: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        graph.log(**options)
    assert len(graph.log(since=datetime(2024, 1, 1, tzinfo=UTC), limit=3)) == 1
