"""Choose where an operation runs: in this process, or on Spark.

Every operation works without Spark, so "auto" uses it only if there is much to do and a session
can be started. Spark is not imported before it is chosen.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.history.branch_state import BranchState
    from omnigraph.spark.engine import Engine
    from omnigraph.storage.maintenance_executor import MaintenanceExecutor
    from omnigraph.storage.store import Store

EngineChoice = tuple["Engine", Any]  # the name of the engine, and the session of Spark
CHECK_MIN_BYTES = 32 << 30  # bytes of files from which a check on Spark pays for its start-up


def choose_optimize_executor(
    branch_head: "BranchState", types: Collection[str] | None, engine: EngineChoice
) -> "MaintenanceExecutor | None":
    """The executor of an optimize; None is this process."""
    from omnigraph.maintenance.optimize import estimate_read_bytes
    from omnigraph.spark.optimize import SPARK_MIN_BYTES, SparkMaintenanceExecutor
    from omnigraph.spark.session_choice import choose_session

    session = choose_session(
        *engine, lambda: estimate_read_bytes(branch_head, types) >= SPARK_MIN_BYTES
    )
    return SparkMaintenanceExecutor(session) if session is not None else None


def choose_check_executor(store: "Store", engine: EngineChoice) -> "MaintenanceExecutor | None":
    """The executor that compares files with their checksums; None is this process."""
    from omnigraph.maintenance.check import measure_table_files
    from omnigraph.spark.optimize import SparkMaintenanceExecutor
    from omnigraph.spark.session_choice import choose_session

    session = choose_session(*engine, lambda: measure_table_files(store) >= CHECK_MIN_BYTES)
    return SparkMaintenanceExecutor(session) if session is not None else None
