"""Run independent jobs on executors, with plain data as inputs and results.

If a task is lost, its jobs run again, so running a job twice must be harmless. Exactly one result is returned per job.
Inputs are captured in the function that Spark sends to executors, so that they never appear in query plans or logs.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.errors import InternalError

from .session import parallelism, translate_spark_errors
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JobInput = TypeVar("JobInput")
JobResult = TypeVar("JobResult")
_RESULT_DDL = "number bigint, data binary"
_MAX_JOBS_PER_ROUND = 4_096  # number of jobs sent at once
_TASKS_PER_SLOT = 4  # number of tasks per task slot for short jobs


def run_jobs(
    spark: "SparkSession", work: Callable[[JobInput], JobResult], jobs: Sequence[JobInput], *, short: bool = False
) -> list[JobResult]:
    """Run jobs and return their results in job order; raise `ServerError` if a job fails permanently.

    Each job runs as its own task. If `short` is true, one task may run several jobs.
    """
    results: list[JobResult] = []
    with translate_spark_errors(spark):
        check_versions(spark)
        for start in range(0, len(jobs), _MAX_JOBS_PER_ROUND):
            round_jobs = jobs[start : start + _MAX_JOBS_PER_ROUND]
            task_count = min(len(round_jobs), _TASKS_PER_SLOT * parallelism(spark)) if short else len(round_jobs)
            results += _run_round(spark, work, round_jobs, task_count)
    return results


def _run_round(
    spark: "SparkSession", work: Callable[[JobInput], JobResult], jobs: Sequence[JobInput], task_count: int
) -> Iterator[JobResult]:
    job_count = len(jobs)
    result_frame = spark.range(0, job_count, 1, task_count).mapInArrow(_make_task(work, list(jobs)), _RESULT_DDL)
    result_rows = sorted(result_frame.toArrow().to_pylist(), key=lambda row: row["number"])
    if [row["number"] for row in result_rows] != list(range(job_count)):
        raise InternalError("Spark returned results that do not match the jobs it was given")
    return (pickle.loads(row["data"]) for row in result_rows)  # noqa: S301 - our own tasks wrote it


def _make_task(work: Callable[[JobInput], JobResult], jobs: list[JobInput]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for job_number in batch.column(0).to_pylist():
                pickled_result = pickle.dumps(work(jobs[job_number]))
                yield pa.RecordBatch.from_pydict({"number": [job_number], "data": [pickled_result]})

    run.__name__ = getattr(work, "__name__", "maintenance")  # shown in the query plan
    return run
