"""How responses end: clients without chunked encoding, and clients that never read."""

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import uvicorn

import omnigraph
from omnigraph.server.access.shared_usage import SharedUsage, create_usage_file
from omnigraph.server.app import ServerApp
from omnigraph.server.process.http_protocol import LimitedProtocol
from omnigraph.server.process.worker import build_state
from omnigraph.server.routes import ROUTES
from omnigraph.server.settings import GraphLocation, RequestLimits, ServerSettings
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.stalled_file import edge_file
from tests.rig.timeouts import PATIENCE

SCHEMA = "node Note { name: String @key  text: String }\nedge Cites: Note -> Note"
NOTES, TEXT = 200, "x" * 100_000  # more than the sockets of a connection can hold
JSON = "Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def graph_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = omnigraph.init(tmp_path_factory.mktemp("ends") / "graph", SCHEMA, durability="os")
    graph.insert("Note", *({"name": f"n{number:04}", "text": TEXT} for number in range(NOTES)))
    graph.connect_nodes("Cites", [("n0000", "n0001", {})])
    return graph.uri


@pytest.fixture(scope="module")
def server(graph_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("server"), graph_uri, "--unauthenticated") as running:
        yield running


def connect(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), PATIENCE)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    return client


def begin(client: socket.socket, path: str, body: str = "{}", version: str = "1.0", headers: str = JSON) -> None:
    head = f"POST /graphs/default/{path} HTTP/{version}\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    client.sendall(f"{head}{body}".encode())


def read_to_end(client: socket.socket) -> tuple[bytes, bytes]:
    """The headers and the body, which end with the connection."""
    received = b"".join(iter(lambda: client.recv(1 << 20), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    return head.lower(), body


def test_a_client_of_http_1_0_gets_streams_without_chunks(server: HttpServer) -> None:
    whole = server.post("/graphs/default/export").body
    with closing(connect(server.port)) as client:
        begin(client, "export")
        head, body = read_to_end(client)
    assert head.startswith(b"http/1.1 200")
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    assert body == whole


@pytest.mark.parametrize("accept", ["gzip, deflate, br", "identity", "*;q=0.5", "identity;q=0, gzip"])
def test_streams_are_never_compressed(server: HttpServer, accept: str) -> None:
    whole = server.post("/graphs/default/export").body
    reply = server.post("/graphs/default/export", headers={"Accept-Encoding": accept})
    assert "content-encoding" not in reply.headers
    assert reply.body == whole


def test_other_responses_to_http_1_0_have_a_length(server: HttpServer) -> None:
    with closing(connect(server.port)) as client:
        begin(client, "export", '{"type_names": ["Nothing"]}')
        head, body = read_to_end(client)
    assert head.startswith(b"http/1.1 400")
    assert b"content-length: %d" % len(body) in head


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_broken_stream_to_http_1_0_is_reset(graph_uri: str, tmp_path: Path, is_killed: bool) -> None:
    uri = str(shutil.copytree(graph_uri, tmp_path / "graph"))
    with serving(tmp_path, uri, "--unauthenticated") as server, closing(connect(server.port)) as client:
        begin(client, "export")
        client.recv(1)
        if is_killed:
            (worker,) = workers_of(server)
            os.kill(worker, signal.SIGKILL)
        else:
            edge_file(uri).unlink()  # the export reads edges after nodes
        with pytest.raises(ConnectionResetError):
            read_to_end(client)


@contextmanager
def serve_with_limits(uri: str, limits: RequestLimits) -> Iterator[tuple[uvicorn.Server, int]]:
    """A worker in a thread, with limits that the command line does not offer."""
    settings = ServerSettings(graphs=(GraphLocation("default", uri),), unauthenticated=True, limits=limits)
    state = build_state(settings, SharedUsage(create_usage_file(1), 0))
    app = ServerApp(state, ROUTES)
    config = uvicorn.Config(app, loop="uvloop", http=LimitedProtocol, lifespan="off", ws="none", log_config=None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield server, listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
            state.lanes.close()


@pytest.mark.parametrize("path", ["export", "changes/baseline"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_connection_of_a_client_that_never_reads_is_closed(graph_uri: str, version: str, path: str) -> None:
    limits = RequestLimits(write_seconds=0.1, export_slots=1)
    with serve_with_limits(graph_uri, limits) as (server, port), closing(connect(port)) as client:
        begin(client, path, version=version)
        client.recv(1)
        wait_until(lambda: not server.server_state.connections)
        with closing(connect(port)) as other:
            begin(other, path, version="1.0", headers=JSON)
            assert other.recv(12) == b"HTTP/1.1 200", "the export slot is free"
        with pytest.raises(ConnectionResetError):
            read_to_end(client)


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"])
def test_the_connection_of_a_client_that_never_reads_a_result_is_closed(graph_uri: str, accept: str) -> None:
    body = json.dumps({"query": "match { $n: Note } return { $n.name, $n.text }"})
    limits = RequestLimits(write_seconds=0.1)
    with serve_with_limits(graph_uri, limits) as (server, port), closing(connect(port)) as client:
        begin(client, "query", body, version="1.1", headers=f"{JSON}Accept: {accept}\r\n")
        client.recv(1)
        wait_until(lambda: not server.server_state.connections)
        with pytest.raises(ConnectionResetError):
            read_to_end(client)
