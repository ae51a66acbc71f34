"""Answers that are not those of an Omnigraph server: redirects, pages of proxies, broken bodies, unknown errors."""

import json
from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    ClientError,
    Conflict,
    InputError,
    NotFound,
    OmnigraphError,
    ServerBusy,
    ServerError,
    ServerUnreachable,
    TooManyRequests,
    TypeCheckError,
)
from tests.rig.http_proxy import Canned, Forwarded, HttpProxy, proxying
from tests.rig.http_server import HttpServer

NAMES = "match { $p: Person } return { $p.name } order { $p.name asc }"
HTML = {"Content-Type": "text/html; charset=utf-8"}
JSON = {"Content-Type": "application/json"}
PAGE = (
    b"<html><head><title>502 Bad Gateway</title><style>p {}</style></head><body><h1>Oops &amp; sorry</h1></body></html>"
)
NOW = {"Retry-After": "0"}


@pytest.fixture
def proxy(server: HttpServer) -> Iterator[HttpProxy]:
    """A proxy in front of the server."""
    with proxying(server.port) as running:
        yield running


@pytest.fixture
def proxied(proxy: HttpProxy, graph: Graph) -> Iterator[Graph]:
    """The graph of the test behind the proxy, opened without faults."""
    with omnigraph.open(proxy.url, branch=graph.branch_name, token="secret-token") as through_proxy:
        proxy.requests.clear()
        yield through_proxy


def error_body(**members: object) -> bytes:
    return json.dumps({"error": "no", **members}).encode()


# Redirects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_its_address_is_suggested(status: int) -> None:
    with proxying() as elsewhere, proxying() as proxy:
        target = f"http://localhost:{elsewhere.port}/graphs/default"
        proxy.answers.append(Canned(status, PAGE, HTML | {"Location": f"{target}/snapshot?branch=main"}))
        with pytest.raises(ServerError, match=f"redirects to http://localhost:{elsewhere.port}/") as raised:
            omnigraph.open(proxy.url, token="secret-token")
        assert elsewhere.requests == []
        assert proxy.paths("GET") == ["snapshot"]
    assert (raised.value.status, raised.value.effect, raised.value.retryable) == (status, "none", "no")
    assert target in str(raised.value.hint)
    assert "secret-token" not in str(raised.value)


def test_a_redirect_to_a_login_page_hides_its_parameters() -> None:
    with proxying() as proxy:
        location = "https://me:password@login.example.org/start?state=hidden"
        proxy.answers.append(Canned(302, b"", {"Location": location}))
        with pytest.raises(ServerError, match=r"redirects to https://login\.example\.org/start") as raised:
            omnigraph.open(proxy.url)
    assert "login" in str(raised.value.hint)
    assert not {"password", "hidden"} & set(str(raised.value).replace("@", " ").replace("=", " ").split())


@pytest.mark.parametrize("location", [{}, {"Location": "http://[broken"}, {"Location": "/other\u00e9"}])
def test_a_redirect_without_a_usable_address_is_an_error(location: dict[str, str]) -> None:
    with proxying() as proxy:
        proxy.answers.append(Canned(301, b"", location))
        with pytest.raises(ServerError, match="redirect"):
            omnigraph.open(proxy.url)


def test_a_redirected_write_has_no_effect(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.answers.append(Canned(308, b"", {"Location": "https://localhost/graphs/default/records"}))
    with pytest.raises(ServerError, match="redirects") as raised:
        proxied.insert("Person", {"name": "cyd"})
    assert raised.value.effect == "none"
    assert "https://localhost/graphs/default" in str(raised.value.hint)
    assert proxied.nodes("Person").count() == 2


# Pages with a status of success -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers"),
    [(PAGE, HTML), (PAGE, {}), (b"{", JSON), (b"", JSON), (b"[]", JSON), (b"\xff\xfe", JSON), (b"1", {})],
)
def test_a_page_instead_of_json_is_an_error(body: bytes, headers: dict[str, str]) -> None:
    with proxying() as proxy:
        proxy.answers.append(Canned(200, body, headers))
        with pytest.raises(ServerError, match="not a response from an Omnigraph server") as raised:
            omnigraph.open(proxy.url)
    assert (raised.value.status, raised.value.effect, raised.value.retryable) == (200, "none", "no")
    assert "URL" in str(raised.value.hint)


def test_a_page_instead_of_rows_is_an_error(proxied: Graph, proxy: HttpProxy) -> None:
    for call in (proxied.query, proxied.stream):
        proxy.answers.append(Canned(200, PAGE, HTML))
        with pytest.raises(ServerError, match="text/html"):
            call(NAMES)
    proxy.answers.append(Canned(200, b"no Arrow", {"Content-Type": "application/vnd.apache.arrow.stream"}))
    with pytest.raises(ServerError, match="not a response from an Omnigraph server"):
        proxied.query(NAMES)
    proxy.answers.append(Canned(200, PAGE, HTML))
    with pytest.raises(ServerError, match="text/html"):
        list(proxied.export())


def test_the_effect_of_a_write_that_a_page_answers_is_unknown(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.answers.append(Canned(200, PAGE, HTML))
    with pytest.raises(ServerError, match="text/html") as raised:
        proxied.insert("Person", {"name": "cyd"})
    assert raised.value.effect == "unknown"


# Error pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_error_is_repeated_for_reads_and_for_writes_with_a_key(
    proxied: Graph, proxy: HttpProxy, status: int
) -> None:
    proxy.answers.extend([Canned(status, PAGE, HTML | NOW)] * 2)
    assert proxied.query(NAMES).num_rows == 2
    assert proxy.paths("POST") == ["query"] * 3
    proxy.answers.extend([Canned(status, PAGE, HTML | NOW)] * 2)
    assert proxied.insert("Person", {"name": "cyd"}).affected_nodes == 1
    assert proxied.nodes("Person").count() == 3


def test_a_gateway_error_shows_its_status_and_text(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.answers.extend([Canned(502, PAGE + b"x" * 5000, HTML | NOW)] * 4)
    with pytest.raises(ServerError, match=r"status 502: 502 Bad Gateway Oops & sorry") as raised:
        proxied.query(NAMES)
    assert (raised.value.status, raised.value.effect, raised.value.retryable) == (502, "none", "same")
    assert "<" not in raised.value.message
    assert len(raised.value.message) < 400
    assert proxy.paths("POST") == ["query"] * 4


def test_a_gateway_error_leaves_the_effect_of_a_write_unknown(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.answers.append(Canned(503, PAGE, HTML | NOW))
    with pytest.raises(ServerBusy) as raised:  # creating a branch has no idempotency key, so it is sent only once
        proxied.branches.create("never")
    assert raised.value.to_json()["effect"] == "unknown"
    assert proxy.paths("POST") == ["branches"]
    assert "never" not in proxied.branches


def test_too_many_requests_are_repeated_after_the_wait_that_the_server_asks_for(
    proxied: Graph, proxy: HttpProxy
) -> None:
    proxy.answers.append(Canned(429, error_body(kind="TooManyRequests", details={"retry_after": 0}), JSON | NOW))
    assert proxied.branches.create(f"{proxied.branch_name}-late").branch_name.endswith("-late")
    assert proxy.paths("POST") == ["branches"] * 2
    proxy.answers.extend([Canned(429, b"slow down", {"Retry-After": "0"})] * 4)
    with pytest.raises(TooManyRequests, match="slow down") as raised:
        proxied.query(NAMES)
    assert (raised.value.retry_after, raised.value.effect) == (0.0, "none")
    assert len(proxy.paths("POST")) == 6


def test_a_wait_that_is_too_long_is_reported_at_once(proxied: Graph, proxy: HttpProxy) -> None:
    for status, error_class in ((429, TooManyRequests), (503, ServerBusy)):
        proxy.answers.append(Canned(status, b"", {"Retry-After": "7200"}))
        with pytest.raises(error_class) as raised:
            proxied.query(NAMES)
        assert raised.value.details["retry_after"] == 7200
    assert proxy.paths("POST") == ["query"] * 2


# Unknown members, errors and statuses -----------------------------------------------------------


def test_unknown_members_of_an_error_are_ignored(proxied: Graph, proxy: HttpProxy) -> None:
    diagnostic = {"code": "T1", "kind": "type", "message": "m", "start": 0, "end": 1, "line": 1, "column": 1}
    members = {
        "kind": "TypeCheckError",
        "diagnostics": [diagnostic | {"severity": "error", "fix": "new"}],
        "future": {"a": 1},
        "details": {"sentence": "x", "self": 1, "status": 7, "colour": "blue"},
        "retry": "tomorrow",
        "effect": "perhaps",
        "hint": ["no text"],
    }
    proxy.answers.append(Canned(400, error_body(**members), JSON))
    with pytest.raises(TypeCheckError) as raised:
        proxied.query(f"query names() {{ {NAMES} }}")
    error = raised.value
    assert (error.status, error.effect, error.retryable, error.details["colour"]) == (400, "none", "no", "blue")
    assert [found.code for found in error.diagnostics] == ["T1"]
    assert str(error)


@pytest.mark.parametrize(
    ("status", "error_class"),
    [(404, NotFound), (409, Conflict), (418, ClientError), (422, InputError), (507, ServerError), (599, ServerError)],
)
def test_unknown_errors_have_the_class_of_their_status(
    proxied: Graph, proxy: HttpProxy, status: int, error_class: type[OmnigraphError]
) -> None:
    proxy.answers.append(Canned(status, error_body(kind="FromTheFuture", code="new"), JSON))
    with pytest.raises(error_class, match="no") as raised:
        proxied.query(NAMES)
    assert raised.value.status == status


@pytest.mark.parametrize(
    "body", [b"[1]", b'{"error": 5}', b'{"details": 5, "diagnostics": 5}', b"null", b"\xff"], ids=range(5)
)
def test_malformed_errors_have_the_class_of_their_status(proxied: Graph, proxy: HttpProxy, body: bytes) -> None:
    proxy.answers.append(Canned(404, body, JSON))
    with pytest.raises(NotFound, match="status 404"):
        proxied.query(NAMES)


# Bodies that end too early ----------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [True, False])
def test_a_read_that_is_cut_off_is_repeated(proxied: Graph, proxy: HttpProxy, chunked: bool) -> None:
    proxy.answers.append(Forwarded(200, chunked))
    assert proxied.query(NAMES).num_rows == 2
    proxy.answers.append(Forwarded(20, chunked))
    assert proxied.head.branch == "main"
    assert proxy.paths("POST") == ["query"] * 2


@pytest.mark.parametrize("chunked", [True, False])
def test_a_stream_that_is_cut_off_has_no_effect(proxied: Graph, proxy: HttpProxy, chunked: bool) -> None:
    proxy.answers.append(Forwarded(30, chunked))
    with pytest.raises(ServerUnreachable) as raised:
        list(proxied.export())
    assert raised.value.effect == "none"
    proxy.answers.append(Forwarded(200, chunked))
    with (
        pytest.raises(ServerUnreachable, match="before the end of the response") as raised,
        proxied.stream(NAMES) as stream,
    ):
        list(stream.iter_rows())
    assert raised.value.effect == "none"


def test_a_write_whose_answer_is_cut_off_is_sent_again_and_applied_once(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.answers.append(Forwarded(20))
    receipt = proxied.insert("Person", {"name": "cyd"})
    assert (receipt.commit_id, receipt.affected_nodes) == (proxied.head.id, 1)
    assert proxy.paths("POST") == ["records"] * 2
    assert len(proxied.log()) == len(proxied.log("main")) + 1


def test_an_error_that_is_cut_off_keeps_its_class(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.answers.append(Forwarded(10))
    with pytest.raises(ClientError) as raised:
        proxied.query("match {")
    assert (raised.value.status, raised.value.effect) == (400, "none")


# Requests that cannot be sent -------------------------------------------------------------------


@pytest.mark.parametrize("token", ["a\nb", "\u65e5\u672c"])
def test_a_token_that_no_header_can_contain_is_rejected_without_repeating_it(url: str, token: str) -> None:
    with pytest.raises(OmnigraphError, match="token") as raised:
        omnigraph.open(url, token=token)
    assert token not in str(raised.value)


def test_a_token_file_may_end_with_a_newline(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_TOKEN", "some-token\n")
    with omnigraph.open(url) as graph:
        assert graph.nodes("Person").count() == 2


def test_keys_and_commits_that_no_header_can_contain_are_rejected(graph: Graph) -> None:
    for options in ({"idempotency_key": "a\nb"}, {"idempotency_key": "\u65e5\u672c"}, {"if_commit": "a\r\nb"}):
        with pytest.raises(InputError):
            graph.insert("Person", {"name": "cyd"}, **options)  # type: ignore[arg-type]
    assert graph.nodes("Person").count() == 2
