"""Choose where an operation runs: in this process or on Spark.

Every operation works without Spark, so "auto" uses Spark only if the workload is large and a session can be started.
Spark is imported only if it is chosen.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal, get_args

from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.history.branch_state import BranchState
    from omnigraph.maintenance.executors.protocol import Executor, ExecutorForFiles
    from omnigraph.storage.store import Store

Engine = Literal["auto", "spark", "local"]
EngineChoice = tuple[Engine, Any]  # (engine name, Spark session)
OPTIMIZE_MIN_BYTES = 1 << 30  # below this many bytes to read, running `optimize` on Spark does not pay off
CHECK_MIN_BYTES = 32 << 30  # below this total size of the files, running a check on Spark does not pay off
CLEANUP_MIN_FILES = 100_000  # with fewer files, running a cleanup on Spark does not pay off


def check_engine(engine: str) -> None:
    """Raise `UsageError` for an unknown engine."""
    if engine not in get_args(Engine):
        expected = ", ".join(get_args(Engine))
        raise UsageError(reason=f"unknown engine {engine!r}; expected one of {expected}")


def choose_session(engine: Engine, spark: Any, is_large: Callable[[], bool]) -> Any | None:
    """Return the Spark session to use, or None to use this process. `is_large` is called only for "auto"."""
    check_engine(engine)
    if engine == "local" or (engine == "auto" and not is_large()):
        return None
    if spark is not None:
        return spark
    from omnigraph.spark.session import spark_session, spark_session_or_none

    return spark_session() if engine == "spark" else spark_session_or_none()


def choose_optimize_executor(
    branch_state: "BranchState", types: Collection[str] | None, engine: EngineChoice
) -> "Executor | None":
    """Return the executor that runs `optimize`, or None to run it in this process."""
    from omnigraph.maintenance.optimize import estimate_read_bytes

    session = choose_session(*engine, lambda: estimate_read_bytes(branch_state, types) >= OPTIMIZE_MIN_BYTES)
    return _make_spark_executor(session) if session is not None else None


def choose_check_executor(store: "Store", engine: EngineChoice) -> "Executor | None":
    """Return the executor that verifies files against their checksums, or None to verify them in this process."""
    from omnigraph.maintenance.check import measure_table_files

    session = choose_session(*engine, lambda: measure_table_files(store) >= CHECK_MIN_BYTES)
    return _make_spark_executor(session) if session is not None else None


def choose_cleanup_executor(engine: EngineChoice) -> "tuple[Executor, ExecutorForFiles]":
    """Return the executor that lists files for a cleanup, and a function that chooses the executor for the rest.

    The function takes the number of files. "auto" lists the files in this process, because the amount of work is not
    known until they are listed.
    """
    from omnigraph.maintenance.executors.local import LocalExecutor

    engine_name, spark = engine
    session = choose_session(engine_name, spark, lambda: False)
    listing_executor = _make_spark_executor(session) if session is not None else LocalExecutor()

    def choose_for_files(file_count: int) -> "Executor":
        if engine_name != "auto":
            return listing_executor
        session = choose_session("auto", spark, lambda: file_count >= CLEANUP_MIN_FILES)
        return _make_spark_executor(session) if session is not None else listing_executor

    return listing_executor, choose_for_files


def _make_spark_executor(session: Any) -> "Executor":
    from omnigraph.spark.executor import SparkExecutor

    return SparkExecutor(session)
