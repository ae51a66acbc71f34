"""Log one event per request: method, route, status, duration, graph and actor, but never query texts or values."""

import json
import logging
import sys
from typing import Any

from omnigraph.values import clock_and_ids

from .call import ServerCall
from .settings import ServerSettings

LOGGER = logging.getLogger("omnigraph.server")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        event = {"time": clock_and_ids.now().isoformat(), "level": record.levelname.lower()}
        event |= {"message": record.getMessage(), **getattr(record, "facts", {})}
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


class _TextFormatter(logging.Formatter):
    """Formats a log record as a line that lists its facts as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        line = f"{clock_and_ids.now().isoformat()} {record.levelname} {record.getMessage()} {facts}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(settings: ServerSettings) -> None:
    """Write the server's log to standard error, in the configured format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if settings.log_format == "json" else _TextFormatter())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(_LEVELS.get(settings.log_level.lower(), logging.INFO))
    LOGGER.propagate = False


def log_request(call: ServerCall | None, method: str, status: int, seconds: float, request_id: str) -> None:
    """Log one finished request."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    facts: dict[str, Any] = {"method": method, "status": status, "ms": round(seconds * 1000, 1), "id": request_id}
    if call is not None:
        facts |= {"route": call.route.path, "actor": call.actor}
        if call.served is not None:
            facts["graph"] = call.served.graph_id
    LOGGER.info("request", extra={"facts": facts})


def log_failure(call: ServerCall | None, error: BaseException, request_id: str) -> None:
    """Log an unexpected failure with its traceback, which is never sent to the client."""
    facts = {"id": request_id, "route": None if call is None else call.route.path}
    LOGGER.error("request failed: %s", type(error).__name__, exc_info=error, extra={"facts": facts})
