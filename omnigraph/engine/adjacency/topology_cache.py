"""Cached neighbor lists: in memory, on disk, or derived from lists for a different version.

This module defines the cache keys and file names. Lists belong to exact versions of the edge table and both endpoint
tables, and each file records these versions. Lists are derived only from lists for another version of the same edge
table, and only if few rows differ between the two versions.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from omnigraph.engine.query_caches import QueryCaches, root_identity
from omnigraph.errors import StorageError
from omnigraph.records.frozen import record
from omnigraph.storage.store import Store
from omnigraph.storage.table import open_table

from .neighbor_lists import NeighborLists
from .topology import EdgeTables, Topology
from .topology_patch import patch_topology

MIN_CACHED_EDGES = 100_000  # for fewer edges than this, building lists is as fast as loading them
_REWRITE_RATIO = 50  # save derived lists once 1/50 of the edges have changed
_VERSIONS_IN_MEMORY = 2  # number of versions whose lists stay in memory, per edge type
_MAX_DERIVE_ATTEMPTS = 3  # number of older versions to try before rebuilding the lists
_REPEAT_ARRAYS = ("owners", "values", "counts")

TableVersions = tuple[tuple[str, int], ...]


@record
class TopologyKey:
    """The tables of an edge type at the versions in a snapshot, and the kind of lists to build."""

    store: Store
    tables: EdgeTables
    as_bags: bool

    @property
    def versions(self) -> TableVersions:
        """The table versions that the lists depend on."""
        tables = (self.tables.edge, self.tables.source, self.tables.target)
        return tuple((table.location, table.version) for table in tables)

    @property
    def table_family(self) -> tuple[str, str, str]:
        """The part of the key that does not depend on the table versions."""
        return ("bags" if self.as_bags else "sets", root_identity(self.store), self.tables.edge.location)

    @property
    def memory_key(self) -> tuple[Any, ...]:
        """The key under which the memory cache stores the lists."""
        return (*self.table_family, self.versions)

    def tables_at(self, versions: TableVersions) -> EdgeTables:
        """Open the edge table and its endpoint tables at the given versions."""
        edge, source, target = (open_table(self.store, *location_version) for location_version in versions)
        return EdgeTables(edge, source, target)


def load_or_derive(caches: QueryCaches, topology_key: TopologyKey) -> Topology | None:
    """Load lists from disk, or derive them from cached lists for another version; return None if neither works."""
    return _load_from_disk(caches, topology_key) or _derive_from_sibling(caches, topology_key)


def get_or_build(
    caches: QueryCaches, topology_key: TopologyKey, build: Callable[[], Topology | None]
) -> Topology | None:
    """Return lists from memory, building them if needed. Concurrent threads share a single build."""
    cached: Topology | None = caches.memory.get(topology_key.memory_key)
    if cached is not None:
        return cached
    topology = caches.memory.get_or_build(topology_key.memory_key, build, lambda built: built.nbytes)
    for sibling_key in _sibling_keys(caches, topology_key)[_VERSIONS_IN_MEMORY:]:
        caches.memory.drop(sibling_key)
    return topology


def save_topology(caches: QueryCaches, topology_key: TopologyKey, topology: Topology) -> Topology:
    """Save the lists and return a memory-mapped copy, so that only the pages in use occupy memory."""
    if caches.disk is None or len(topology.by_source.values) < MIN_CACHED_EDGES:
        return topology
    header = {
        "line": topology_key.table_family,
        "versions": _versions_to_json(topology_key.versions),
        "dangling": topology.dangling_count,
    }
    arrays = {**_pack_arrays("out", topology.by_source), **_pack_arrays("back", topology.by_target)}
    if not caches.disk.save(_file_name(topology_key), header, arrays):
        return topology
    return _load_from_disk(caches, topology_key) or topology


def drop_root(caches: QueryCaches, store: Store) -> None:
    """Remove all lists for a root, because a cleanup may have deleted the table versions that they belong to."""
    root = root_identity(store)
    for memory_key in caches.memory.recent_keys():
        if isinstance(memory_key, tuple) and root in memory_key[:2]:
            caches.memory.drop(memory_key)
    disk = caches.disk
    for file_name in disk.names_with_prefix("") if disk is not None else ():
        loaded = disk.load(file_name) if disk is not None else None
        if disk is not None and loaded is not None and root in loaded[0].get("line", ())[:2]:
            disk.remove(file_name)


def _sibling_keys(caches: QueryCaches, topology_key: TopologyKey) -> list[Any]:
    """Return the keys of the in-memory lists for all versions of the same edge table, most recently used first."""
    memory_keys = caches.memory.recent_keys()
    return [
        memory_key
        for memory_key in memory_keys
        if isinstance(memory_key, tuple) and memory_key[:3] == topology_key.table_family
    ]


def _load_from_disk(caches: QueryCaches, topology_key: TopologyKey) -> Topology | None:
    loaded = caches.disk.load(_file_name(topology_key)) if caches.disk is not None else None
    if loaded is None or loaded[0].get("line") != list(topology_key.table_family):
        return None
    return _unpack_topology(*loaded) if loaded[0].get("versions") == _versions_to_json(topology_key.versions) else None


def _derive_from_sibling(caches: QueryCaches, topology_key: TopologyKey) -> Topology | None:
    """Derive the lists from the cached lists of another version, or return None if that is not possible."""
    for base_topology, versions in _other_versions(caches, topology_key):
        try:
            derived = patch_topology(base_topology, topology_key.tables_at(versions), topology_key.tables)
        except (StorageError, FileNotFoundError):  # a cleanup removed the older version
            continue
        if derived is None:
            continue
        # Save only once enough edges have changed, rather than after every small change.
        worth_saving = derived.unsaved_changes * _REWRITE_RATIO > len(derived.by_source.values)
        return save_topology(caches, topology_key, derived) if worth_saving else derived
    return None


def _other_versions(caches: QueryCaches, topology_key: TopologyKey) -> Iterator[tuple[Topology, TableVersions]]:
    """Yield the lists for other versions from memory or, if memory contains none, from disk."""
    sibling_keys = _sibling_keys(caches, topology_key)
    for sibling_key in sibling_keys[:_MAX_DERIVE_ATTEMPTS]:
        cached: Topology | None = caches.memory.get(sibling_key)
        if cached is not None:
            yield cached, sibling_key[3]
    if sibling_keys or caches.disk is None:
        return
    for file_name in caches.disk.names_with_prefix(_hash_json(topology_key.table_family))[:_MAX_DERIVE_ATTEMPTS]:
        loaded = caches.disk.load(file_name)
        if loaded is not None and loaded[0].get("line") == list(topology_key.table_family):
            yield _unpack_topology(*loaded), _versions_from_json(loaded[0]["versions"])


def _versions_to_json(versions: TableVersions) -> list[list[str]]:
    """Convert versions to JSON; numbers become strings because they can exceed 2^63."""
    return [[location, str(version)] for location, version in versions]


def _versions_from_json(stored_versions: list[list[str]]) -> TableVersions:
    return tuple((location, int(version)) for location, version in stored_versions)


def _hash_json(value: object) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=12).hexdigest()


def _file_name(topology_key: TopologyKey) -> str:
    versions_json = _versions_to_json(topology_key.versions)
    return f"{_hash_json(topology_key.table_family)}-{_hash_json(versions_json)}"


def _pack_arrays(side: str, lists: NeighborLists) -> dict[str, Any]:
    arrays = {f"{side}.starts": lists.starts, f"{side}.values": lists.values}
    if lists.edges is not None:
        arrays[f"{side}.edges"] = lists.edges
    for array_name, repeat_array in zip(_REPEAT_ARRAYS, lists.repeats or (), strict=False):
        arrays[f"{side}.repeats.{array_name}"] = repeat_array
    return arrays


def _unpack_topology(header: dict[str, Any], arrays: dict[str, Any]) -> Topology:
    out, back = (_unpack_lists(side, arrays) for side in ("out", "back"))
    return Topology(out, back, int(header["dangling"]))


def _unpack_lists(side: str, arrays: dict[str, Any]) -> NeighborLists:
    repeats = None
    if f"{side}.repeats.owners" in arrays:
        owners, values, counts = (arrays[f"{side}.repeats.{array_name}"] for array_name in _REPEAT_ARRAYS)
        repeats = (owners, values, counts)
    edges = arrays.get(f"{side}.edges")
    return NeighborLists(arrays[f"{side}.starts"], arrays[f"{side}.values"], edges, repeats)
