"""Streams beside other requests: a running stream survives a full lane, and event streams fail and poll together."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import omnigraph
from tests.rig.http_server import HttpServer, serving, wait_until
from tests.rig.stalled_file import edge_file, stalled

GRAPH = "/graphs/default"
SCHEMA = """
node Person { name: String @key  bio: String }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE, BIO = 30_000, "x" * 1000  # more than the sockets of a connection can hold
ALL = "match { $p: Person } return { $p.name, $p.bio }"
EDGES = "match { $p: Person  $p knows $q } return { $p.name, $q.name }"
READ_CALLS = 'omnigraph_lane_calls{lane="read"}'
HEAVY_CALLS = 'omnigraph_lane_calls{lane="heavy"}'
LANE_CALLS = 8 + 256  # the threads of a lane, and its queue


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("streams")
    graph = omnigraph.init(folder / "graph", SCHEMA, durability="os")
    names = [f"p{number}" for number in range(PEOPLE)]
    graph.load({"Person": pa.table({"name": names, "bio": [BIO] * PEOPLE})}, mode="append", engine="local")
    graph.connect_nodes("Knows", [("p0", "p1", {"since": 2020})])
    with serving(folder, graph.uri, "--unauthenticated") as running:
        yield running


def metric(server: HttpServer, name: str) -> float:
    text = server.get("/metrics").body.decode()
    match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else 0.0


def start_diff(server: HttpServer) -> socket.socket:
    """Send a request that runs in the lane for heavy work, and do not wait for its response."""
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(f"GET {GRAPH}/diff?from=HEAD~1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return client


def test_a_running_stream_is_not_cut_when_its_lane_is_full(server: HttpServer) -> None:
    root = str(server.log.parent / "graph")
    with ExitStack() as stack:
        connection = stack.enter_context(closing(server.connect()))
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        connection.request("POST", f"{GRAPH}/query", json.dumps({"query": ALL}), headers)
        response = connection.getresponse()
        wait_until(lambda: metric(server, HEAVY_CALLS) == 0)  # the stream waits for its client
        file = stack.enter_context(stalled(edge_file(root)))
        clients = [stack.enter_context(start_diff(server)) for _ in range(LANE_CALLS)]
        wait_until(lambda: metric(server, HEAVY_CALLS) >= LANE_CALLS)
        assert server.get(f"{GRAPH}/status").status == 503, "the lane accepts no further request"
        reading = stack.enter_context(ThreadPoolExecutor(1)).submit(response.read)
        wait_until(lambda: reading.done() or metric(server, HEAVY_CALLS) > LANE_CALLS)
        file.release()
        assert len(reading.result().splitlines()) == PEOPLE
        for client in clients:
            assert client.recv(5) == b"HTTP/"


def test_a_stream_is_closed_after_the_call_that_its_client_abandoned(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="os")
    graph.insert("Person", *({"name": name, "bio": BIO} for name in ("p0", "p1")))
    graph.connect_nodes("Knows", [("p0", "p1", {"since": 2020})])
    body = json.dumps({"query": EDGES}).encode()
    headers = {"Host": "x", "Accept": "application/x-ndjson", "Content-Type": "application/json"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | {"Content-Length": len(body)}).items())
    with serving(tmp_path, graph.uri, "--unauthenticated") as server:
        with stalled(edge_file(graph.uri)) as file:
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(f"POST {GRAPH}/query HTTP/1.1\r\n{lines}\r\n".encode() + body)
                wait_until(lambda: running_calls(server) > 0)
            for _ in range(3):  # gives the server time to notice that the client has left
                server.get("/healthz")
            file.release()
        wait_until(lambda: running_calls(server) == 0)
        assert "RuntimeError" not in server.log.read_text()


def running_calls(server: HttpServer) -> float:
    """The number of calls in both lanes, without the one that asks."""
    return metric(server, HEAVY_CALLS) + metric(server, READ_CALLS) - 1


def follow(server: HttpServer, branch: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = server.connect()
    connection.request("GET", f"{GRAPH}/changes/stream?branch={quote(branch, safe='')}")
    response = connection.getresponse()
    assert (response.status, response.readline()) == (200, b": connected\n")
    return connection, response


def test_an_event_stream_that_fails_is_broken_and_logged_with_its_status(server: HttpServer) -> None:
    assert server.post(f"{GRAPH}/branches", {"name": "followed"}).status == 200
    connection, response = follow(server, "followed")
    with closing(connection):
        assert server.delete(f"{GRAPH}/branches/followed").status == 200
        with pytest.raises(http.client.IncompleteRead):
            response.read()
    wait_until(lambda: bool(log_lines(server, "/changes/stream")))
    lines = log_lines(server, "/changes/stream")
    assert [re.findall(r"status=(\d+)", line) for line in lines if "INFO request" in line] == [["200"]]
    assert "BranchNotFound" in "".join(lines)


def log_lines(server: HttpServer, route: str) -> list[str]:
    lines = [line for line in server.log.read_text().splitlines() if f"{{graph_id}}{route}" in line]
    return lines if any("INFO request" in line for line in lines) else []


def test_the_subscribers_of_a_branch_share_one_poll(server: HttpServer) -> None:
    assert server.post(f"{GRAPH}/branches", {"name": "shared"}).status == 200
    with ExitStack() as stack:
        streams = [follow(server, "shared") for _ in range(5)]
        for connection, _ in streams:
            stack.enter_context(closing(connection))
        heads, pages = 'omnigraph_feed_reads_total{kind="head"}', 'omnigraph_feed_reads_total{kind="page"}'
        wait_until(lambda: metric(server, heads) >= 3)
        idle_pages, polled = metric(server, pages), metric(server, heads)
        wait_until(lambda: metric(server, heads) >= polled + 3)
        assert metric(server, pages) == idle_pages, "an idle branch is not read for each subscriber"
        add = {"query": 'query add() { insert Person { name: "new", bio: "" } }', "branch": "shared"}
        assert server.post(f"{GRAPH}/mutate", add).status == 200
        for _, response in streams:
            lines = [response.readline() for _ in range(4)]
            assert any(line.startswith(b"data: ") and b'"new"' in line for line in lines), lines


def test_a_client_that_leaves_while_a_chunk_is_read_releases_its_slot(server: HttpServer, tmp_path: Path) -> None:
    root = str(server.log.parent / "graph")
    with serving(tmp_path, root, "--unauthenticated", "--export-slots", "1") as limited, ExitStack() as stack:
        file = stack.enter_context(stalled(edge_file(root)))
        connection = stack.enter_context(closing(limited.connect()))
        connection.request("POST", f"{GRAPH}/export", b"{}", {"Content-Type": "application/json"})
        response = connection.getresponse()
        line_count = 0
        while line_count < PEOPLE - 80:  # the last people are in the chunk that waits for the edges
            line_count += response.read1(1 << 16).count(b"\n")
        wait_until(lambda: metric(limited, HEAVY_CALLS) == 1)
        response.close()
        connection.close()
        only_people = {"type_names": ["Person"]}
        assert limited.post(f"{GRAPH}/export", only_people).status == 413, "a thread still reads for the export"
        file.release()
        wait_until(lambda: limited.post(f"{GRAPH}/export", only_people).status == 200)
        wait_until(lambda: "status=499" in limited.log.read_text())
        assert "Traceback" not in limited.log.read_text()
