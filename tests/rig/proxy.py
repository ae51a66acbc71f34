"""A proxy in front of an S3 server that counts requests and injects faults.

It forwards the Host header, so that signatures stay valid, streams bodies both ways and keeps
connections to clients alive. It never retries.
"""

import http.client
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.rig.proxy_faults import Rule, Rules
from tests.rig.request_log import Seen, Traffic
from tests.rig.timeouts import PATIENCE

_BLOCK = 1 << 16
_OURS = {"connection", "keep-alive", "transfer-encoding", "expect", "date", "server"}
_ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code></Error>"


class Proxy:
    """A running proxy. All methods may be called from any thread."""

    def __init__(self, backend: int) -> None:
        self.backend = backend
        self.rules = Rules()
        self.latency_ms = 0.0
        self._seen: list[Seen] = []
        self._unanswered: set[tuple[str, str]] = set()
        self._in_flight = 0
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        return self._server.server_port

    @property
    def seen(self) -> tuple[Seen, ...]:
        """All attempts so far, in the order in which they ended."""
        with self._lock:
            return tuple(self._seen)

    def stop(self) -> None:
        """Stop listening, and end every connection."""
        self.rules.clear()
        self._server.shutdown()
        self._thread.join()
        self._server.end_connections()
        self._server.server_close()

    def drop(self, method: str, key: str = "*", *, times: int | None = 1) -> Rule:
        """Forward a request and lose the answer."""
        return self.rules.add(Rule("drop", method, key, times))

    def answer(self, status: int, method: str, key: str = "*", *, forward: bool, times: int | None = 1) -> Rule:
        """Answer with an error, after the server did what was asked (`forward`) or without it."""
        return self.rules.add(Rule("answer", method, key, times, status=status, forward=forward))

    def hold(self, method: str, key: str = "*", *, times: int | None = 1) -> Rule:
        """Keep a request back until the rule is released; its `hit` tells that it came."""
        return self.rules.add(Rule("hold", method, key, times))

    def late(self, method: str, key: str = "*", *, times: int | None = None) -> Rule:
        """Hang up on the client, and forward its request when the rule is released."""
        return self.rules.add(Rule("late", method, key, times))

    def delay(self, milliseconds: float, method: str | None = None, key: str = "*") -> Rule:
        """Keep every such request back for a while."""
        return self.rules.add(Rule("delay", method, key, None, milliseconds=milliseconds))

    def cut(self, at: int, method: str = "PUT", key: str = "*", *, forward: bool = True) -> Rule:
        """End the conversation at the `at`-th such request (from 1): it may still take effect."""
        return self.rules.add(Rule("cut", method, key, skip=at - 1, forward=forward))

    def heal(self) -> None:
        """Forget all faults."""
        self.rules.clear()

    def begin(self, method: str, target: str) -> tuple[int, bool]:
        """Count a request in: how many are under way, and whether it repeats a failed attempt."""
        with self._lock:
            self._in_flight += 1
            retry = (method, target) in self._unanswered
            self._unanswered.discard((method, target))
            return self._in_flight, retry

    def end(self, seen: Seen, target: str) -> None:
        """Count a request out. This comes before the answer: who has an answer finds it counted."""
        with self._lock:
            self._in_flight -= 1
            self._seen.append(seen)
            if seen.status in {0, 429} or seen.status >= 500:
                self._unanswered.add((seen.method, target))


@contextmanager
def requests_of(proxy: Proxy) -> Iterator[Traffic]:
    """What goes through the proxy in the block: `made.counts == {"PUT": 6, "LIST": 1}`."""
    made = Traffic()
    start = len(proxy.seen)
    try:
        yield made
    finally:
        made.seen += proxy.seen[start:]


class _Server(http.server.ThreadingHTTPServer):
    """Hands each connection to a thread, and knows the open ones."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for one in list(self.open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a client; each request is forwarded on a connection of its own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = _BLOCK
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: what happened is in `Proxy.seen`."""

    def _serve(self) -> None:
        proxy, method, key = self.server.proxy, *_classified(self.command, self.path)
        if proxy.rules.gone:
            return self._hang_up()
        in_flight, retry = proxy.begin(method, self.path)
        begun = time.monotonic()
        rules = proxy.rules.take(method, key)
        body = self._body()
        if any(rule.deed == "late" for rule in rules):
            body = iter([*body])  # all of it arrived before the client was left without an answer
            self._hang_up()
        for rule in rules:
            _wait(rule)
        time.sleep(proxy.latency_ms / 1000)
        end = next((rule for rule in rules if rule.deed not in ("hold", "delay")), None)
        answer = self._forward(body, on=end is None or end.forward)
        forwarded = answer.status if answer is not None else None
        status = _told(end, forwarded)
        seen = Seen(method, key, status, forwarded, begun, time.monotonic(), in_flight, retry)
        proxy.end(seen, self.path)
        self._answer(answer, status, own=end is not None)
        return None

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

    def _forward(self, body: Iterator[bytes], *, on: bool) -> "_Answer | None":
        """Send the request on; None when it is not to go on, or when the server hung up."""
        if not on:
            # Take it all the same: a body left unread would spoil the answer.
            for _ in body:
                pass
            return None
        backend = self.server.proxy.backend
        connection = http.client.HTTPConnection("127.0.0.1", backend, timeout=PATIENCE)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _OURS - {"date", "transfer-encoding"}:
                    connection.putheader(name, value)
            connection.putheader("Connection", "close")
            connection.endheaders()
            for block in body:
                connection.send(block)
            return _Answer(connection, connection.getresponse())
        except (OSError, http.client.HTTPException):
            connection.close()
            return None

    def _body(self) -> Iterator[bytes]:
        """The body as it is sent on: the same bytes, chunk marks included."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            yield from self._chunks()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            block = self.rfile.read(min(left, _BLOCK))
            if not block:
                raise ConnectionError("the client went away")
            left -= len(block)
            yield block

    def _chunks(self) -> Iterator[bytes]:
        size = -1
        while size:
            head = self.rfile.readline()
            size = int(head.split(b";")[0], 16)
            yield head + self.rfile.read(size) + self.rfile.readline()

    def _answer(self, answer: "_Answer | None", status: int, *, own: bool) -> None:
        try:
            if status == 0:
                self._hang_up()
            elif own or answer is None:
                self._send_own(status)
            else:
                self._send_on(answer)
        finally:
            if answer is not None:
                answer.close()

    def _send_own(self, status: int) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(_ERROR)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(_ERROR)
        self.wfile.flush()

    def _send_on(self, answer: "_Answer") -> None:
        response = answer.response
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _OURS - {"date"}:
                self.send_header(name, value)
        bodiless = self.command == "HEAD" or response.status in (204, 304)
        chunked = response.getheader("Content-Length") is None and not bodiless
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while block := response.read(_BLOCK):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block) if chunked else block)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class _Answer:
    """A response of the server with the connection that it comes on."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection, self.response, self.status = connection, response, response.status

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def _classified(method: str, path: str) -> tuple[str, str]:
    """The method as it is counted, and the key below the bucket (of a listing: its prefix)."""
    parts = urlsplit(path)
    query = parse_qs(parts.query)
    if method == "GET" and "list-type" in query:
        return "LIST", query.get("prefix", [""])[0]
    return method, unquote(parts.path).lstrip("/").partition("/")[2]


def _wait(rule: Rule) -> None:
    rule.hit.set()
    if rule.deed in ("hold", "late"):
        rule.released.wait(PATIENCE)
    elif rule.deed == "delay":
        time.sleep(rule.milliseconds / 1000)


def _told(end: Rule | None, forwarded: int | None) -> int:
    """The status that the client gets; 0 when it gets none."""
    if end is not None and end.deed == "answer":
        return end.status
    return 0 if end is not None or forwarded is None else forwarded
