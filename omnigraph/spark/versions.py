"""Check that the driver and workers run the same versions of Python, omnigraph, pylance and pyarrow.

The check runs once per session, before the session's first task of this package. It is itself a task and must not use
any code from this package.
"""

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from omnigraph.errors import ConfigError

from .session import allow_without_pandas, parallelism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("omnigraph", "pylance", "pyarrow")
_MIN_TASKS, _MAX_TASKS = 4, 256  # number of tasks in the check, usually more than there are workers
_checked_sessions: "WeakSet[Any]" = WeakSet()


def check_versions(spark: "SparkSession") -> None:
    """Raise a `ConfigError` that lists the differences if the workers' versions differ from the driver's."""
    if spark in _checked_sessions:
        return
    allow_without_pandas()
    read_versions = _make_version_reader(PACKAGES)
    driver_versions = dict(read_versions())
    task_count = min(max(_MIN_TASKS, parallelism(spark)), _MAX_TASKS)
    version_frame = spark.range(0, task_count, 1, task_count).mapInArrow(
        _make_version_task(read_versions), "name string, at string"
    )
    version_rows = version_frame.toArrow().to_pylist()
    mismatches = describe_differences(driver_versions, [(row["name"], row["at"]) for row in version_rows])
    if mismatches:
        raise ConfigError(
            reason=f"the driver and the workers run different software versions: {'; '.join(mismatches)}",
            hint="install the same versions on all machines",
        )
    _checked_sessions.add(spark)


def describe_differences(driver_versions: dict[str, str], worker_versions: list[tuple[str, str]]) -> list[str]:
    """Describe the versions that differ.

    >>> describe_differences({"pyarrow": "26.0.1"}, [("pyarrow", "26.0.1"), ("pyarrow", "25.0.0")])
    ['pyarrow has version 26.0.1 on the driver and 25.0.0 on a worker']
    """
    return sorted(
        f"{package} has version {driver_versions[package]} on the driver and {version} on a worker"
        for package, version in set(worker_versions)
        if driver_versions[package] != version
    )


def _make_version_reader(packages: tuple[str, ...]) -> Any:
    """Return a function that reads versions. The function is self-contained, because a worker may lack this package."""

    def ask() -> list[tuple[str, str]]:
        import platform
        from importlib import metadata

        installed = [("Python", ".".join(platform.python_version_tuple()[:2]))]
        for package in packages:
            try:
                installed.append((package, metadata.version(package)))
            except metadata.PackageNotFoundError:
                installed.append((package, "not installed"))
        return installed

    return ask


def _make_version_task(read_versions: Any) -> Any:
    def run(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            names, versions = zip(*read_versions(), strict=True)
            yield pa.RecordBatch.from_pydict({"name": list(names), "at": list(versions)})

    return run
