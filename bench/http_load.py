"""HTTP clients that send requests to a local server and measure the CPU time that the server uses."""

import http.client
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
JSON_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to send."""

    method: str
    path: str
    body: bytes | None = None
    accept: str = "application/json"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The number of completed requests, the elapsed time, and the CPU time of the server."""

    requests: int
    seconds: float
    server_cpu_seconds: float

    @property
    def per_second(self) -> float:
        """The number of requests per second."""
        return self.requests / self.seconds

    @property
    def cpu_micros(self) -> float:
        """The CPU time per request in microseconds."""
        return self.server_cpu_seconds / self.requests * 1e6


class LocalClient:
    """A client for one server with a keep-alive connection per thread."""

    def __init__(self, port: int) -> None:
        self._port, self._local = port, threading.local()

    def send(self, request: Request) -> bytes:
        """Send a request, and return the body of the response. Raise an error if the status is not 200."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        connection.request(request.method, request.path, request.body, {**JSON_HEADERS, "Accept": request.accept})
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{request.method} {request.path}: {response.status} {body[:300]!r}")
        return body


def run_clients(
    port: int, server_pid: int, client_count: int, make_requests: Callable[[int], Sequence[Request]]
) -> LoadReport:
    """Run several clients at the same time. `make_requests` returns the requests of the client with a given number."""
    client, planned = LocalClient(port), [make_requests(number) for number in range(client_count)]
    start = threading.Barrier(client_count + 1)

    def send_all(requests: Sequence[Request]) -> None:
        start.wait()
        for request in requests:
            client.send(request)

    with ThreadPoolExecutor(client_count) as pool:
        running = [pool.submit(send_all, requests) for requests in planned]
        cpu_before = cpu_seconds(server_pid)
        start.wait()
        started = perf_counter()
        for future in running:
            future.result()
        seconds = perf_counter() - started
    return LoadReport(sum(map(len, planned)), seconds, cpu_seconds(server_pid) - cpu_before)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process and its running children have used, in seconds."""
    process = Path("/proc", str(pid))
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    own_ticks = int(fields[11]) + int(fields[12])
    children = (process / "task" / str(pid) / "children").read_text().split()
    return own_ticks / _TICKS_PER_SECOND + sum(cpu_seconds(int(child)) for child in children)
