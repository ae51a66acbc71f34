"""Whether upkeep runs in this process or on Spark. Spark is not imported before it was chosen.

Upkeep needs no Spark, so that "auto" takes it only where there is much to do and one can be had.
"""

import logging
from collections.abc import Callable
from typing import Any

from omnigraph.errors import ConfigError

from .engine import Engine, check_engine

_log = logging.getLogger("omnigraph")


def session_for(engine: Engine, spark: Any, is_large: Callable[[], bool]) -> Any | None:
    """The session to work on, None for this process. `is_large` is asked for "auto" only."""
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
    """A session if one can be had; what prevents it is no failure."""
    from .session import may_start

    if not may_start():
        return None
    try:
        return _started()
    except ConfigError as error:
        _log.info("upkeep stays in this process: %s", error)
        return None
