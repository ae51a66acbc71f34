"""Measure the latency of point lookups, first alone and then with a thousand other connections.

Of the other connections, 800 are idle, 100 do not read their responses, and 100 send an incomplete request. Prints the
50th and 99th percentiles of both measurements, and their ratios. The argument is the number of lookups in a round
(4,000 by default).
"""

import json
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

from bench.http_load import JSON_HEADERS, LocalClient
from bench.server import ALL_ROWS, ROWS, lookup_of, make_graph, serving_graph
from tests.rig.http_server import HttpServer

CLIENTS, IDLE, SLOW, INCOMPLETE = 16, 800, 100, 100


def measure_lookups(server: HttpServer, lookups: int) -> list[float]:
    """Return the sorted durations of the lookups, in seconds."""
    client = LocalClient(server.port)

    def look_up(number: int) -> float:
        started = perf_counter()
        client.send(lookup_of(number * 7919 % ROWS))
        return perf_counter() - started

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sorted(pool.map(look_up, range(lookups)))


@contextmanager
def other_clients(server: HttpServer) -> Iterator[None]:
    """Connect clients that are idle after a request, do not read a large response, or send half a header."""
    query = _request_bytes(json.dumps({"query": ALL_ROWS}).encode())
    lookup = _request_bytes(lookup_of(1).body or b"")
    with ExitStack() as stack:
        for data in (*[lookup] * IDLE, *[query] * SLOW, *[b"GET /healthz HTTP/1.1\r\nX-A: "] * INCOMPLETE):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(data)
            if data in (lookup, query):
                client.recv(1)  # the response has begun
        yield


def _request_bytes(body: bytes) -> bytes:
    headers = {"Host": "x", **JSON_HEADERS, "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /graphs/default/query HTTP/1.1\r\n{lines}\r\n".encode() + body


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values."""
    return seconds[min(int(len(seconds) * share), len(seconds) - 1)]


def main(lookups: int) -> None:
    """Measure lookups without and with the other connections, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        root = str(Path(name, "graph"))
        make_graph(root)
        with serving_graph(Path(name), root) as server:
            measure_lookups(server, lookups)
            alone = measure_lookups(server, lookups)
            with other_clients(server):
                beside_others = measure_lookups(server, lookups)
    print(f"\n{lookups} point lookups by {CLIENTS} clients\n{'':>5} {'alone ms':>9} {'loaded ms':>10} {'ratio':>6}")
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        before, after = percentile(alone, share) * 1e3, percentile(beside_others, share) * 1e3
        print(f"{label:>5} {before:>9.2f} {after:>10.2f} {after / before:>6.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
