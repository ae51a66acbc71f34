"""Handlers for the server itself: health, readiness, metrics, limits, the OpenAPI document, and the caller."""

from functools import cache

import omnigraph
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import (
    GraphInfo,
    GraphListResponse,
    HealthOutput,
    LimitsOutput,
    ReadinessOutput,
    WhoamiOutput,
)
from omnigraph.server.openapi import build_openapi
from omnigraph.server.route_model import HTML, PLAIN
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.storage.layout import STAMP


async def health(_: ServerCall) -> Answer:
    """Report that the process is running, without accessing storage."""
    return json_answer(HealthOutput(status="ok", version=omnigraph.__version__, internal_schema_version=STAMP))


async def ready(call: ServerCall) -> Answer:
    """Report whether the worker accepts requests."""
    state = call.state
    if state.is_draining:
        return json_answer(ReadinessOutput(status="draining", graphs=len(state.graphs)), status=503)
    is_degraded = bool(state.graphs.quarantined)
    return json_answer(ReadinessOutput(status="degraded" if is_degraded else "ready", graphs=len(state.graphs)))


async def openapi(call: ServerCall) -> Answer:
    """Return the OpenAPI document."""
    return Answer(_encoded_openapi(not call.state.authenticator.is_open))


@cache
def _encoded_openapi(with_security: bool) -> bytes:
    from omnigraph.server.routes import ROUTES

    return json_answer(build_openapi(ROUTES, with_security=with_security)).body


async def docs_page(_: ServerCall) -> Answer:
    """Return the page that documents all operations. The page loads nothing from other hosts."""
    from omnigraph.server.docs_page import render_docs_page

    policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'"
    return Answer(render_docs_page(), f"{HTML}; charset=utf-8", headers={"Content-Security-Policy": policy})


def metrics(call: ServerCall) -> Answer:
    """Return the metrics of all workers."""
    return Answer(call.state.metrics.render(call.state), f"{PLAIN}; version=0.0.4; charset=utf-8")


async def whoami(call: ServerCall) -> Answer:
    """Return the caller."""
    principal = call.principal
    return json_answer(
        WhoamiOutput(
            actor_id=principal.actor,
            authentication=principal.authentication,
            permission=principal.permission,
            actions=sorted(principal.actions),
        )
    )


async def limits(call: ServerCall) -> Answer:
    """Return the limits of requests and results, so that clients can split larger requests."""
    configured = call.state.settings.limits
    return json_answer(
        LimitsOutput(
            json_bytes=configured.json_bytes,
            query_bytes=configured.query_bytes,
            load_bytes=configured.load_bytes,
            blob_bytes=configured.blob_bytes,
            result_rows=configured.result_rows,
            result_bytes=configured.result_bytes,
            query_seconds=configured.query_seconds,
            query_memory_bytes=configured.query_memory_bytes,
        )
    )


async def list_graphs(call: ServerCall) -> Answer:
    """List the graphs that are served."""
    graphs = [GraphInfo(graph_id=served.graph_id, uri=served.uri) for served in call.state.graphs]
    return json_answer(GraphListResponse(graphs=graphs))
