"""Diagnosis of this machine and of a store: whether they can run Omnigraph.

Checks package versions, Java and the cache directory, and for a store its guarantees and its clock.
Failures are reported, never raised: the command must work when nothing else does.
"""

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from omnigraph import ids
from omnigraph.engine.cache import cache_directory
from omnigraph.errors import OmnigraphError
from omnigraph.history.intent import store_time
from omnigraph.history.manifest import manifest_exists, read_manifest
from omnigraph.pipeline.session import OLDEST_JAVA, find_java
from omnigraph.storage.layout import STAMP
from omnigraph.storage.probe import probe_create_if_absent
from omnigraph.storage.store import Store, open_store

Outcome = Literal["ok", "warning", "error"]
SKEW = timedelta(seconds=30)  # half of a lease; beyond it, ages shown to users look wrong
_NEEDED = ("pylance", "pyarrow", "numpy", "click", "lark")
_OPTIONAL = ("pyspark", "obstore", "pandas", "polars")
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of one check: the outcome, what was found, and what to do about it."""

    name: str
    outcome: Outcome
    found: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as plain data."""
        told = {"name": self.name, "outcome": self.outcome, "found": self.found}
        return {**told, "hint": self.hint}


def examine(uri: str | None = None, *, probe: bool = True) -> list[Diagnosis]:
    """Diagnose this machine, and a store if `uri` is given.

    `probe` writes one small object to the store and removes it again. Without it nothing is written
    and the guarantees of the store are not verified.
    """
    found = [_python(), *_packages(), _java(), _cache(), _room()]
    if uri is not None:
        found += _of_store(uri, probe)
    return found


def _python() -> Diagnosis:
    told = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    old = sys.version_info < _OLDEST_PYTHON
    return Diagnosis(
        "python", "error" if old else "ok", told, "install Python 3.11 or newer" if old else None
    )


def _packages() -> Iterator[Diagnosis]:
    for name in (*_NEEDED, *_OPTIONAL):
        try:
            yield Diagnosis(name, "ok", version(name))
        except PackageNotFoundError:
            needed = name in _NEEDED
            hint = f"pip install {name}" if needed else None
            yield Diagnosis(name, "error" if needed else "ok", "not installed", hint)


def _java() -> Diagnosis:
    java = find_java(os.environ, Path(sys.prefix))
    if java is not None:
        return Diagnosis("java", "ok", str(java))
    hint = f"only Spark needs Java: install {OLDEST_JAVA} or newer, or set JAVA_HOME"
    return Diagnosis("java", "warning", "not found", hint)


def _cache() -> Diagnosis:
    place = cache_directory()
    if place is None:
        return Diagnosis("cache", "ok", "disabled")
    there = next(one for one in (place, *place.parents) if one.exists())
    if there.is_dir() and os.access(there, os.W_OK):
        return Diagnosis("cache", "ok", str(place))
    hint = "set OMNIGRAPH_CACHE_DIR to a writable directory"
    return Diagnosis("cache", "warning", f"{place} is not writable", hint)


def _room() -> Diagnosis:
    place = Path(tempfile.gettempdir())
    stat = os.statvfs(place) if hasattr(os, "statvfs") else None
    free = stat.f_bavail * stat.f_frsize if stat is not None else None
    told = f"{place}, {free:,} bytes free" if free is not None else str(place)
    low = free is not None and free < 1 << 30
    hint = "bulk work on Spark spills there: free some space, or set TMPDIR" if low else None
    return Diagnosis("temporary files", "warning" if low else "ok", told, hint)


def _of_store(uri: str, probe: bool) -> Iterator[Diagnosis]:
    try:
        store = open_store(uri)
    except OmnigraphError as error:
        yield Diagnosis("store", "error", error.message, error.hint)
        return
    looks: list[tuple[str, Callable[[Store], Diagnosis]]] = [("graph", _graph)]
    if probe and (not store.root.local or Path(store.root.path).is_dir()):
        looks += [("store promises", _promises), ("store clock", _clock)]
    for name, look in looks:
        try:
            yield look(store)
        except OmnigraphError as error:
            yield Diagnosis(name, "error", error.message, error.hint)
        except OSError as error:
            yield Diagnosis(name, "error", str(error.strerror or error))


def _graph(store: Store) -> Diagnosis:
    if not manifest_exists(store):
        return Diagnosis("graph", "warning", f"no graph at {store.root.uri}", "omnigraph init")
    found = read_manifest(store)
    told = f"{store.root.uri}, storage format {STAMP}, head {found.state.head.commit_id}"
    return Diagnosis("graph", "ok", told)


def _promises(store: Store) -> Diagnosis:
    probe_create_if_absent(store)
    kind = "local disk" if store.root.local else "object store"
    told = f"{kind}: create-if-absent is exclusive, and listings are consistent"
    return Diagnosis("store promises", "ok", told)


def _clock(store: Store) -> Diagnosis:
    """Compare the store's clock, which decides the age of objects, with this machine's."""
    before = ids.now_micros()
    there = store_time(store)
    skew = timedelta(microseconds=int(there.timestamp() * 1_000_000) - before)
    told = f"{skew.total_seconds():+.1f} s against this machine"
    if abs(skew) <= SKEW:
        return Diagnosis("store clock", "ok", told)
    hint = "commit times come from this machine: correct its clock"
    return Diagnosis("store clock", "warning", told, hint)
