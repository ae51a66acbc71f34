"""The proxy forwards faithfully, counts requests, and injects exactly the requested faults."""

import http.client
import http.server
import threading
import time
from collections.abc import Iterator

import pytest

from tests.rig.proxy import Proxy, requests_of
from tests.rig.timeouts import PATIENCE


class Echo(http.server.BaseHTTPRequestHandler):
    """A server that keeps what it was sent, and answers as its path says."""

    protocol_version = "HTTP/1.1"
    stored: dict[str, bytes]
    hosts: list[str]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_PUT(self) -> None:
        self.hosts.append(self.headers["Host"])
        taken = self.path in self.stored and self.headers.get("If-None-Match") == "*"
        body = self._body()
        if not taken:
            self.stored[self.path] = body
        self.send_response(412 if taken else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        body = self.stored.get(self.path.partition("?")[0], b"")
        self.send_response(200)
        if "chunked" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    handler = type("Handler", (Echo,), {"stored": {}, "hosts": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: http.server.ThreadingHTTPServer) -> Iterator[Proxy]:
    running = Proxy(server.server_port)
    yield running
    running.stop()


def ask(proxy: Proxy, method: str, path: str, body: object = None, **headers: str) -> int:
    """The status of one request on a connection of its own; 0 without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)  # type: ignore[arg-type]
        response = connection.getresponse()
        response.read()
        return response.status
    except (http.client.HTTPException, ConnectionError):
        return 0
    finally:
        connection.close()


def fetch(proxy: Proxy, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


def test_bodies_and_the_host_pass_unchanged(proxy: Proxy, server: http.server.ThreadingHTTPServer) -> None:
    large = bytes(range(256)) * 2000
    assert ask(proxy, "PUT", "/b/plain", large, Host="store.example") == 200
    assert ask(proxy, "PUT", "/b/parts", iter([large, b"end"])) == 200
    assert fetch(proxy, "/b/plain") == large
    assert fetch(proxy, "/b/parts") == large + b"end"
    assert fetch(proxy, "/b/plain?chunked") == large
    assert server.RequestHandlerClass.hosts[0] == "store.example"  # type: ignore[attr-defined]


def test_a_connection_serves_many_requests(proxy: Proxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port)
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("PUT", "/b/x", b"1")
        assert connection.getresponse().read() == b""
        connection.request("HEAD", "/b/x")
        head = connection.getresponse()
        assert (head.getheader("Content-Length"), head.read()) == ("1", b"")
    assert connection.sock is first
    connection.close()


def test_requests_are_classified_and_counted(proxy: Proxy) -> None:
    with requests_of(proxy) as before:
        ask(proxy, "PUT", "/b/a%2Fb/c")
    with requests_of(proxy) as made:
        ask(proxy, "GET", "/b/x")
        ask(proxy, "GET", "/b?list-type=2&prefix=g%2F")
        ask(proxy, "GET", "/b/x?list-type-of=2")
        ask(proxy, "HEAD", "/b/x")
    assert before.counts == {"PUT": 1}
    assert before.seen[0].key == "a/b/c"
    assert made.counts == made.attempts == {"GET": 2, "LIST": 1, "HEAD": 1}
    assert made.seen[1].key == "g/"
    assert made.hops == 4


def test_dropped_response_is_counted_as_a_request(proxy: Proxy) -> None:
    proxy.drop("PUT", "x")
    with requests_of(proxy) as made:
        assert ask(proxy, "PUT", "/b/x", b"1", If_None_Match="*") == 0
        assert ask(proxy, "PUT", "/b/x", b"2", If_None_Match="*") == 412
        assert ask(proxy, "PUT", "/b/x", b"3", If_None_Match="*") == 412
    assert fetch(proxy, "/b/x") == b"1"
    # The second is an attempt of the first; the third is a request of its own.
    assert (made.attempts, made.counts) == ({"PUT": 3}, {"PUT": 2})
    assert [(one.status, one.forwarded) for one in made.seen][:2] == [(0, 200), (412, 412)]


@pytest.mark.parametrize(("forward", "stored"), [(True, b"1"), (False, b"")])
def test_error_is_returned_after_or_instead_of_forwarding(proxy: Proxy, forward: bool, stored: bytes) -> None:
    proxy.answer(503, "PUT", forward=forward)
    assert ask(proxy, "PUT", "/b/x", b"1" * 200_000) == 503
    assert fetch(proxy, "/b/x") == stored * 200_000
    assert ask(proxy, "PUT", "/b/x", b"2") == 200


def test_rule_applies_to_matching_requests_a_limited_number_of_times(proxy: Proxy) -> None:
    proxy.answer(500, "GET", "data/*.lance", forward=False, times=2)
    paths = ["/b/data/x.lance", "/b/other", "/b/data/y.lance", "/b/data/z.lance"]
    assert [ask(proxy, "GET", path) for path in paths] == [500, 200, 500, 200]
    assert ask(proxy, "PUT", "/b/data/x.lance") == 200


def test_a_held_request_waits_for_its_release(proxy: Proxy) -> None:
    held = proxy.hold("PUT", "x")
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(ask(proxy, "PUT", "/b/x", b"1")))
    with requests_of(proxy) as made:
        thread.start()
        assert held.hit.wait(PATIENCE)
        assert ask(proxy, "GET", "/b/x") == 200
        assert fetch(proxy, "/b/x") == b""
        assert answers == []
        held.release()
        thread.join()
    assert answers == [200]
    assert fetch(proxy, "/b/x") == b"1"
    assert max(one.in_flight for one in made.seen) == 2
    assert made.hops == 2


def test_late_request_is_forwarded_after_the_client_gave_up(proxy: Proxy) -> None:
    late = proxy.late("PUT", "x", times=1)
    assert ask(proxy, "PUT", "/b/x", b"1" * 200_000) == 0
    assert fetch(proxy, "/b/x") == b""
    late.release()
    while not proxy.seen or proxy.seen[-1].method != "PUT":
        time.sleep(0.01)
    assert (proxy.seen[-1].status, proxy.seen[-1].forwarded) == (0, 200)
    assert fetch(proxy, "/b/x") == b"1" * 200_000


def test_no_request_is_answered_after_the_cut(proxy: Proxy) -> None:
    proxy.cut(2)
    with requests_of(proxy) as made:
        asked = [ask(proxy, "PUT", f"/b/{n}", b"1") for n in range(3)]
        asked.append(ask(proxy, "GET", "/b/0"))
    assert asked == [200, 0, 0, 0]
    assert made.counts == {"PUT": 2}
    proxy.heal()
    assert [fetch(proxy, f"/b/{n}") for n in range(3)] == [b"1", b"1", b""]


def test_cut_may_precede_forwarding(proxy: Proxy) -> None:
    proxy.cut(1, forward=False)
    assert ask(proxy, "PUT", "/b/0", b"1") == 0
    proxy.heal()
    assert fetch(proxy, "/b/0") == b""


def test_delays_apply_to_one_method_or_to_all(proxy: Proxy) -> None:
    proxy.delay(30, "GET")
    proxy.latency_ms = 20
    with requests_of(proxy) as made:
        ask(proxy, "GET", "/b/x")
        ask(proxy, "PUT", "/b/x")
    took = [one.ended - one.begun for one in made.seen]
    assert took[0] >= 0.05
    assert took[1] >= 0.02


def test_stopped_server_yields_no_response() -> None:
    running = Proxy(1)
    assert ask(running, "GET", "/b/x") == 0
    assert [(one.status, one.forwarded) for one in running.seen] == [(0, None)]
    running.stop()
