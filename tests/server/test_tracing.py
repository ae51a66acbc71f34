"""Spans of requests, as a collector receives them from a real server."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.http_server import environment, serving
from tests.rig.server_process import installed
from tests.rig.timeouts import PATIENCE
from tests.rig.trace_collector import ReceivedSpan, TraceCollector, collecting_traces
from tests.server.conftest import make_graph

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TOKEN = "t0ken-that-must-not-leak"
QUERY = 'query secret_name() { match { $p: Person { name: "bob" } } return { $p.name as secret_column } }'
INSERT = 'query secret_insert() { insert Person { name: "zoe-the-secret" } }'
SERVER_KIND = 2
ERROR_STATUS = 2


@dataclass(frozen=True)
class TracedRun:
    """What a collector received from a server, and the server's log."""

    collector: TraceCollector
    log: str
    root: str

    def request(self, request_id: str) -> ReceivedSpan:
        (span,) = (span for span in self.collector.spans if span.attributes.get("omnigraph.request_id") == request_id)
        return span

    def children(self, parent: ReceivedSpan) -> dict[str, ReceivedSpan]:
        return {span.name: span for span in self.collector.spans if span.parent_id == parent.span_id}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracedRun]:
    folder = tmp_path_factory.mktemp("tracing")
    uri = make_graph(folder / "secret-root")
    with collecting_traces() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN,
            "OMNIGRAPH_TRACING": "1",
        }
        arguments = (uri, "--token-permission", "admin")
        with serving(folder, *arguments, variables=variables, token=TOKEN) as server:
            path = "/graphs/default/query"
            parent = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
            server.post(path, {"query": QUERY}, headers={"Omnigraph-Request-Id": "read", **parent})
            arrow = {"Accept": "application/vnd.apache.arrow.stream", "Omnigraph-Request-Id": "stream"}
            server.post(path, {"query": QUERY}, headers=arrow)
            server.post("/graphs/default/mutate", {"query": INSERT}, headers={"Omnigraph-Request-Id": "write"})
            server.get("/graphs/default/branches/secret-branch", headers={"Omnigraph-Request-Id": "missing"})
            server.get("/secret-path", headers={"Omnigraph-Request-Id": "unrouted"})
            server.post(path, {"query": QUERY}, headers={"Omnigraph-Request-Id": "denied"}, token="wrong")
            unsampled = {"traceparent": f"00-{TRACE}-{PARENT}-00", "Omnigraph-Request-Id": "unsampled"}
            server.post(path, {"query": QUERY}, headers=unsampled)
            malformed = {"traceparent": "00-zz-zz-01", "Omnigraph-Request-Id": "malformed"}
            server.post(path, {"query": QUERY}, headers=malformed)
        yield TracedRun(collector, server.log.read_text(), uri)


def test_a_request_continues_the_trace_of_its_caller(traced: TracedRun) -> None:
    span = traced.request("read")
    assert (span.trace_id, span.parent_id, span.kind) == (TRACE, PARENT, SERVER_KIND)
    assert span.name == "POST /graphs/{graph_id}/query"
    assert span.attributes == {
        "http.request.method": "POST",
        "http.route": "/graphs/{graph_id}/query",
        "http.response.status_code": 200,
        "omnigraph.request_id": "read",
    }
    assert traced.collector.resources[0]["service.name"] == "omnigraph"
    assert f"trace={TRACE}" in traced.log


def test_phases_are_children_of_the_request(traced: TracedRun) -> None:
    request = traced.request("read")
    phases = traced.children(request)
    assert phases.keys() == {"auth", "queue", "engine"}
    engine_phases = traced.children(phases["engine"])
    assert engine_phases.keys() == {"probe", "plan", "execute", "encode"}
    for span in (*phases.values(), *engine_phases.values()):
        assert request.started <= span.started <= span.ended <= request.ended
        assert (span.trace_id, span.attributes) == (TRACE, {})


def test_writes_and_streams_have_phases(traced: TracedRun) -> None:
    write, stream = (traced.children(traced.request(name))["engine"] for name in ("write", "stream"))
    assert traced.children(write).keys() == {"plan", "execute"}
    assert {"plan", "execute"} <= traced.children(stream).keys()


def test_failures_have_the_status_of_the_response(traced: TracedRun) -> None:
    denied, unrouted = traced.request("denied"), traced.request("unrouted")
    assert (denied.attributes["http.response.status_code"], denied.status) == (401, 0)
    assert (unrouted.attributes["http.response.status_code"], unrouted.name) == (404, "GET")
    assert "http.route" not in unrouted.attributes


def test_a_caller_decides_about_sampling(traced: TracedRun) -> None:
    names = {span.attributes.get("omnigraph.request_id") for span in traced.collector.spans}
    assert "malformed" in names
    assert "unsampled" not in names
    assert traced.request("malformed").parent_id == ""


def test_spans_contain_no_paths_tokens_texts_or_values(traced: TracedRun) -> None:
    sent = b"".join(traced.collector.messages)
    for secret in (traced.root, "secret", TOKEN, "Person", "bob", "zoe", "wrong"):
        assert secret.encode() not in sent


def test_server_timing_has_the_same_phases(tmp_path: Path) -> None:
    uri = make_graph(tmp_path / "graph")
    with serving(tmp_path, uri, "--unauthenticated") as server:
        header = server.query(QUERY).headers["server-timing"]
        assert "trace=" not in server.log.read_text()
    names = [part.partition(";")[0].strip() for part in header.split(",")]
    assert names == ["auth", "queue", "probe", "plan", "execute", "encode", "engine"]


def test_an_unreachable_collector_does_not_affect_requests(tmp_path: Path) -> None:
    uri = make_graph(tmp_path / "graph")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    with serving(tmp_path, uri, "--unauthenticated", "--tracing", variables=variables) as server:
        assert server.query(QUERY).status == 200


def test_tracing_without_opentelemetry_fails_at_the_start(tmp_path: Path) -> None:
    uri = make_graph(tmp_path / "graph")
    hide = (
        "import runpy, sys; sys.modules['opentelemetry'] = None; sys.argv = sys.argv[1:];"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-c", hide, installed("omnigraph"), "serve", uri, "--unauthenticated", "--tracing"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=PATIENCE)
    assert run.returncode != 0
    assert "omnigraph[otel]" in run.stderr
