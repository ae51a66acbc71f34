"""Graphs on a real server, for the tests of the Python client."""

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph import Graph
from tests.rig.http_server import HttpServer, serving
from tests.server.conftest import make_graph


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """An open server with one graph, which the tests of a module share."""
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, make_graph(folder / "graph"), "--unauthenticated") as running:
        yield running


@pytest.fixture
def url(server: HttpServer) -> str:
    """The URL of the graph of the server."""
    return f"http://{server.address}/graphs/default"


@pytest.fixture
def graph(url: str, request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A graph on a branch of this test."""
    name = f"c/{request.node.name.replace('[', '-').replace(']', '')}"[:100]
    with omnigraph.open(url) as main:
        yield main.branches.create(name)
