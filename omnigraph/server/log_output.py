"""The server's log: one line per event on standard error, as text or as JSON.

The log never contains storage locations, tokens, or the contents of requests. This module must load quickly, because
the supervisor also imports it.
"""

import json
import logging
import sys
import traceback
from pathlib import PurePath

from omnigraph.values import clock_and_ids

from .settings import ServerSettings

LOGGER = logging.getLogger("omnigraph.server")
_PACKAGE_FOLDER = "omnigraph"
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        event = {"time": clock_and_ids.now().isoformat(), "level": record.levelname.lower()}
        event |= {"message": record.getMessage(), **getattr(record, "facts", {})}
        if record.exc_info:
            event["traceback"] = _format_traceback(record.exc_info[1])
        return json.dumps(event, ensure_ascii=False, default=str)


class _TextFormatter(logging.Formatter):
    """Formats a log record as one line that ends with its attributes, as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        line = f"{clock_and_ids.now().isoformat()} {record.levelname} {record.getMessage()} {facts}".rstrip()
        return f"{line}\n{_format_traceback(record.exc_info[1])}" if record.exc_info else line


def _format_traceback(error: BaseException | None) -> str:
    """Return the stack frames of an error and of its causes.

    Messages are omitted, because they may contain paths, query texts and values. Module paths begin with the name of
    the package.
    """
    parts: list[str] = []
    while error is not None:
        frames = (
            f"  {_code_path(frame.filename)}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        )
        parts.append("\n".join([type(error).__name__, *frames]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\ncaused by ".join(parts)


def _code_path(filename: str) -> str:
    """Return the path of a module, beginning with the name of its package.

    >>> _code_path("/opt/omnigraph/lib/python3.12/site-packages/uvicorn/main.py"), _code_path("/x/queue.py")
    ('uvicorn/main.py', 'queue.py')
    """
    parts = PurePath(filename).parts
    for folder in ("site-packages", _PACKAGE_FOLDER):
        if folder in parts:
            position = len(parts) - 1 - parts[::-1].index(folder)
            return "/".join(parts[position + (folder == "site-packages") :])
    return parts[-1]


def configure_logging(settings: ServerSettings) -> None:
    """Write the server's log to standard error, in the configured format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if settings.log_format == "json" else _TextFormatter())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(_LEVELS.get(settings.log_level.lower(), logging.INFO))
    LOGGER.propagate = False
