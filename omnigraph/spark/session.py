"""Find or start a Spark session: the active session, a minimal local one, or one on a cluster or Spark Connect server.

This is the only module that may use the Spark context, which Spark Connect does not have. It also finds a Java
installation, or explains what is missing. The JVM's output never goes to the terminal.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import ConfigError, ServerError
from omnigraph.values import clock_and_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("omnigraph")
OLDEST_JAVA = 17
_COMMON_SETTINGS = {
    "spark.app.name": "omnigraph",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
_LOCAL_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalogImplementation": "in-memory",
}
_CONNECT_PACKAGES = ("pandas", "grpc", "grpc_status", "zstandard")
# If a machine has run out of disk space, its tasks fail quickly and Spark keeps assigning new tasks to it, so Spark
# must exclude such a machine.
_CLUSTER_SETTINGS = {"spark.excludeOnFailure.enabled": "true"}


def spark_session(
    *, master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Return this process's active session, or start a local one.

    With `master` or `remote`, start a session on that Spark master or server. Raises `ConfigError` if PySpark or Java
    is missing, or if the session does not start.
    """
    if master is not None and remote is not None:
        raise ConfigError(reason="`master` and `remote` are mutually exclusive: pass only one of them")
    session_class = _import_pyspark().SparkSession
    active_session = session_class.getActiveSession()
    if active_session is not None and master is None and remote is None:
        return active_session  # type: ignore[no-any-return]
    try:
        if remote is not None:
            return _start_connect_session(session_class, remote, settings or {})
        return _start_classic_session(session_class, master or f"local[{_available_cores()}]", settings or {})
    except ConfigError:
        raise
    except Exception as error:  # Spark may raise any exception class
        raise ConfigError(reason=f"Spark did not start: {_first_line(error)}") from error


def _import_pyspark() -> Any:
    try:
        import pyspark.sql
    except ImportError as error:
        raise ConfigError(
            reason="PySpark is not installed",
            hint="run `pip install omnigraph[spark]`; for small data, use engine 'local'",
        ) from error
    allow_without_pandas()
    return pyspark.sql


def allow_without_pandas() -> None:
    """Allow `mapInArrow` to run without pandas. Spark requires pandas for this function but does not use it.

    Pandas is optional: if it is installed, pyarrow imports it when the first array is created, which doubles every
    command's start-up time.
    """
    from pyspark.sql.pandas import functions

    if find_spec("pandas") is None:
        pandas_functions: Any = functions
        pandas_functions.require_minimum_pandas_version = lambda: None


def _start_connect_session(session_class: Any, remote: str, settings: Mapping[str, str]) -> "SparkSession":
    # Detect missing packages here: if one is missing, PySpark mistakes `python -c` for one of its own tests and exits
    # with status 0.
    missing_packages = [name for name in _CONNECT_PACKAGES if find_spec(name) is None]
    if missing_packages:
        raise ConfigError(
            reason=f"Spark Connect requires packages that are missing: {', '.join(missing_packages)}",
            hint="run `pip install omnigraph[connect]`",
        )
    builder = session_class.builder.remote(remote)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()  # type: ignore[no-any-return]


def _start_classic_session(session_class: Any, master: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext

    running_context = SparkContext._active_spark_context
    if running_context is not None and running_context.master != master:
        raise ConfigError(
            reason=f"cannot use Spark on {master}: this process is already running Spark on {running_context.master}",
            hint="pass the running session, or stop it first",
        )
    is_local = master.startswith("local")
    mode_settings = _LOCAL_SETTINGS if is_local else _CLUSTER_SETTINGS
    all_settings = {**_COMMON_SETTINGS, **mode_settings, "spark.master": master, **settings}
    spark_conf = SparkConf(loadDefaults=False)
    for setting, value in all_settings.items():
        spark_conf.set(setting, value)
    _start_jvm(spark_conf)
    return session_class.builder.config(conf=spark_conf).getOrCreate()  # type: ignore[no-any-return]


def _start_jvm(spark_conf: Any) -> None:
    """Start the JVM, once per process; if it does not start, the error quotes its output."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    java_path = find_java(os.environ, Path(sys.prefix))
    if java_path is None:
        raise ConfigError(
            reason=f"Spark requires Java {OLDEST_JAVA} or newer, but none was found",
            hint="install Java or set JAVA_HOME; for small data, use engine 'local'",
        )
    os.environ["JAVA_HOME"] = str(java_path.parent.parent)  # otherwise, an invalid JAVA_HOME would take precedence
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    log_descriptor, log_path = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    try:
        untyped_launch: Any = launch_gateway
        with warnings.catch_warnings():
            # Lance warns about forked processes, but this fork only starts Java.
            warnings.filterwarnings("ignore", message=".*fork")
            gateway = untyped_launch(spark_conf, popen_kwargs={"stderr": log_descriptor})
    except Exception as error:
        log_tail = " ".join(Path(log_path).read_text("utf-8", "replace").split())[-500:]
        raise ConfigError(reason=f"Java did not start: {log_tail or error}") from error
    finally:
        os.close(log_descriptor)
        Path(log_path).unlink()  # the JVM's later output is discarded
    SparkContext._ensure_initialized(gateway=gateway, conf=spark_conf)


def can_start_session() -> bool:
    """Return whether a session can probably be started: PySpark is installed, and Java is available or not needed."""
    if find_spec("pyspark") is None:
        return False
    is_imported = "pyspark" in sys.modules  # an active Connect session needs no Java
    return is_imported or find_java(os.environ, Path(sys.prefix)) is not None


def spark_session_or_none() -> "SparkSession | None":
    """Find or start a session; return None if no session can be started."""
    if not can_start_session():
        return None
    try:
        return spark_session()
    except ConfigError as error:
        _log.info("running maintenance in this process: %s", error)
        return None


def find_java(environment: Mapping[str, str], prefix: Path) -> Path | None:
    """Find a sufficiently recent `java` executable in JAVA_HOME, on the path, or in this Python environment."""
    candidates = [Path(environment["JAVA_HOME"], "bin", "java")] if environment.get("JAVA_HOME") else []
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    candidates += [Path(on_path).resolve()] if on_path else []
    candidates.append(prefix / "java" / "bin" / "java")
    return next(
        (candidate for candidate in candidates if candidate.exists() and _java_major_version(candidate) >= OLDEST_JAVA),
        None,
    )


def _java_major_version(java_path: Path) -> int:
    try:
        completed = subprocess.run(  # noqa: S603 - a resolved path and a constant
            [java_path, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    version_match = re.search(r'version "(?:1\.)?(\d+)', completed.stderr + completed.stdout)
    return int(version_match[1]) if version_match else 0


def active_session() -> "SparkSession | None":
    """Return the session of this process, or None if it has none."""
    session: SparkSession | None = _import_pyspark().SparkSession.getActiveSession()
    return session


def parallelism(spark: "SparkSession") -> int:
    """Return the number of tasks that can run concurrently, or an estimate if the session does not report it."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return 8


def shared_files_folder(spark: "SparkSession") -> Path | None:
    """Return the folder of temporary files that the driver shares with all tasks, or None if there is no such folder.

    Only tasks of a local session run on the driver's machine and in its JVM.
    """
    try:
        master = str(spark.sparkContext.master)
    except Exception:  # Spark Connect has no context
        return None
    if not master.startswith("local") or master.startswith("local-cluster"):
        return None
    from pyspark import SparkFiles

    return Path(SparkFiles.getRootDirectory())


def running_tasks(spark: "SparkSession") -> tuple[int, int]:
    """Return the finished and total task counts for running stages, or zeros if they are not available."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stage_infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # Spark Connect has no context, or the session was stopped
        return 0, 0
    stages = [stage for stage in stage_infos if stage is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


@contextmanager
def translate_spark_errors(spark: "SparkSession") -> Iterator[None]:
    """Convert Spark failures to `ServerError`; on an interrupt, cancel our jobs.

    Only our own jobs are canceled, because a session passed in by the caller may run other jobs.
    """
    job_tag = f"omnigraph-{clock_and_ids.new_ulid()}"
    spark.addTag(job_tag)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        spark.interruptTag(job_tag)
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise ServerError(
            f"the Spark job failed: {_find_cause(str(error))}",
            effect="none",
            hint="nothing was published; fix the cause and run the command again",
        ) from error
    finally:
        with suppress(Exception):  # the session may have been stopped
            spark.removeTag(job_tag)


def _find_cause(failure_report: str) -> str:
    r"""Return the line in a long error report that contains the error message.

    >>> _find_cause("Job aborted\nTraceback:\n  File x\nValueError: no room\n at java.Thing")
    'ValueError: no room'
    """
    lines = [line.strip() for line in failure_report.splitlines() if line.strip()]
    error_lines = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*: ", line)]
    return (error_lines or lines or ["no reason was reported"])[-1 if error_lines else 0][:300]


def _available_cores() -> int:
    return max(1, len(os.sched_getaffinity(0)))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
