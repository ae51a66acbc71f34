"""Whether this machine and a store can do what is asked of them.

Looks at versions, Java, the cache directory, and of a store at what it promises and at its clock.
A finding never raises: the doctor is for when nothing works.
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
SKEW = timedelta(seconds=30)  # half of a lease: from there on ages look wrong to people
_NEEDED = ("pylance", "pyarrow", "numpy", "click", "lark")
_OPTIONAL = ("pyspark", "obstore", "pandas", "polars")
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at, how it is, and what would help."""

    name: str
    outcome: Outcome
    found: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as plain data."""
        told = {"name": self.name, "outcome": self.outcome, "found": self.found}
        return {**told, "hint": self.hint}


def examine(uri: str | None = None, *, probe: bool = True) -> list[Diagnosis]:
    """Look at this machine, and at a store if one is named.

    `probe` writes one small object to the store and removes it again; without it nothing is written
    and what the store promises stays unknown.
    """
    found = [_python(), *_packages(), _java(), _cache(), _room()]
    if uri is not None:
        found += _of_store(uri, probe)
    return found


def _python() -> Diagnosis:
    told = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    old = sys.version_info < _OLDEST_PYTHON
    return Diagnosis(
        "python", "error" if old else "ok", told, "3.11 is the oldest" if old else None
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
    hint = f"only Spark needs it: install {OLDEST_JAVA} or newer, or set JAVA_HOME"
    return Diagnosis("java", "warning", "not found", hint)


def _cache() -> Diagnosis:
    place = cache_directory()
    if place is None:
        return Diagnosis("cache", "ok", "switched off")
    there = next(one for one in (place, *place.parents) if one.exists())
    if there.is_dir() and os.access(there, os.W_OK):
        return Diagnosis("cache", "ok", str(place))
    hint = "set OMNIGRAPH_CACHE_DIR to a directory that can be written"
    return Diagnosis("cache", "warning", f"{place} cannot be written", hint)


def _room() -> Diagnosis:
    place = Path(tempfile.gettempdir())
    stat = os.statvfs(place) if hasattr(os, "statvfs") else None
    free = stat.f_bavail * stat.f_frsize if stat is not None else None
    told = f"{place}, {free:,} bytes free" if free is not None else str(place)
    low = free is not None and free < 1 << 30
    hint = "bulk work on Spark spills there: make room, or set TMPDIR" if low else None
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
    told = f"{kind}: of two creators of one name one wins, and listings show it at once"
    return Diagnosis("store promises", "ok", told)


def _clock(store: Store) -> Diagnosis:
    """The clock of the store against the one of this machine; ages go by the store's."""
    before = ids.now_micros()
    there = store_time(store)
    skew = timedelta(microseconds=int(there.timestamp() * 1_000_000) - before)
    told = f"{skew.total_seconds():+.1f} s against this machine"
    if abs(skew) <= SKEW:
        return Diagnosis("store clock", "ok", told)
    hint = "times in the log are those of this machine: set its clock"
    return Diagnosis("store clock", "warning", told, hint)
