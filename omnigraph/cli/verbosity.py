"""Log output on standard error, controlled by `-v`, `-vv` and `OMNIGRAPH_LOG`.

`-v` shows one event per operation, and `-vv` also shows more detailed events. Set `OMNIGRAPH_LOG` to `json` to get
events as JSON lines, or to a level such as `info` or `debug`. Results on standard output are not affected.
"""

import os
import sys
from typing import Any

_LEVEL_NAMES = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR"}
_handlers: list[Any] = []


def start_log(verbosity: int) -> None:
    """Start logging if the flags or the environment request it; otherwise import nothing."""
    requested_log = os.environ.get("OMNIGRAPH_LOG", "").lower()
    if not verbosity and (not requested_log or _handlers):
        return  # logging was not requested, or a flag before the command already started it
    import logging

    from omnigraph.api.log_events import LOGGER, JsonLinesFormatter

    stop_log()
    handler = logging.StreamHandler(sys.stderr)
    text_formatter = logging.Formatter("%(levelname)s %(message)s")
    handler.setFormatter(JsonLinesFormatter() if requested_log == "json" else text_formatter)
    LOGGER.addHandler(handler)
    level = _LEVEL_NAMES.get(requested_log, "INFO")
    LOGGER.setLevel("DEBUG" if verbosity > 1 else "INFO" if verbosity else level)
    _handlers.append(handler)


def stop_log() -> None:
    """Restore the logger."""
    while _handlers:
        from omnigraph.api.log_events import LOGGER

        LOGGER.removeHandler(_handlers.pop())
        LOGGER.setLevel("NOTSET")
