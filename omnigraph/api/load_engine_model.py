"""Predict how long a load takes in this process and on Spark, and how much memory it needs in this process.

The constants are measured by `python -m bench.engines`, which also prints the size at which Spark becomes faster than
this process. This module only calculates; it never reads the input and never imports Spark. The prediction is
approximate. If both engines would take equally long, this process is chosen, because it needs no Java.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from omnigraph.ingest.streaming.run_threads import MAX_THREADS

_MB = 1_000_000
# Seconds that one core needs per megabyte of input, measured with small records (about a hundred bytes of JSON each).
LOCAL_SECONDS = {"ndjson": 0.016, "csv": 0.015, "parquet": 0.033}
SPARK_SECONDS = {"ndjson": 0.026, "csv": 0.022, "parquet": 0.045}
SPARK_START_SECONDS = 13.0  # seconds until a new session has run its first task
SPARK_JOB_SECONDS = 1.5  # seconds to plan and schedule the jobs for one load
# Threads share the interpreter lock, so additional cores do not make a load in this process faster.
MAX_LOCAL_CORES = 4
# A load in this process needs a fixed amount of memory, one fragment's rows per thread, and a share of the input.
FIXED_BYTES = 300 * _MB
THREAD_BYTES = 120 * _MB
STREAMED_SHARE = {"ndjson": 0.25, "csv": 0.4, "parquet": 2.0}  # only ids and unique values stay in memory
WHOLE_SHARE = {"ndjson": 2.5, "csv": 3.0, "parquet": 10.0}  # all rows stay in memory
COMPRESSION_RATIO = 4  # ratio of the text size to the compressed size
USABLE_MEMORY_SHARE = 0.6  # share of the available memory that a load may use
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class LoadWork:
    """A load's input: its size by format (after decompression), and whether it can be streamed."""

    bytes_by_format: Mapping[str, int]
    is_streamed: bool = True

    @property
    def total_bytes(self) -> int:
        """The total number of bytes in all formats."""
        return sum(self.bytes_by_format.values())


@dataclass(frozen=True, slots=True)
class Machine:
    """The resources available to a load: this machine's cores and free memory, and Spark.

    `spark_cores` is the number of tasks that Spark runs at the same time. It is 0 if Spark cannot be used.
    """

    cores: int
    free_bytes: int | None
    spark_cores: int = 0
    spark_is_running: bool = False


@dataclass(frozen=True, slots=True)
class EnginePrediction:
    """The chosen engine, the predicted time in seconds on each engine, and the reason as text."""

    engine: Literal["local", "spark"]
    local_seconds: float
    spark_seconds: float | None
    local_bytes: int
    reason: str


def predict_engine(work: LoadWork, machine: Machine) -> EnginePrediction:
    """Choose the engine for a load.

    >>> work = LoadWork({"ndjson": 122_000_000})
    >>> prediction = predict_engine(work, Machine(2, 8_000_000_000, 2))
    >>> prediction.engine, prediction.reason
    ('local', 'loading 122 MB takes about 1 s in this process and 16 s on Spark, including startup')
    >>> predict_engine(work, Machine(2, 100_000_000, 2)).reason
    'this process would need about 0.57 GB of memory, but only 0.10 GB is free'
    """
    local_seconds, local_bytes = predict_local_seconds(work, machine.cores), predict_local_bytes(work, machine.cores)
    if not machine.spark_cores:
        reason = f"loading {_format_mb(work.total_bytes)} takes about {local_seconds:.0f} s, and Spark is not available"
        return EnginePrediction("local", local_seconds, None, local_bytes, reason)
    spark_seconds = predict_spark_seconds(work, machine)
    if machine.free_bytes is not None and local_bytes > machine.free_bytes * USABLE_MEMORY_SHARE:
        needed, free = local_bytes / 1e9, machine.free_bytes / 1e9
        reason = f"this process would need about {needed:.2f} GB of memory, but only {free:.2f} GB is free"
        return EnginePrediction("spark", local_seconds, spark_seconds, local_bytes, reason)
    start_note = "" if machine.spark_is_running else ", including startup"
    engine: Literal["local", "spark"] = "spark" if spark_seconds < local_seconds else "local"
    reason = (
        f"loading {_format_mb(work.total_bytes)} takes about {max(local_seconds, 1):.0f} s in this process"
        f" and {max(spark_seconds, 1):.0f} s on Spark{start_note}"
    )
    return EnginePrediction(engine, local_seconds, spark_seconds, local_bytes, reason)


def predict_local_seconds(work: LoadWork, cores: int) -> float:
    """Predict the duration of a load in this process. A load that is not streamed uses one thread."""
    threads = min(cores, MAX_LOCAL_CORES) if work.is_streamed else 1
    return _core_seconds(work, LOCAL_SECONDS) / threads


def predict_spark_seconds(work: LoadWork, machine: Machine) -> float:
    """Predict the duration of a load on Spark."""
    start_seconds = 0.0 if machine.spark_is_running else SPARK_START_SECONDS
    return start_seconds + SPARK_JOB_SECONDS + _core_seconds(work, SPARK_SECONDS) / max(1, machine.spark_cores)


def predict_local_bytes(work: LoadWork, cores: int) -> int:
    """Predict the peak memory of a load in this process."""
    shares = STREAMED_SHARE if work.is_streamed else WHOLE_SHARE
    threads = min(cores, MAX_THREADS) if work.is_streamed else 1
    input_bytes = sum(size * shares[file_format] for file_format, size in work.bytes_by_format.items())
    return int(FIXED_BYTES + threads * THREAD_BYTES + input_bytes)


def available_memory(meminfo: str | None = None, cgroup: Path = _CGROUP) -> int | None:
    r"""Return the memory that this process may still use, in bytes, or None if it is unknown.

    >>> available_memory("MemTotal: 100 kB\nMemAvailable: 40 kB\n", Path("/none"))
    40960
    """
    limits = [limit for limit in (_machine_memory(meminfo), _cgroup_memory(cgroup)) if limit is not None]
    return min(limits) if limits else None


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def _machine_memory(meminfo: str | None) -> int | None:
    try:
        text = Path("/proc/meminfo").read_text() if meminfo is None else meminfo
        line = next(line for line in text.splitlines() if line.startswith("MemAvailable:"))
        return int(line.split()[1]) << 10
    except (OSError, StopIteration, ValueError):
        return None


def _cgroup_memory(cgroup: Path) -> int | None:
    try:
        limit, used = ((cgroup / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return max(0, int(limit) - int(used))
    except (OSError, ValueError):  # there is no cgroup, or its limit is "max"
        return None


def _core_seconds(work: LoadWork, seconds_per_mb: Mapping[str, float]) -> float:
    return sum(size / _MB * seconds_per_mb[file_format] for file_format, size in work.bytes_by_format.items())


def _format_mb(byte_count: int) -> str:
    return f"{byte_count / _MB:,.0f} MB" if byte_count < 10_000 * _MB else f"{byte_count / 1e9:,.1f} GB"
