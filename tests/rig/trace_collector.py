"""A collector of OpenTelemetry spans for tests, which receives OTLP over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as the collector received it."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    status: int
    attributes: dict[str, Any]
    started: int
    ended: int


@dataclass
class TraceCollector:
    """The spans and the raw messages that a collector received."""

    url: str
    messages: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[ReceivedSpan]:
        """All spans, in the order in which they arrived."""
        return [
            _read_span(span)
            for message in self.messages
            for resource_spans in ExportTraceServiceRequest.FromString(message).resource_spans
            for scope_spans in resource_spans.scope_spans
            for span in scope_spans.spans
        ]

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The attributes of the processes that sent spans."""
        return [
            _read_attributes(resource_spans.resource.attributes)
            for message in self.messages
            for resource_spans in ExportTraceServiceRequest.FromString(message).resource_spans
        ]


def _read_span(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        status=span.status.code,
        attributes=_read_attributes(span.attributes),
        started=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
    )


def _read_attributes(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting_traces() -> Iterator[TraceCollector]:
    """A collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.messages.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = TraceCollector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield collector
        server.shutdown()
        thread.join()
