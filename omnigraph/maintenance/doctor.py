"""Diagnose whether Omnigraph can run on this machine and whether it can use a store.

The diagnosis covers package versions, Spark requirements, the cache directory and, if a store is given, the store's
guarantees and clock. Failures are reported instead of raised, because `doctor` must work even if nothing else does. The
engine is imported only where it is needed, because the diagnosis of a server does not use it.
"""

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import OmnigraphError
from omnigraph.values import clock_and_ids

if TYPE_CHECKING:
    from omnigraph.storage.store import Store

DiagnosisOutcome = Literal["ok", "warning", "error"]
# Half the duration of a lease. With a larger skew, the ages shown to users look wrong.
MAX_CLOCK_SKEW = timedelta(seconds=30)
_REQUIRED_PACKAGES = ("pylance", "pyarrow", "numpy", "click")
_OPTIONAL_PACKAGES = ("pyspark", "obstore", "pandas", "polars")
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class EnvironmentDiagnosis:
    """The result of one check: the outcome, the details and the recommended action."""

    name: str
    outcome: DiagnosisOutcome
    found: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON-compatible data."""
        members = {"name": self.name, "outcome": self.outcome, "found": self.found}
        return {**members, "hint": self.hint}


SparkProbe = Callable[[], EnvironmentDiagnosis]


def diagnose_environment(
    uri: str | None = None, *, probe: bool = True, spark_probe: SparkProbe | None = None
) -> list[EnvironmentDiagnosis]:
    """Diagnose this machine, and a store if `uri` is given.

    `spark_probe` diagnoses the Spark requirements. It is a parameter because this module must not depend on Spark. If
    `probe` is true, one small object is written to the store and removed again. Otherwise, nothing is written and the
    store's guarantees are not verified.
    """
    diagnoses = [
        _check_python(),
        *_check_packages(),
        *([spark_probe()] if spark_probe is not None else []),
        _check_cache(),
        _check_temp_space(),
    ]
    if uri is not None:
        diagnoses += _check_store(uri, probe)
    return diagnoses


def diagnose_client() -> list[EnvironmentDiagnosis]:
    """Diagnose only what a program on this machine needs in order to use a graph on a server."""
    return [_check_python(), *_check_packages(), _check_temp_space()]


def diagnose_skew(name: str, other_clock: datetime, local_micros: int, hint: str) -> EnvironmentDiagnosis:
    """Compare another clock with this machine's clock."""
    skew = timedelta(microseconds=int(other_clock.timestamp() * 1_000_000) - local_micros)
    difference = f"{skew.total_seconds():+.1f} s relative to this machine"
    if abs(skew) <= MAX_CLOCK_SKEW:
        return EnvironmentDiagnosis(name, "ok", difference)
    return EnvironmentDiagnosis(name, "warning", difference, hint)


def _check_python() -> EnvironmentDiagnosis:
    description = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    is_too_old = sys.version_info < _OLDEST_PYTHON
    return EnvironmentDiagnosis(
        "python", "error" if is_too_old else "ok", description, "install Python 3.11 or newer" if is_too_old else None
    )


def _check_packages() -> Iterator[EnvironmentDiagnosis]:
    for package in (*_REQUIRED_PACKAGES, *_OPTIONAL_PACKAGES):
        try:
            yield EnvironmentDiagnosis(package, "ok", version(package))
        except PackageNotFoundError:
            is_required = package in _REQUIRED_PACKAGES
            hint = f"pip install {package}" if is_required else None
            yield EnvironmentDiagnosis(package, "error" if is_required else "ok", "not installed", hint)


def _check_cache() -> EnvironmentDiagnosis:
    from omnigraph.engine.query_caches import cache_directory

    directory = cache_directory()
    if directory is None:
        return EnvironmentDiagnosis("cache", "ok", "disabled")
    existing_parent = next(candidate for candidate in (directory, *directory.parents) if candidate.exists())
    if existing_parent.is_dir() and os.access(existing_parent, os.W_OK):
        return EnvironmentDiagnosis("cache", "ok", str(directory))
    hint = "set OMNIGRAPH_CACHE_DIR to a writable directory"
    return EnvironmentDiagnosis("cache", "warning", f"{directory} is not writable", hint)


def _check_temp_space() -> EnvironmentDiagnosis:
    temp_directory = Path(tempfile.gettempdir())
    filesystem = os.statvfs(temp_directory) if hasattr(os, "statvfs") else None
    free_bytes = filesystem.f_bavail * filesystem.f_frsize if filesystem is not None else None
    description = f"{temp_directory}, {free_bytes:,} bytes free" if free_bytes is not None else str(temp_directory)
    is_low = free_bytes is not None and free_bytes < 1 << 30
    hint = "free disk space, or set TMPDIR, the directory that bulk work on Spark spills to" if is_low else None
    return EnvironmentDiagnosis("temporary files", "warning" if is_low else "ok", description, hint)


def _check_store(uri: str, probe: bool) -> Iterator[EnvironmentDiagnosis]:
    from omnigraph.storage.store import open_store

    try:
        store = open_store(uri)
    except OmnigraphError as error:
        yield EnvironmentDiagnosis("store", "error", error.message, error.hint)
        return
    store_checks: list[tuple[str, Callable[[Store], EnvironmentDiagnosis]]] = [("graph", _check_graph)]
    if probe and (not store.root.is_local or Path(store.root.path).is_dir()):
        store_checks += [("store guarantees", _check_store_guarantees), ("store clock", _check_store_clock)]
    for check_name, run_check in store_checks:
        try:
            yield run_check(store)
        except OmnigraphError as error:
            yield EnvironmentDiagnosis(check_name, "error", error.message, error.hint)
        except OSError as error:
            yield EnvironmentDiagnosis(check_name, "error", str(error.strerror or error))


def _check_graph(store: "Store") -> EnvironmentDiagnosis:
    from omnigraph.history.manifest import manifest_exists, read_manifest
    from omnigraph.storage.layout import STAMP

    if not manifest_exists(store):
        return EnvironmentDiagnosis("graph", "warning", f"no graph at {store.root.uri}", "omnigraph init")
    manifest = read_manifest(store)
    summary = f"{store.root.uri}, storage format {STAMP}, head {manifest.state.head.commit_id}"
    return EnvironmentDiagnosis("graph", "ok", summary)


def _check_store_guarantees(store: "Store") -> EnvironmentDiagnosis:
    from omnigraph.storage.store_probe import probe_create_if_absent

    probe_create_if_absent(store)
    store_kind = "local disk" if store.root.is_local else "object store"
    guarantees = f"{store_kind}: a second create request for an object is rejected, and listings include new objects"
    return EnvironmentDiagnosis("store guarantees", "ok", guarantees)


def _check_store_clock(store: "Store") -> EnvironmentDiagnosis:
    """Compare the store's clock, which determines how old objects are, with this machine's clock."""
    from omnigraph.publish.intent import store_time

    local_micros = clock_and_ids.now_micros()
    hint = "commit times are taken from this machine's clock: correct the clock"
    return diagnose_skew("store clock", store_time(store), local_micros, hint)
