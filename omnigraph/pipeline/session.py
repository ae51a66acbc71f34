"""The Spark session: a lean local one, one on a cluster, one behind Spark Connect, or the caller's.

The only module that may touch the Spark context, which Spark Connect does not have. Finds Java or
explains what is missing. Output of the JVM goes to a file, never to the terminal.
"""

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

from omnigraph import ids
from omnigraph.errors import ConfigError, ServerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_SETTINGS = {
    "spark.app.name": "omnigraph",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
_LOCAL = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalogImplementation": "in-memory",
}
_CONNECT = ("pandas", "grpc", "grpc_status", "zstandard")
# A machine without disk space fails tasks at once and gets new ones: Spark must exclude it.
_CLUSTER = {"spark.excludeOnFailure.enabled": "true"}


def spark_session(
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Return the active session of this process, or start one: local, on `master` or on `remote`.

    Raises `ConfigError` if PySpark or Java is missing, or if the session does not start.
    """
    if master is not None and remote is not None:
        raise ConfigError(reason="master and remote are mutually exclusive: give one of them")
    sessions = _pyspark().SparkSession
    found = sessions.getActiveSession()
    if found is not None and master is None and remote is None:
        return found  # type: ignore[no-any-return]
    try:
        if remote is not None:
            return _connect(sessions, remote, settings or {})
        return _classic(sessions, master or f"local[{_cores()}]", settings or {})
    except ConfigError:
        raise
    except Exception as error:  # Spark raises errors of any class
        raise ConfigError(reason=f"Spark did not start: {_first_line(error)}") from error


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ImportError as error:
        raise ConfigError(
            reason="PySpark is not installed",
            hint="pip install omnigraph[spark]; small data needs no Spark: use engine 'local'",
        ) from error
    allow_without_pandas()
    return pyspark.sql


def allow_without_pandas() -> None:
    """Let `mapInArrow` run without pandas: Spark requires it there but does not use it.

    If pandas is installed, the first array that pyarrow creates imports it, which doubles the
    start-up time of every command.
    """
    from pyspark.sql.pandas import functions

    if find_spec("pandas") is None:
        asking: Any = functions
        asking.require_minimum_pandas_version = lambda: None


def _connect(sessions: Any, remote: str, settings: Mapping[str, str]) -> "SparkSession":
    # Checked here, because PySpark takes `python -c` for its own tests and exits with status 0.
    missing = [name for name in _CONNECT if find_spec(name) is None]
    if missing:
        raise ConfigError(
            reason=f"Spark Connect needs packages that are missing: {', '.join(missing)}",
            hint="pip install omnigraph[connect]",
        )
    builder = sessions.builder.remote(remote)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()  # type: ignore[no-any-return]


def _classic(sessions: Any, master: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext

    running = SparkContext._active_spark_context
    if running is not None and running.master != master:
        raise ConfigError(
            reason=f"this process already runs Spark on {running.master}, not on {master}",
            hint="pass that session, or stop it first",
        )
    local = master.startswith("local")
    own = _LOCAL if local else _CLUSTER
    wanted = {**_SETTINGS, **own, "spark.master": master, **settings}
    conf = SparkConf(loadDefaults=False)
    for name, value in wanted.items():
        conf.set(name, value)
    _start_java(conf)
    return sessions.builder.config(conf=conf).getOrCreate()  # type: ignore[no-any-return]


def _start_java(conf: Any) -> None:
    """Start the JVM once per process; its output goes to a file, quoted if the start fails."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    java = find_java(os.environ, Path(sys.prefix))
    if java is None:
        raise ConfigError(
            reason=f"Spark needs Java {OLDEST_JAVA} or newer, but none was found",
            hint="install Java or set JAVA_HOME; small data needs no Spark: use engine 'local'",
        )
    os.environ["JAVA_HOME"] = str(java.parent.parent)  # an invalid JAVA_HOME would win otherwise
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    handle, log = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    try:
        launch: Any = launch_gateway
        with warnings.catch_warnings():
            # Lance warns about forks; this one only starts Java.
            warnings.filterwarnings("ignore", message=".*fork")
            gateway = launch(conf, popen_kwargs={"stderr": handle})
    except Exception as error:
        told = " ".join(Path(log).read_text("utf-8", "replace").split())[-500:]
        raise ConfigError(reason=f"Java did not start: {told or error}") from error
    finally:
        os.close(handle)
        Path(log).unlink()  # later output of the JVM is discarded
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def may_start() -> bool:
    """Whether a session can probably start: PySpark is there, and Java is found or unneeded."""
    if find_spec("pyspark") is None:
        return False
    running = "pyspark" in sys.modules  # a Connect session may be active, which needs no Java
    return running or find_java(os.environ, Path(sys.prefix)) is not None


def find_java(environ: Mapping[str, str], prefix: Path) -> Path | None:
    """Find a `java` that is new enough: from JAVA_HOME, on the path, or next to this Python."""
    places = [Path(environ["JAVA_HOME"], "bin", "java")] if environ.get("JAVA_HOME") else []
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    places += [Path(on_path).resolve()] if on_path else []
    places.append(prefix / "java" / "bin" / "java")
    return next((one for one in places if one.exists() and _major(one) >= OLDEST_JAVA), None)


def _major(java: Path) -> int:
    try:
        answer = subprocess.run(  # noqa: S603 - a resolved path and a constant
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else 0


def parallelism(spark: "SparkSession") -> int:
    """Return how many tasks can run at once; a guess if the session does not tell."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return 8


def running_tasks(spark: "SparkSession") -> tuple[int, int]:
    """Return finished and known tasks of the running stages; zeros if the session does not tell."""
    try:
        tracker = spark.sparkContext.statusTracker()
        found = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    except Exception:  # Spark Connect has no context, or the session has ended
        return 0, 0
    stages = [one for one in found if one is not None]
    return sum(one.numCompletedTasks for one in stages), sum(one.numTasks for one in stages)


@contextmanager
def watched(spark: "SparkSession") -> Iterator[None]:
    """Turn Spark failures into `ServerError`, and cancel our jobs on an interrupt.

    Only our jobs: a session passed in by the caller may run others.
    """
    tag = f"omnigraph-{ids.new_ulid()}"
    spark.addTag(tag)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        spark.interruptTag(tag)
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise ServerError(
            f"the Spark job failed: {_cause(str(error))}",
            effect="none",
            hint="nothing was published; fix the cause and run it again",
        ) from error
    finally:
        with suppress(Exception):  # the session may have ended
            spark.removeTag(tag)


def _cause(text: str) -> str:
    r"""Return the line of a long report that names the error.

    >>> _cause("Job aborted\nTraceback:\n  File x\nValueError: no room\n at java.Thing")
    'ValueError: no room'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*: ", line)]
    return (named or lines or ["no reason was reported"])[-1 if named else 0][:300]


def _cores() -> int:
    return max(1, len(os.sched_getaffinity(0)))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
