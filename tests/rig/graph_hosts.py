"""Run the same test on an embedded graph and on a graph on a server.

A test that uses the fixture `graphs`, also by another fixture, runs once for each host, unless `EMBEDDED_ONLY` names
it. The tests of one process share one server.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.storage.store import Durability
from tests.rig.embedded_only import find_reason
from tests.rig.thread_server import ThreadServer, thread_server

HOSTS = ("embedded", "remote")


class GraphHost:
    """Creates and opens graphs, either by their files or through a server."""

    def __init__(self, folder: Path, server: ThreadServer | None) -> None:
        self._folder, self._server = folder, server
        self._graphs: list[Graph] = []
        self._roots: dict[str, Path] = {}

    def init(self, schema: str, *, actor: str | None = None) -> Graph:
        """Create an empty graph, and open it."""
        root = self._folder / f"g{len(self._graphs)}"
        omnigraph.init(root, schema, durability="os", actor=actor).close()
        return self.open(root, actor=actor)

    def open(self, root: Path, *, actor: str | None = None) -> Graph:
        """Open the graph in a folder. On a server, the token determines the actor."""
        if self._server is None:
            graph = omnigraph.open(root, durability="os", actor=actor)
        else:
            graph = omnigraph.open(self._server.serve(root), token=actor)
        self._graphs.append(graph)
        self._roots[graph.uri] = root
        return graph

    def copy(self, graph: Graph) -> Graph:
        """Copy the files of a graph that this host created, and open the copy."""
        root = self._folder / f"g{len(self._graphs)}"
        shutil.copytree(self.folder_of(graph), root)
        return self.open(root)

    def folder_of(self, graph: Graph) -> Path:
        """Return the folder with the files of a graph."""
        return self._roots[graph.uri]

    def close(self) -> None:
        """Close all graphs."""
        for graph in self._graphs:
            graph.close()
        if self._server is not None:
            for url in self._roots:
                self._server.forget(url)


def open_again(graph: Graph, *, actor: str | None = None, durability: Durability = "os", **options: Any) -> Graph:
    """Open a graph a second time. With another durability, the two embedded graphs share nothing, as two processes."""
    if graph.is_remote:
        return omnigraph.open(graph.uri, token=actor, **options)
    return omnigraph.open(graph.uri, durability=durability, actor=actor, **options)


def act_as(graph: Graph, actor: str) -> Graph:
    """Open the same branch of a graph for another author of writes."""
    return open_again(graph, actor=actor, branch=graph.branch_name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses this module's `graphs` for each host."""
    if "graph_host" not in metafunc.fixturenames:
        return
    only_embedded = find_reason(Path(metafunc.module.__file__), metafunc.function.__name__)
    metafunc.parametrize("graph_host", HOSTS[:1] if only_embedded else HOSTS, indirect=True, scope="module")


@pytest.fixture(scope="session")
def graph_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    """One server for all tests of this process."""
    with thread_server(tmp_path_factory.mktemp("graph-server")) as server:
        yield server


@pytest.fixture(scope="module")
def graph_host(request: pytest.FixtureRequest) -> str:
    """Where the graphs of a test are: `embedded` or `remote`."""
    return str(request.param)


@pytest.fixture(scope="module")
def graphs(
    graph_host: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GraphHost]:
    """Create and open graphs for the tests of a module."""
    server = request.getfixturevalue("graph_server") if graph_host == "remote" else None
    host = GraphHost(tmp_path_factory.mktemp(graph_host), server)
    yield host
    host.close()
