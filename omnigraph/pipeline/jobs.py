"""Run independent jobs on executors: plain data in, plain data out, each result exactly once.

A job may run twice if its task is lost, so running it twice must be harmless; only one of its
results is returned. Inputs travel inside the function that Spark ships, because plans and logs must
not show them.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.errors import InternalError

from .session import parallelism, watched
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Job = TypeVar("Job")
Result = TypeVar("Result")
_DDL = "number bigint, data binary"
_MOST = 4_096  # jobs sent at once
_EACH = 4  # tasks of short jobs per task that can run at once


def run_jobs(
    spark: "SparkSession",
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    short: bool = False,
) -> list[Result]:
    """Return the results in the order of the jobs; raise `ServerError` if a job fails for good.

    Each job is one task, unless `short`: then a task runs several.
    """
    found: list[Result] = []
    with watched(spark):
        check_versions(spark)
        for start in range(0, len(jobs), _MOST):
            some = jobs[start : start + _MOST]
            tasks = min(len(some), _EACH * parallelism(spark)) if short else len(some)
            found += _run(spark, work, some, tasks)
    return found


def _run(
    spark: "SparkSession", work: Callable[[Job], Result], jobs: Sequence[Job], tasks: int
) -> Iterator[Result]:
    count = len(jobs)
    frame = spark.range(0, count, 1, tasks).mapInArrow(_task(work, list(jobs)), _DDL)
    rows = sorted(frame.toArrow().to_pylist(), key=lambda one: one["number"])
    if [one["number"] for one in rows] != list(range(count)):
        raise InternalError("Spark returned results that do not match the jobs it was given")
    return (pickle.loads(one["data"]) for one in rows)  # noqa: S301 - our own tasks wrote it


def _task(work: Callable[[Job], Result], jobs: list[Job]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data = pickle.dumps(work(jobs[number]))
                yield pa.RecordBatch.from_pydict({"number": [number], "data": [data]})

    run.__name__ = getattr(work, "__name__", "maintenance")  # shown in the query plan
    return run
