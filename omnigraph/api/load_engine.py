"""Choose the engine for a load of files, gathering only the facts that the prediction needs.

Looking for Java starts a process, so this module looks for it only if Spark could be chosen. The module must not import
Spark unless Spark is chosen or already in use.
"""

import sys
from collections.abc import Sequence
from typing import Any

from omnigraph.api.load_engine_model import (
    COMPRESSION_RATIO,
    SPARK_JOB_SECONDS,
    SPARK_START_SECONDS,
    USABLE_MEMORY_SHARE,
    EnginePrediction,
    LoadWork,
    Machine,
    available_cores,
    available_memory,
    predict_engine,
    predict_local_bytes,
    predict_local_seconds,
)
from omnigraph.ingest.input_files import COMPRESSED_SUFFIXES, InputFile
from omnigraph.ingest.load import LoadMode
from omnigraph.ingest.streaming.streamed_load import STREAMED_MODES

_CONNECT_CORES = 8  # assumed, because a Spark Connect server does not report how many tasks it runs concurrently


def measure_work(input_files: Sequence[InputFile], mode: LoadMode, *, has_rows: bool) -> LoadWork:
    """Return the size of the input by format, and whether it can be streamed.

    `has_rows` indicates whether the graph has rows that a merge may replace.
    """
    bytes_by_format: dict[str, int] = {}
    for input_file in input_files:
        ratio = COMPRESSION_RATIO if input_file.path.endswith(tuple(COMPRESSED_SUFFIXES)) else 1
        previous = bytes_by_format.get(input_file.file_format, 0)
        bytes_by_format[input_file.file_format] = previous + input_file.size * ratio
    is_streamed = mode in STREAMED_MODES and not (mode == "merge" and has_rows)
    return LoadWork(bytes_by_format, is_streamed)


def choose_load_engine(work: LoadWork, session: Any, remote: str | None) -> EnginePrediction:
    """Choose between this process and Spark."""
    machine = Machine(available_cores(), available_memory())
    is_running = session is not None or remote is not None or _has_active_session()
    local_seconds = predict_local_seconds(work, machine.cores)
    least_spark_seconds = SPARK_JOB_SECONDS + (0.0 if is_running else SPARK_START_SECONDS)
    if local_seconds <= least_spark_seconds and _fits_in_memory(work, machine):
        reason = f"Spark would need at least {least_spark_seconds:.0f} s"
        local_bytes = predict_local_bytes(work, machine.cores)
        return EnginePrediction("local", local_seconds, None, local_bytes, reason)
    spark_cores = _spark_cores(session, remote, is_running=is_running)
    return predict_engine(work, Machine(machine.cores, machine.free_bytes, spark_cores, is_running))


def _fits_in_memory(work: LoadWork, machine: Machine) -> bool:
    needed_bytes = predict_local_bytes(work, machine.cores)
    return machine.free_bytes is None or needed_bytes <= machine.free_bytes * USABLE_MEMORY_SHARE


def _has_active_session() -> bool:
    """Return whether this process has a Spark session, without importing Spark."""
    if "pyspark" not in sys.modules:
        return False
    from omnigraph.spark.session import active_session

    return active_session() is not None


def _spark_cores(session: Any, remote: str | None, *, is_running: bool) -> int:
    from omnigraph.spark.session import active_session, can_start_session, parallelism

    if remote is not None:
        return _CONNECT_CORES
    running_session = session if session is not None else active_session()
    if is_running and running_session is not None:
        return parallelism(running_session)
    return available_cores() if can_start_session() else 0
