"""Runs cases against a Spark outside the test process and reports each outcome.

`python -m tests.spark.cluster_run KIND ADDRESS FOLDER [CASE ...]` prints JSON lines.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from omnigraph.spark.session import spark_session
from tests.spark.cluster_cases import CASES, Site
from tests.spark.cluster_rig import CHECKOUT, SHORT_LIVED
from tests.spark.executor_fault_cases import FAULTS


def session(kind: str, address: str, folder: Path) -> Any:
    """A session as a user would get it; only folders and addresses are those of the test."""
    if kind == "connect":
        return spark_session(remote=address)
    settings = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(CHECKOUT),
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        # All workers of a test are on one machine, which is not to be given up.
        "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
        "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "3",
    }
    return spark_session(master=address, settings=settings)


def main(kind: str, address: str, folder: Path, names: list[str]) -> None:
    """Run the cases one after the other in one session."""
    spark = session(kind, address, folder)
    for name in names or CASES:
        place = folder / name
        place.mkdir(parents=True)
        error = None
        try:
            (CASES | FAULTS)[name](Site(spark, place, retries=True))
        except Exception:  # whatever it is, the other cases are to be run
            error = traceback.format_exc()
        print(json.dumps({"case": name, "error": error}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
