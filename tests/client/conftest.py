"""Graphs on a real server, for the tests of the Python client."""

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph import Graph
from tests.rig.http_server import HttpServer
from tests.server.conftest import server  # noqa: F401 - a fixture


@pytest.fixture
def url(server: HttpServer) -> str:
    """The URL of the graph of the server."""
    return f"http://{server.address}/graphs/default"


@pytest.fixture
def graph(url: str, request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A graph on a branch of this test."""
    name = f"c/{request.node.name.replace('[', '-').replace(']', '')}"[:100]
    with omnigraph.open(url) as main:
        yield main.branches.create(name)  # type: ignore[misc]
