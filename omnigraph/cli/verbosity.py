"""What the program tells of its own work on standard error: `-v`, `-vv`, `OMNIGRAPH_LOG`.

`-v` shows one event per operation, `-vv` more; `OMNIGRAPH_LOG` is `json` for events as JSON lines,
or a level such as `info` or `debug`. Results on standard output stay as they are.
"""

import os
import sys

_LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR"}


def start_log(times: int) -> None:
    """Log as the flags and the environment ask; nothing is loaded when they ask for nothing."""
    asked = os.environ.get("OMNIGRAPH_LOG", "").lower()
    if not times and not asked:
        return
    import logging

    from omnigraph.events import LOGGER, JsonLines

    if not times and not LOGGER.propagate:
        return  # the flag stood before the command

    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if asked == "json" else plain)
    for old in LOGGER.handlers[:]:
        LOGGER.removeHandler(old)
    LOGGER.addHandler(handler)
    LOGGER.propagate = False
    level = _LEVELS.get(asked, "INFO")
    LOGGER.setLevel("DEBUG" if times > 1 else "INFO" if times else level)
