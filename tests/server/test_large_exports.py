"""A large export to a slow client: the memory of the worker does not depend on its size.

The receive buffer of the client is small, but not tiny. With a window of four kilobytes, the kernel would have to
switch between the client and the worker more than a million times, and beside other work the test would seem to stall.
"""

import base64
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

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
EXPORT = b"POST /graphs/default/export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
END = b"\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with one large graph."""
    folder = tmp_path_factory.mktemp("exports")
    graph = omnigraph.init(folder / "graph", "node Note { name: String @key  text: String }", durability="os")
    random = Random(7)  # storage cannot compress these texts
    texts = [base64.b64encode(random.randbytes(TEXT_BYTES)).decode() for _ in range(ROWS_PER_COMMIT)]
    for first in range(0, MEGABYTES, ROWS_PER_COMMIT):
        names = range(first, min(first + ROWS_PER_COMMIT, MEGABYTES))
        graph.insert("Note", *({"name": f"n{number:06}", "text": texts[number - first]} for number in names))
    with serving(folder, graph.uri, "--unauthenticated") as running:
        yield running


def test_a_large_export_to_a_slow_client_takes_little_memory(server: HttpServer) -> None:
    (worker,) = workers_of(server)
    read_export(server, worker, most_bytes=16 << 20)  # fills caches and thread pools
    before = resident_bytes(worker)
    size, end, peak = read_export(server, worker)
    print(f"{size >> 20} MiB exported, memory grew by at most {(peak - before) >> 20} MiB")
    assert size > MEGABYTES << 20
    assert end == END, "the export is complete"
    assert peak - before < MOST_GROWTH


def read_export(server: HttpServer, worker: int, most_bytes: int | None = None) -> tuple[int, bytes, int]:
    """Read an export in small pieces; return its size, its last bytes, and the highest memory of the worker.

    The client pauses a few times until the worker waits for it.
    """
    size, end, peak = 0, b"", 0
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", server.port))
        client.sendall(EXPORT + b"Connection: close\r\n\r\n{}")
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
