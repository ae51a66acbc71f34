"""Choose whether maintenance runs in this process or on Spark.

Maintenance works without Spark, so "auto" uses it only if there is much to do and a session can be
started. Spark must not be imported before it is chosen.
"""

import logging
from collections.abc import Callable
from typing import Any

from omnigraph.errors import ConfigError

from .engine import Engine, check_engine

_log = logging.getLogger("omnigraph")


def choose_session(engine: Engine, spark: Any, is_large: Callable[[], bool]) -> Any | None:
    """Return the session to use, None for this process; `is_large` is called for "auto" only."""
    check_engine(engine)
    if engine == "local" or (engine == "auto" and not is_large()):
        return None
    if spark is not None:
        return spark
    if engine == "spark":
        return _start_session()
    return _session_if_available()


def _start_session() -> Any:
    from .session import spark_session

    return spark_session()


def _session_if_available() -> Any | None:
    """Return a session if one can be started; a failure to start is not an error."""
    from .session import can_start_session

    if not can_start_session():
        return None
    try:
        return _start_session()
    except ConfigError as error:
        _log.info("maintenance runs in this process: %s", error)
        return None
