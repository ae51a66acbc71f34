"""Check that driver and workers run the same versions of Python, omnigraph, pylance and pyarrow.

Runs once per session, before our first task, in a task that must not need any of our code.
"""

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from omnigraph.errors import ConfigError

from .session import allow_without_pandas, parallelism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("omnigraph", "pylance", "pyarrow")
_FEWEST, _MOST = 4, 256  # tasks of the check: usually more than there are workers
_checked: "WeakSet[Any]" = WeakSet()


def check_versions(spark: "SparkSession") -> None:
    """Raise `ConfigError` if workers differ from the driver, naming the differences."""
    if spark in _checked:
        return
    allow_without_pandas()
    ask = _asker(PACKAGES)
    here = dict(ask())
    tasks = min(max(_FEWEST, parallelism(spark)), _MOST)
    asked = spark.range(0, tasks, 1, tasks).mapInArrow(_on_workers(ask), "name string, at string")
    found = asked.toArrow().to_pylist()
    wrong = differences(here, [(one["name"], one["at"]) for one in found])
    if wrong:
        raise ConfigError(
            reason=f"driver and workers differ: {'; '.join(wrong)}",
            hint="install the same versions on all machines",
        )
    _checked.add(spark)


def differences(here: dict[str, str], there: list[tuple[str, str]]) -> list[str]:
    """Describe the versions that differ.

    >>> differences({"pyarrow": "26.0.1"}, [("pyarrow", "26.0.1"), ("pyarrow", "25.0.0")])
    ['pyarrow is 26.0.1 on the driver and 25.0.0 on a worker']
    """
    return sorted(
        f"{name} is {here[name]} on the driver and {at} on a worker"
        for name, at in set(there)
        if here[name] != at
    )


def _asker(packages: tuple[str, ...]) -> Any:
    """Make a self-contained function: a worker may not have this package at all."""

    def ask() -> list[tuple[str, str]]:
        import platform
        from importlib import metadata

        found = [("Python", ".".join(platform.python_version_tuple()[:2]))]
        for name in packages:
            try:
                found.append((name, metadata.version(name)))
            except metadata.PackageNotFoundError:
                found.append((name, "not installed"))
        return found

    return ask


def _on_workers(ask: Any) -> Any:
    def run(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            names, versions = zip(*ask(), strict=True)
            yield pa.RecordBatch.from_pydict({"name": list(names), "at": list(versions)})

    return run
