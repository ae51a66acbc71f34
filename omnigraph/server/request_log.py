"""Log one event per request: method, route, status, duration, graph and actor, but never query text or values."""

import logging
from typing import Any

from .call import ServerCall
from .log_output import LOGGER


def log_request(
    call: ServerCall | None, method: str, status: int, seconds: float, request_id: str, *, trace_id: str | None = None
) -> None:
    """Log one finished request, with the id of its trace if tracing is enabled."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    facts: dict[str, Any] = {"method": method, "status": status, "ms": round(seconds * 1000, 1), "id": request_id}
    if call is not None:
        facts |= {"route": call.route.path, "actor": call.actor}
        if call.served is not None:
            facts["graph"] = call.served.graph_id
    if trace_id is not None:
        facts["trace"] = trace_id
    LOGGER.info("request", extra={"facts": facts})


def log_failure(call: ServerCall | None, error: BaseException, request_id: str) -> None:
    """Log an unexpected failure with its stack frames, which are never sent to the client."""
    facts = {"id": request_id, "route": None if call is None else call.route.path}
    LOGGER.error("request failed: %s", type(error).__name__, exc_info=error, extra={"facts": facts})
