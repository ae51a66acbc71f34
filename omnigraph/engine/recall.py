"""Cached neighbour lists: in memory, on disk, or derived from those of another version.

Owns the cache keys and file names. Lists belong to exact versions of the edge table and of both
endpoint tables, and a file records which. Lists are derived only from other versions of the same
edge table, and only if little has changed.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.storage.store import Store
from omnigraph.storage.table import open_table

from .adjacency import Lists
from .cache import Caches, root_name
from .patch import patch
from .topology import Tables, Topology

LEAST = 100_000  # edges; smaller lists are built as fast as they are loaded
_FOLD = 50  # derived lists are saved once one edge in this many has changed
_VERSIONS = 2  # versions of one edge type's lists that stay in memory
_TRIED = 3  # older lists that are tried before lists are rebuilt
_REPEATS = ("owners", "values", "counts")

Versions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """The tables of an edge type at the versions of one snapshot, and which lists to build."""

    store: Store
    tables: Tables
    bags: bool

    @property
    def versions(self) -> Versions:
        """The table versions that the lists depend on."""
        parts = (self.tables.edge, self.tables.source, self.tables.target)
        return tuple((one.location, one.version) for one in parts)

    @property
    def line(self) -> tuple[str, str, str]:
        """The part of the key that lists of other versions of the same tables share."""
        return ("bags" if self.bags else "sets", root_name(self.store), self.tables.edge.location)

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the lists in the memory cache."""
        return (*self.line, self.versions)

    def at(self, versions: Versions) -> Tables:
        """Return the same tables at other versions."""
        edge, source, target = (open_table(self.store, *one) for one in versions)
        return Tables(edge, source, target)


def recall(caches: Caches, way: Way) -> Topology | None:
    """Return lists from disk, or derived from cached lists of a similar version."""
    return _load(caches, way) or _derive(caches, way)


def remember(caches: Caches, way: Way, make: Callable[[], Topology | None]) -> Topology | None:
    """Return lists from memory; built at most once, even if many threads need them."""
    held: Topology | None = caches.memory.get(way.key)
    if held is not None:
        return held
    made = caches.memory.make(way.key, make, lambda one: one.nbytes)
    for key in _siblings(caches, way)[_VERSIONS:]:
        caches.memory.drop(key)
    return made


def write(caches: Caches, way: Way, made: Topology) -> Topology:
    """Save the lists and return them memory-mapped, so that only pages in use take memory."""
    if caches.disk is None or len(made.out.values) < LEAST:
        return made
    facts = {"line": way.line, "versions": _spelled(way.versions), "dangling": made.dangling}
    arrays = {**_packed("out", made.out), **_packed("back", made.back)}
    if not caches.disk.save(_name(way), facts, arrays):
        return made
    return _load(caches, way) or made


def forget(caches: Caches, store: Store) -> None:
    """Remove all lists of one root: after a cleanup their table versions may be deleted."""
    own = root_name(store)
    for key in caches.memory.recent():
        if isinstance(key, tuple) and own in key[:2]:
            caches.memory.drop(key)
    disk = caches.disk
    for name in disk.names("") if disk is not None else ():
        found = disk.load(name) if disk is not None else None
        if disk is not None and found is not None and own in found[0].get("line", ())[:2]:
            disk.remove(name)


def _siblings(caches: Caches, way: Way) -> list[Any]:
    """Return the keys of lists of the same tables in memory, most recently used first."""
    keys = caches.memory.recent()
    return [one for one in keys if isinstance(one, tuple) and one[:3] == way.line]


def _load(caches: Caches, way: Way) -> Topology | None:
    found = caches.disk.load(_name(way)) if caches.disk is not None else None
    if found is None or found[0].get("line") != list(way.line):
        return None
    return _unpacked(*found) if found[0].get("versions") == _spelled(way.versions) else None


def _derive(caches: Caches, way: Way) -> Topology | None:
    """Derive the lists from those of another version."""
    for base, versions in _others(caches, way):
        try:
            found = patch(base, way.at(versions), way.tables)
        except (StorageError, FileNotFoundError):  # a cleanup removed the older version
            continue
        if found is None:
            continue
        # Save only after enough changes, not after every small one.
        folds = found.drift * _FOLD > len(found.out.values)
        return write(caches, way, found) if folds else found
    return None


def _others(caches: Caches, way: Way) -> Iterator[tuple[Topology, Versions]]:
    """Yield lists of other versions: those in memory, else those on disk."""
    keys = _siblings(caches, way)
    for key in keys[:_TRIED]:
        held: Topology | None = caches.memory.get(key)
        if held is not None:
            yield held, key[3]
    if keys or caches.disk is None:
        return
    for name in caches.disk.names(_digest(way.line))[:_TRIED]:
        found = caches.disk.load(name)
        if found is not None and found[0].get("line") == list(way.line):
            yield _unpacked(*found), _read_versions(found[0]["versions"])


def _spelled(versions: Versions) -> list[list[str]]:
    """Return versions in a JSON form: as strings, since the numbers exceed 2^63."""
    return [[place, str(number)] for place, number in versions]


def _read_versions(facts: list[list[str]]) -> Versions:
    return tuple((place, int(number)) for place, number in facts)


def _digest(facts: object) -> str:
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=12).hexdigest()


def _name(way: Way) -> str:
    return f"{_digest(way.line)}-{_digest(_spelled(way.versions))}"


def _packed(side: str, lists: Lists) -> dict[str, Any]:
    found = {f"{side}.starts": lists.starts, f"{side}.values": lists.values}
    if lists.edges is not None:
        found[f"{side}.edges"] = lists.edges
    for name, one in zip(_REPEATS, lists.repeats or (), strict=False):
        found[f"{side}.repeats.{name}"] = one
    return found


def _unpacked(facts: dict[str, Any], arrays: dict[str, Any]) -> Topology:
    out, back = (_unpacked_side(side, arrays) for side in ("out", "back"))
    return Topology(out, back, int(facts["dangling"]))


def _unpacked_side(side: str, arrays: dict[str, Any]) -> Lists:
    repeats = None
    if f"{side}.repeats.owners" in arrays:
        owners, values, counts = (arrays[f"{side}.repeats.{name}"] for name in _REPEATS)
        repeats = (owners, values, counts)
    edges = arrays.get(f"{side}.edges")
    return Lists(arrays[f"{side}.starts"], arrays[f"{side}.values"], edges, repeats)
