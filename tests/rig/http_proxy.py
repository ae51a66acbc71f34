"""A proxy in front of a server, for tests of clients: it forwards requests, or answers them itself.

A test appends to `answers` what the next requests receive instead of the server's answer. It appends the last segment
of a path to `lost_segments` to lose the server's answer to the next change with such a path. The proxy records every
request that it receives, so a test can count how often a request was sent.
"""

import http.client
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.rig.timeouts import PATIENCE

_OWN_HEADERS = {"connection", "content-length", "transfer-encoding", "date", "server"}


@dataclass(frozen=True)
class Canned:
    """An answer of the proxy. With `cut`, the connection is closed after the first bytes of the body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Forwarded:
    """The server's answer, of which only the first bytes of the body arrive."""

    body_bytes: int = 0
    chunked: bool = False


@dataclass(frozen=True)
class Received:
    """A request as the proxy received it."""

    method: str
    path: str
    headers: Mapping[str, str]


class HttpProxy:
    """A running proxy."""

    def __init__(self, port: int, upstream_port: int | None) -> None:
        self.port, self.upstream_port = port, upstream_port
        self.answers: deque[Canned | Forwarded] = deque()
        self.lost_segments: list[str] = []
        self.requests: list[Received] = []

    @property
    def url(self) -> str:
        """The address of the graph behind the proxy."""
        return f"http://127.0.0.1:{self.port}/graphs/default"

    def paths(self, method: str) -> list[str]:
        """The last segment of the path of every request with a method."""
        paths = [request.path.partition("?")[0] for request in self.requests if request.method == method]
        return [path.rpartition("/")[2] for path in paths]


@contextmanager
def proxying(upstream_port: int | None = None) -> Iterator[HttpProxy]:
    """A proxy in front of a server on a port of this machine, or one without a server."""
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    listener.daemon_threads = True
    proxy = HttpProxy(listener.server_address[1], upstream_port)
    listener.proxy = proxy  # type: ignore[attr-defined]
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self._read_body()
        proxy: HttpProxy = self.server.proxy  # type: ignore[attr-defined]
        proxy.requests.append(Received(self.command, self.path, dict(self.headers)))
        answer = proxy.answers.popleft() if proxy.answers else None
        segment = self.path.partition("?")[0].rpartition("/")[2]
        if self.command != "GET" and segment in proxy.lost_segments:
            proxy.lost_segments.remove(segment)
            answer = Forwarded(body_bytes=5)
        if isinstance(answer, Canned):
            self._send(answer, len(answer.body))
        else:
            self._forward(proxy.upstream_port, body, answer)

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _forward(self, upstream_port: int | None, body: bytes, cut: Forwarded | None) -> None:
        assert upstream_port is not None, f"no answer is left for {self.command} {self.path}"
        connection = http.client.HTTPConnection("127.0.0.1", upstream_port, timeout=PATIENCE)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN_HEADERS}
        try:
            connection.request(self.command, self.path, body or None, headers)
        except ConnectionRefusedError:
            self.close_connection = True
            return
        response = connection.getresponse()
        answer_headers = {name: value for name, value in response.getheaders() if name.lower() not in _OWN_HEADERS}
        answer = Canned(response.status, response.read(), answer_headers)
        length = response.getheader("Content-Length") if self.command == "HEAD" else None
        connection.close()
        if cut is None:
            self._send(answer, len(answer.body) if length is None else int(length))
        elif cut.chunked:
            self._send_cut_chunk(answer, cut.body_bytes)
        else:
            self._send(Canned(answer.status, answer.body[: cut.body_bytes], answer.headers), len(answer.body))
            self.close_connection = True

    def _send(self, answer: Canned, length: int) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body if self.command != "HEAD" else b"")

    def _send_cut_chunk(self, answer: Canned, body_bytes: int) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(f"{len(answer.body):x}\r\n".encode() + answer.body[:body_bytes])
        self.close_connection = True
