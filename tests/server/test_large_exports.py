"""A large export or streamed result to a slow client: the memory of the worker does not depend on its size.

The receive buffer of the client is small, but not tiny. With a window of four kilobytes, the kernel would have to
switch between the client and the worker more than a million times, and beside other work the test would seem to stall.
"""

import base64
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import omnigraph
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.timeouts import PATIENCE

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

MEGABYTES = int(os.environ.get("OMNIGRAPH_TEST_EXPORT_MEGABYTES", "500"))  # 5000 is the largest that was measured
ROWS_PER_COMMIT, TEXT_BYTES = 50, 3 << 18  # one MiB as text
MOST_GROWTH = 50 << 20
RECEIVE_BUFFER = 64 << 10
PAUSES = 10
IDLE_LANE = b'omnigraph_lane_calls{lane="heavy"} 0.0\n'
END = b"\r\n0\r\n\r\n"
SCHEMA = """
node Note { name: String @key  text: String }
node Line { number: I64 @key  text: String }
"""
LINES, LINE_BYTES = MEGABYTES << 10, 3 << 8  # one KiB as text
NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def graph_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A large graph, which has long texts in small fragments and short texts in a large one."""
    folder = tmp_path_factory.mktemp("exports")
    graph = omnigraph.init(folder / "graph", SCHEMA, durability="os")
    random = Random(7)  # storage cannot compress these texts
    texts = [base64.b64encode(random.randbytes(TEXT_BYTES)).decode() for _ in range(ROWS_PER_COMMIT)]
    for first in range(0, MEGABYTES, ROWS_PER_COMMIT):
        names = range(first, min(first + ROWS_PER_COMMIT, MEGABYTES))
        graph.insert("Note", *({"name": f"n{number:06}", "text": texts[number - first]} for number in names))
    lines = [base64.b64encode(random.randbytes(LINE_BYTES)).decode() for _ in range(LINES)]
    graph.load({"Line": pa.table({"number": range(LINES), "text": lines})}, mode="append", engine="local")
    return str(graph.uri)


@pytest.fixture
def server(graph_uri: str, tmp_path: Path) -> Iterator[HttpServer]:
    with serving(tmp_path, graph_uri, "--unauthenticated") as running:
        yield running


def test_a_large_export_to_a_slow_client_takes_little_memory(server: HttpServer) -> None:
    check_memory(server, request("export", {"type_names": ["Note"]}))


@pytest.mark.parametrize("media_type", [NDJSON, ARROW])
@pytest.mark.parametrize("type_name", ["Note", "Line"])
def test_a_large_streamed_result_to_a_slow_client_takes_little_memory(
    server: HttpServer, media_type: str, type_name: str
) -> None:
    query = f"match {{ $n: {type_name} }} return {{ $n.text }}"
    check_memory(server, request("query", {"query": query}, media_type))


def check_memory(server: HttpServer, sent: bytes) -> None:
    (worker,) = workers_of(server)
    read_response(server, worker, sent, most_bytes=16 << 20)  # fills caches and thread pools
    before = resident_bytes(worker)
    size, end, peak = read_response(server, worker, sent)
    print(f"{size >> 20} MiB received, memory grew by at most {(peak - before) >> 20} MiB")
    assert size > MEGABYTES << 20
    assert end == END, "the response is complete"
    assert peak - before < MOST_GROWTH


def request(path: str, document: object, media_type: str = NDJSON) -> bytes:
    body = json.dumps(document).encode()
    headers = {
        "Host": "x",
        "Accept": media_type,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /graphs/default/{path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def read_response(
    server: HttpServer, worker: int, sent: bytes, most_bytes: int | None = None
) -> tuple[int, bytes, int]:
    """Read a response in small pieces; return its size, its last bytes, and the highest memory of the worker.

    The client pauses a few times until the worker waits for it.
    """
    size, end, peak = 0, b"", 0
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", server.port))
        client.sendall(sent)
        while data := client.recv(1 << 14):
            if size >> 20 != (size + len(data)) >> 20:
                peak = max(peak, resident_bytes(worker))
                if (size >> 20) % max(MEGABYTES // PAUSES, 1) == 0:
                    wait_until(lambda: all(IDLE_LANE in server.get("/metrics").body for _ in range(5)))
            size, end = size + len(data), (end + data)[-len(END) :]
            if most_bytes is not None and size > most_bytes:
                break
    return size, end, peak


def resident_bytes(process: int) -> int:
    """The memory of a process, without the pages of files that it has mapped."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
