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


def session_for(engine: Engine, spark: Any, is_large: Callable[[], bool]) -> Any | None:
    """Return the session to use, None for this process; `is_large` is called for "auto" only."""
    check_engine(engine)
    if engine == "local" or (engine == "auto" and not is_large()):
        return None
    if spark is not None:
        return spark
    if engine == "spark":
        return _started()
    return _any_session()


def _started() -> Any:
    from .session import spark_session

    return spark_session()


def _any_session() -> Any | None:
    """Return a session if one can be started; a failure to start is not an error."""
    from .session import may_start

    if not may_start():
        return None
    try:
        return _started()
    except ConfigError as error:
        _log.info("maintenance runs in this process: %s", error)
        return None
