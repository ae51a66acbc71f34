"""Requests that no friend sends: case 33, smuggling, deep and broken JSON, and large headers."""

import json
import socket
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from tests.rig.deployments import Deployment
from tests.rig.http_server import HttpServer, serving
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"
JSON_HEADER = {"Content-Type": "application/json"}


def exchange(server: HttpServer, data: bytes) -> tuple[int, bytes]:
    """Send bytes and return the status and the body of the first answer; (0, b"") if the connection was just closed."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as client:
        client.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer or b"}" not in answer:
            received = client.recv(65536)
            if not received:
                break
            answer += received
    if not answer:
        return 0, b""
    return int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff garbage\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX\x00Y: z\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_json(server: HttpServer, data: bytes) -> None:
    status, body = exchange(server, data)
    assert status == 400, body
    document = json.loads(body)
    assert (document["code"], document["kind"], len(document["request_id"]) > 0) == ("bad_request", "InputError", True)


def test_http_1_0_needs_no_host(server: HttpServer) -> None:
    assert exchange(server, b"GET /healthz HTTP/1.0\r\n\r\n")[0] == 200


def test_large_headers_are_431(server: HttpServer) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"
    assert exchange(server, head)[0] == 431
    assert exchange(server, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 431


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"query": 1}', 400),
        (b'{"query": "\xff"}', 400),
        (b'{"query": "\\ud800"}', 400),
        (b'{"query": "a\\u0000b"}', 400),
        (b'{"query": "match { $p: Person } return { $p.name }", "params": ' + b"[" * 100_000, 400),
        (b'{"query": "' + b"(" * 100_000 + b'"}', 400),
        (b'{"query": "match {' + b" not {" * 5_000 + b'"}', 400),
        (b'{"query": "x", "params": {"n": NaN}}', 400),
        (b'{"query": "' + b"a" * (1 << 20) + b'"}', 400),
        (b'{"query": "' + b"a" * (32 << 20) + b'"}', 413),
        (b'{"query": "match { $p: Person } return { $p.name }", "timeout": -1}', 400),
        (b'{"query": "match { $p: Person } return { $p.name }", "branch": "../../etc"}', 404),
        (b'{"query": "match { $p: Person } return { $p.name }", "snapshot": "HEAD~99999999999999999999"}', 400),
    ],
)
def test_broken_bodies_are_documented_errors(server: HttpServer, body: bytes, status: int) -> None:
    reply = server.post(f"{GRAPH}/query", body, headers=JSON_HEADER)
    assert reply.status == status, reply.body
    assert "error" in reply.json()


def test_a_body_needs_its_content_type_and_no_coding(server: HttpServer) -> None:
    assert server.post(f"{GRAPH}/query", b"{}", headers={"Content-Type": "text/json"}).status == 415
    assert server.request("POST", f"{GRAPH}/query", b"{}").status == 415
    coded = {**JSON_HEADER, "Content-Encoding": "gzip"}
    assert server.post(f"{GRAPH}/query", b"{}", headers=coded).status == 415


def test_a_wrong_method_names_the_right_ones(server: HttpServer) -> None:
    reply = server.request("PATCH", f"{GRAPH}/branches")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, POST")
    assert reply.json()["code"] == "method_not_allowed"
    assert server.get(f"{GRAPH}/nothing/here").json()["code"] == "not_found"
    assert server.get(f"{GRAPH}/branches/").status == 404


def test_a_request_id_is_kept_if_it_is_harmless(server: HttpServer) -> None:
    kept = server.get("/healthz", headers={"Omnigraph-Request-Id": "trace-1_A"})
    assert kept.headers["omnigraph-request-id"] == "trace-1_A"
    replaced = server.get("/nowhere", headers={"Omnigraph-Request-Id": "x" * 65})
    assert replaced.headers["omnigraph-request-id"] != "x" * 65
    assert replaced.json()["request_id"] == replaced.headers["omnigraph-request-id"]


SEGMENT = st.binary(min_size=1, max_size=24)


@given(segments=st.lists(SEGMENT, min_size=1, max_size=3), method=st.sampled_from(["GET", "POST", "DELETE"]))
def test_case_33_random_paths_are_client_errors(server: HttpServer, segments: list[bytes], method: str) -> None:
    path = "/".join(quote_from_bytes(segment, safe="") for segment in segments)
    for prefix in ("/", f"{GRAPH}/", f"{GRAPH}/branches/", f"{GRAPH}/commits/"):
        reply = server.request(method, prefix + path)
        assert 400 <= reply.status < 500, (prefix + path, reply.body)
        assert_harmless(reply.body)


@given(
    body=st.binary(max_size=200), route=st.sampled_from(["query", "mutate", "branches", "load", "schema/apply", "tags"])
)
def test_case_33_random_bodies_are_client_errors(server: HttpServer, body: bytes, route: str) -> None:
    reply = server.post(f"{GRAPH}/{route}", body, headers=JSON_HEADER)
    assert 400 <= reply.status < 500, reply.body
    assert_harmless(reply.body)


def assert_harmless(body: bytes) -> None:
    """An error in JSON without traces of storage or of our code."""
    text = json.loads(body)["error"]
    assert not any(trace in text for trace in ("Traceback", ".lance", "/tmp", "omnigraph/"))


def test_errors_never_show_where_a_graph_is_stored(deployment: Deployment, tmp_path: Path) -> None:
    uri = make_graph(deployment.new_root(tmp_path))
    with deployment.serving(tmp_path, uri, "--unauthenticated") as server:
        deployment.remove_data_files(uri)
        broken = server.query("match { $p: Person } return { $p.name }")
        assert broken.status == 500
        server.post(f"{GRAPH}/mutate", {"query": 'query x() { update Person set { age: 1 } where name = "ada" }'})
        server.post(f"{GRAPH}/export")
        server.get(f"{GRAPH}/diff?from=HEAD~1")
        for reply in server.replies:
            if reply.status >= 400:
                assert str(tmp_path).encode() not in reply.body
                assert uri.encode() not in reply.body
                assert b".lance" not in reply.body
        assert str(tmp_path) not in json.dumps(broken.json())


@pytest.mark.full
def test_half_a_header_is_closed_in_time(tmp_path: Path) -> None:
    uri = omnigraph.init(tmp_path / "graph", "node Lamp {}", durability="os").uri
    with serving(tmp_path, uri, "--unauthenticated") as server:
        assert exchange(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ")[0] == 408
