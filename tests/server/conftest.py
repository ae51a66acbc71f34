"""Servers for tests: one open server with one graph, which most tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from tests.rig.deployments import DEPLOYMENTS, Deployment, deployed
from tests.rig.http_server import HttpServer

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  seen: DateTime?  score: F64?  bio: String? @index }
node Doc { slug: String @key  title: String?  body: Blob?  body_media_type: String? }
edge Knows: Person -> Person { since: I32? }
edge Wrote: Person -> Doc
"""


def make_graph(root: Path | str, schema: str = SCHEMA) -> str:
    """A graph with a few people, a commit each."""
    graph = omnigraph.init(root, schema, durability="os")
    graph.insert("Person", {"name": "ada", "age": 36, "score": 1.5}, {"name": "bob", "age": 40})
    graph.connect_nodes("Knows", [("ada", "bob", {"since": 2020})])
    return graph.uri


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def deployment(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    """One worker on disk; with the mark `full` also four workers, and graphs in S3."""
    workers, storage = request.param
    s3_server = request.getfixturevalue("s3_server") if storage == "s3" else None
    with deployed(workers, s3_server) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def server(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """An open server with one graph; tests of a module share it and work on branches of their own."""
    folder = tmp_path_factory.mktemp("server")
    uri = make_graph(deployment.new_root(folder))
    with deployment.serving(folder, uri, "--unauthenticated") as running:
        yield running


@pytest.fixture
def branch(server: HttpServer, request: pytest.FixtureRequest) -> str:
    """A branch of this test, from main."""
    name = f"b/{request.node.name.replace('[', '-').replace(']', '')}"[:100]
    reply = server.post("/graphs/default/branches", {"name": name})
    assert reply.status == 200, reply.body
    return name
