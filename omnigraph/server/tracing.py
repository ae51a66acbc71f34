"""OpenTelemetry spans for requests: one span per request, with a child span per phase.

Only this module imports OpenTelemetry, and only if tracing is enabled. Spans are created after the response has been
sent, so a request never waits for its spans. A span contains the method, the route template, the status and the request
id, but never paths, tokens, query texts or values.
"""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from omnigraph import __version__
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .log_output import LOGGER
from .timing import ENGINE_PHASE, PhaseInterval

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from starlette.datastructures import Headers

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_FLUSH_SECONDS = 5.0


@record
class RequestFacts:
    """The data in the span for a finished request.

    `route` is a template, or None if no route matched. The times are in seconds on the monotonic clock.
    """

    method: str
    route: str | None
    status: int
    request_id: str
    started: float
    ended: float


class RequestTracer:
    """Records the spans of a worker's requests."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._provider = TracerProvider(resource=_make_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("omnigraph.server", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def record_request(self, facts: RequestFacts, headers: "Headers", intervals: Sequence[PhaseInterval]) -> str:
        """Record a request that has just finished, and return the id of its trace."""
        # Spans use the system clock; requests and phases use the monotonic clock.
        offset = clock_and_ids.system_clock_nanos() - int(clock_and_ids.monotonic() * 1e9)
        span = self._tracer.start_span(
            _span_name(facts),
            context=self._propagator.extract(_trace_headers(headers)),
            kind=SpanKind.SERVER,
            attributes=_request_attributes(facts),
            start_time=offset + int(facts.started * 1e9),
        )
        if facts.status >= 500:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", str(facts.status))
        if span.is_recording():
            self._record_phases(span, intervals, offset)
        span.end(offset + int(facts.ended * 1e9))
        return f"{span.get_span_context().trace_id:032x}"

    def _record_phases(self, request_span: Span, intervals: Sequence[PhaseInterval], offset: int) -> None:
        """Record the phases as children of the request, and those within the engine as children of the engine phase."""
        engine = next((interval for interval in intervals if interval.phase == ENGINE_PHASE), None)
        request_context = set_span_in_context(request_span)
        engine_context = request_context
        if engine is not None:
            engine_context = set_span_in_context(self._record_phase(engine, request_context, offset))
        for interval in intervals:
            if interval is not engine:
                is_inside = engine is not None and interval.started >= engine.started
                self._record_phase(interval, engine_context if is_inside else request_context, offset)

    def _record_phase(self, interval: PhaseInterval, context: "Context", offset: int) -> Span:
        started, ended = (offset + int(seconds * 1e9) for seconds in (interval.started, interval.ended))
        span = self._tracer.start_span(interval.phase, context=context, start_time=started)
        span.end(ended)
        return span

    def close(self) -> None:
        """Export the remaining spans. A collector that does not respond delays the exit by a few seconds at most."""
        flush = threading.Thread(target=self._provider.shutdown, name="omnigraph-tracing-flush", daemon=True)
        flush.start()
        flush.join(_FLUSH_SECONDS)


def start_tracing() -> RequestTracer:
    """Return a tracer that exports spans over OTLP. The `OTEL_*` variables configure the exporter and the sampling."""
    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = LOGGER.handlers, False
    logger.setLevel(logging.WARNING)
    return RequestTracer(OTLPSpanExporter())


def _make_resource() -> Resource:
    attributes = {"service.version": __version__}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        attributes["service.name"] = "omnigraph"
    return Resource.create(attributes)


def _span_name(facts: RequestFacts) -> str:
    method = _known_method(facts.method)
    return method if facts.route is None else f"{method} {facts.route}"


def _request_attributes(facts: RequestFacts) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "http.request.method": _known_method(facts.method),
        "http.response.status_code": facts.status,
        "omnigraph.request_id": facts.request_id,
    }
    if facts.route is not None:
        attributes["http.route"] = facts.route
    return attributes


def _known_method(method: str) -> str:
    """Return the method if it is known, or else `_OTHER`, so that spans never contain arbitrary words from clients."""
    return method if method in _METHODS else "_OTHER"


def _trace_headers(headers: "Headers") -> Mapping[str, str]:
    """Return the W3C headers that identify the caller's span. A repeated `traceparent` is ignored, as W3C requires."""
    parents = headers.getlist("traceparent")
    if len(parents) != 1:
        return {}
    return {"traceparent": parents[0], "tracestate": ",".join(headers.getlist("tracestate"))}
