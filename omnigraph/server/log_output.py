"""The server's log: one line per event on standard error, as text or as JSON.

This module must load quickly, because the supervisor also imports it.
"""

import json
import logging
import sys

from omnigraph.values import clock_and_ids

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
    """Formats a log record as one line that ends with its attributes, as `name=value`."""

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
