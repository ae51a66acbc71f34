"""Loads and exports over HTTP: cases 12, 13, 14, 23, 24 and 25 of the server's conformance list."""

import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet
import pytest

import omnigraph
from tests.rig.deployments import Deployment
from tests.rig.http_server import HttpServer, wait_until, workers_of
from tests.rig.timeouts import PATIENCE
from tests.server.conftest import SCHEMA, make_graph

GRAPH = "/graphs/default"
NDJSON = {"Content-Type": "application/x-ndjson"}
NAMES = "match { $p: Person } return { $p.name } order { $p.name }"


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def person(name: str, **values: object) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, **values}}


def test_case_12_a_load_needs_its_content_type(server: HttpServer) -> None:
    reply = server.post(f"{GRAPH}/load/ndjson", lines(person("x")), headers={"Content-Type": "text/plain"})
    assert reply.status == 415


def test_case_12_a_load_beyond_the_limit_is_413_before_it_is_read(server: HttpServer) -> None:
    connection = server.connect()
    connection.putrequest("POST", f"{GRAPH}/load/ndjson")
    connection.putheader("Content-Type", "application/x-ndjson")
    connection.putheader("Content-Length", str(33 << 20))
    connection.endheaders()
    response = connection.getresponse()  # not one byte of the body was sent
    limit = json.loads(response.read())["resource_limit"]
    connection.close()
    assert response.status == 413
    assert (limit["resource"], limit["limit"]) == ("graph_batch_request_bytes", 33554432)


def test_case_12_an_endless_chunked_body_is_413(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        head = f"POST {GRAPH}/load/ndjson HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        client.setblocking(True)
        answer = b""
        for _ in range(64):
            try:
                client.sendall(chunk)
            except OSError:
                break
            client.settimeout(0.01)
            try:
                answer += client.recv(65536)
            except TimeoutError:
                client.settimeout(None)
                continue
            break
        client.settimeout(30)
        while b"}" not in answer:
            received = client.recv(65536)
            if not received:
                break
            answer += received
    assert b"413" in answer.split(b"\r\n")[0]


def test_case_13_a_missing_branch_is_created_only_from_another(server: HttpServer) -> None:
    body = lines(person("carol"))
    missing = server.post(f"{GRAPH}/load/ndjson?branch=import", body, headers=NDJSON)
    assert missing.status == 404
    assert "from" in missing.json()["hint"]
    assert "import" not in server.get(f"{GRAPH}/branches").json()["branches"]
    path = f"{GRAPH}/load/ndjson?branch=import&from=main&mode=append"
    created = server.post(path, body, headers=NDJSON).json()
    assert (created["branch_created"], created["base_branch"]) == (True, "main")
    repeated = server.post(path, lines(person("dave")), headers=NDJSON).json()
    assert (repeated["branch_created"], repeated["base_branch"]) == (False, "main")


def test_case_14_one_bad_line_means_that_nothing_is_loaded(server: HttpServer, branch: str) -> None:
    head = server.head(quote(branch, safe=""))
    body = lines(person("carol"), {"edge": "Knows", "from": "carol", "to": "nobody"})
    reply = server.post(f"{GRAPH}/load/ndjson?branch={quote(branch, safe='')}", body, headers=NDJSON)
    assert reply.status == 400
    assert reply.json()["effect"] == "none"
    assert server.head(quote(branch, safe="")) == head


def test_a_load_in_a_json_document_reports_its_counts(server: HttpServer, branch: str) -> None:
    data = lines(person("carol"), {"edge": "Knows", "from": "carol", "to": "ada"}).decode()
    reply = server.post(f"{GRAPH}/load", {"data": data, "branch": branch, "mode": "append"})
    document = reply.json()
    assert document["nodes"] == [{"name": "Person", "entities_loaded": 1}]
    assert document["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    assert document["total_entities"] == 2
    assert document["commit"]["graph_branch"] == branch


def test_arrow_and_parquet_are_loaded_by_type(server: HttpServer, branch: str) -> None:
    table = pa.table({"name": ["x1", "x2"], "age": pa.array([1, 2], pa.int32())})
    stream, file = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    pyarrow.parquet.write_table(table.replace_schema_metadata(None), file)
    at = f"type=Person&mode=merge&branch={quote(branch, safe='')}"
    arrow = {"Content-Type": "application/vnd.apache.arrow.stream"}
    assert server.post(f"{GRAPH}/load/arrow?{at}", stream.getvalue(), headers=arrow).json()["total_entities"] == 2
    parquet = {"Content-Type": "application/vnd.apache.parquet"}
    again = server.post(f"{GRAPH}/load/parquet?{at}", file.getvalue(), headers=parquet)
    assert again.json()["commit"] is None, "the same entities are already there"
    keyed = {**arrow, "Idempotency-Key": "arrow-1"}
    for number, status in ((7, 200), (7, 200), (8, 400)):
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table.set_column(1, "age", pa.array([number, number], pa.int32())))
        assert server.post(f"{GRAPH}/load/arrow?{at}", stream.getvalue(), headers=keyed).status == status
    assert server.post(f"{GRAPH}/load/arrow?{at}", b"no arrow", headers=arrow).status == 400
    assert server.post(f"{GRAPH}/load/parquet?{at}", b"no parquet", headers=parquet).status == 400
    assert server.post(f"{GRAPH}/load/arrow", stream.getvalue(), headers=arrow).status == 400, "the type is missing"


def test_a_load_on_a_condition_and_with_a_key(server: HttpServer, branch: str) -> None:
    path, head = f"{GRAPH}/load/ndjson", server.head()
    at = f"branch={quote(branch, safe='')}&mode=append"
    headers = {**NDJSON, "Idempotency-Key": "load-1"}
    first = server.post(f"{path}?{at}", lines(person("k1")), headers=headers)
    second = server.post(f"{path}?{at}", lines(person("k1")), headers=headers)
    assert second.headers["idempotent-replay"] == "true"
    assert second.json()["commit"] == first.json()["commit"]
    other = server.post(f"{path}?{at}", lines(person("k9")), headers=headers)
    assert (other.status, other.json()["details"]["reason"]) == (400, "key reused")
    stale = {**NDJSON, "Omnigraph-If-Graph-Commit": head}
    assert server.post(f"{path}/if-graph-commit?{at}", lines(person("k2")), headers=stale).status == 412


def test_case_23_an_export_can_be_loaded_and_exported_again(
    deployment: Deployment, server: HttpServer, tmp_path: Path
) -> None:
    exported = server.post(f"{GRAPH}/export")
    assert exported.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    copy = deployment.init(tmp_path, SCHEMA)
    copy.load(io.BytesIO(exported.body), mode="append")
    assert b"".join(copy.export()) == exported.body
    only = server.post(f"{GRAPH}/export", {"type_names": ["Knows"]}).body
    assert {json.loads(line).get("edge") for line in only.splitlines()} == {"Knows"}


def test_an_export_refuses_unknown_members_and_types(server: HttpServer) -> None:
    assert server.post(f"{GRAPH}/export", {"types": ["Person"]}).status == 400
    assert server.post(f"{GRAPH}/export", {"type_names": ["Nothing"]}).status == 400


@pytest.fixture(scope="module")
def large_server(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A graph whose export is larger than the buffers between the server and a client; one export at a time."""
    folder = tmp_path_factory.mktemp("large")
    uri = make_graph(deployment.new_root(folder))
    bio = "x" * 1000
    omnigraph.open(uri).insert("Person", *({"name": f"p{number:06}", "bio": bio} for number in range(12_000)))
    with deployment.serving(folder, uri, "--unauthenticated", "--export-slots", "1") as running:
        yield running


def begin_export(server: HttpServer) -> socket.socket:
    """A client that reads the head of an export and then no more."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.port))
    head = f"POST {GRAPH}/export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    client.sendall(head.encode())
    assert client.recv(1024).startswith(b"HTTP/1.1 200")
    return client


def test_case_24_a_stalled_export_holds_its_slot_until_the_client_leaves(large_server: HttpServer) -> None:
    stalled = begin_export(large_server)
    refused = large_server.post(f"{GRAPH}/export")
    assert refused.status == 413
    assert refused.json()["resource_limit"]["resource"] == "stream_export_slots"
    assert "retry-after" in refused.headers
    stalled.close()
    while (reply := large_server.post(f"{GRAPH}/export")).status == 413:
        time.sleep(0.05)
    assert reply.status == 200
    assert reply.body.count(b"\n") == 12_003


def test_case_25_a_late_failure_breaks_the_body(deployment: Deployment, tmp_path: Path) -> None:
    uri = make_graph(deployment.new_root(tmp_path))
    bio = "x" * 1000
    graph = omnigraph.open(uri)
    graph.insert("Person", *({"name": f"p{number:06}", "bio": bio} for number in range(12_000)))
    with deployment.serving(tmp_path, uri, "--unauthenticated") as server:
        client = begin_export(server)
        deployment.remove_data_files(uri)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)  # now the client is fast
        received = b""
        while data := client.recv(1 << 20):
            received += data
        client.close()
        assert not received.endswith(b"0\r\n\r\n"), "the end of a complete body"
        assert received.count(b'"type":"Person"') < 12_000
        assert server.get("/healthz").status == 200


def test_a_large_result_waits_on_disk_for_a_slow_client(large_server: HttpServer) -> None:
    body = json.dumps({"query": "match { $p: Person } return { $p.name, $p.bio } order { $p.name }"}).encode()
    head = f"POST {GRAPH}/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", large_server.port))
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: unlinked_files(large_server) == 1)  # the client has read nothing yet
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        received = b"".join(iter(lambda: client.recv(1 << 20), b""))
    rows = json.loads(received.partition(b"\r\n\r\n")[2])["rows"]
    assert [row["p.name"] for row in rows[2:]] == [f"p{number:06}" for number in range(12_000)]
    wait_until(lambda: unlinked_files(large_server) == 0)


def unlinked_files(server: HttpServer) -> int:
    """How many temporary files of bodies the workers have open."""
    folders = [Path(f"/proc/{worker}/fd") for worker in workers_of(server)]
    targets = []
    for entry in (entry for folder in folders for entry in folder.iterdir()):
        with suppress(OSError):
            targets.append(str(entry.readlink()))
    return sum("omnigraph-server-" in target and target.endswith("(deleted)") for target in targets)


def read_calls(server: HttpServer) -> float:
    """How many calls run or wait in the lane of reads, beside the one that asks."""
    (line,) = [line for line in server.get("/metrics").body.decode().splitlines() if 'lane_calls{lane="read"}' in line]
    return float(line.rpartition(" ")[2]) - 1


def test_a_query_stops_when_its_client_leaves(large_server: HttpServer) -> None:
    # Twelve million pairs are sorted, which takes a while but stays far below the memory limit.
    pairs = '$a: Person  $b: Person  $a.name < "p003500"  $b.name < "p003500"  $a.name != $b.name'
    text = f"match {{ {pairs} }} return {{ $a.name as x, $b.name as y }} order {{ $a.name, $b.name }} limit 5"
    body = json.dumps({"query": text}).encode()
    connection = large_server.connect()
    connection.request("POST", f"{GRAPH}/query", body, {"Content-Type": "application/json"})
    wait_until(lambda: read_calls(large_server) == 1)
    connection.close()
    wait_until(lambda: read_calls(large_server) == 0)
    assert "status=499" in large_server.log.read_text()
