"""Log output on standard error: `-v`, `-vv`, `OMNIGRAPH_LOG`.

`-v` shows one event per operation, `-vv` more. `OMNIGRAPH_LOG` is `json` for events as JSON lines,
or a level such as `info` or `debug`. Results on standard output are not affected.
"""

import os
import sys
from typing import Any

_LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR"}
_handlers: list[Any] = []


def start_log(times: int) -> None:
    """Start logging if the flags or the environment ask for it; otherwise import nothing."""
    asked = os.environ.get("OMNIGRAPH_LOG", "").lower()
    if not times and (not asked or _handlers):
        return  # not requested, or already started by a flag before the command
    import logging

    from omnigraph.events import LOGGER, JsonLines

    stop_log()
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if asked == "json" else plain)
    LOGGER.addHandler(handler)
    level = _LEVELS.get(asked, "INFO")
    LOGGER.setLevel("DEBUG" if times > 1 else "INFO" if times else level)
    _handlers.append(handler)


def stop_log() -> None:
    """Restore the logger."""
    while _handlers:
        from omnigraph.events import LOGGER

        LOGGER.removeHandler(_handlers.pop())
        LOGGER.setLevel("NOTSET")
