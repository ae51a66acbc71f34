"""Builds the neighbour lists of an edge type from its table, for both directions at once.

The lists depend only on one version of the edge table and of both endpoint tables. An edge with a
missing endpoint is left out and counted.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.storage.scan import row_id_array, scan
from omnigraph.storage.table import Table

from .adjacency import Array, Lists, changes
from .encode import Encoder, encoder_of

_NARROW = 1 << 31
_PART = 1 << 17  # edges encoded at a time


@dataclass(frozen=True, slots=True)
class Tables:
    """An edge table and its endpoint tables, each at one version."""

    edge: Table
    source: Table
    target: Table


@dataclass(frozen=True, slots=True)
class Topology:
    """The neighbour lists of an edge type, by source and by target.

    Dangling edges are left out; while there are none, a new node cannot change the lists.
    `unsaved_changes` counts the edges changed since the lists were last written to disk.
    """

    out: Lists
    back: Lists
    dangling: int = 0
    drift: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.out.nbytes + self.back.nbytes


@dataclass(frozen=True, slots=True)
class Ends:
    """Edges as pairs of endpoint row ids; `edge_ids` are their own row ids, if requested."""

    sources: Array
    targets: Array
    edges: Array | None
    highest: tuple[int, int]
    dangling: int = 0


def build(tables: Tables, *, edges: bool) -> Topology:
    """Build sets of neighbours or, with `with_edge_ids`, bags that also hold edge row ids."""
    ends = read_ends(tables, edges=edges)
    forth = (ends.sources, ends.targets, ends.highest[0] + 1)
    back = (ends.targets, ends.sources, ends.highest[1] + 1)
    with ThreadPoolExecutor(2) as pool:
        if ends.edges is not None:
            made = pool.map(lambda way: make_bag(way[0], way[1], ends.edges, way[2]), (forth, back))
        else:
            made = pool.map(lambda way: make_sets(*way), (forth, back))
        first, second = made
    return Topology(first, second, ends.dangling)


def read_ends(tables: Tables, *, edges: bool) -> Ends:
    """Read all edges with their endpoints as row ids."""
    with ThreadPoolExecutor(2) as pool:
        same = tables.source.location == tables.target.location
        first = pool.submit(read_encoder, tables.source)
        second = first if same else pool.submit(read_encoder, tables.target)
        found = scan(tables.edge, ["src", "dst"], row_ids=edges)
        (one, high), (other, top) = first.result(), second.result()
        sources = pool.submit(_encode, one, found["src"], high)
        targets = pool.submit(_encode, other, found["dst"], top)
        ends = sources.result(), targets.result()
    own = narrow(row_id_array(found)) if edges else None
    return _attached(ends[0], ends[1], own, (high, top))


def read_encoder(table: Table) -> tuple[Encoder, int]:
    """Return the id encoder of a node table, and its highest row id (-1 when it is empty)."""
    found = scan(table, ["id"], row_ids=True)
    rows = row_id_array(found)
    return encoder_of(found["id"], rows), int(rows.max()) if len(rows) else -1


def _encode(encoder: Encoder, column: pa.ChunkedArray, highest: int) -> Array:
    kind = np.int32 if highest < _NARROW else np.int64
    whole = np.empty(len(column), kind)
    at = 0
    for part in _parts(column):
        whole[at : at + len(part)] = encoder.encode(part)
        at += len(part)
    return whole


def _parts(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield arrays of about `_ENCODE_CHUNK_ROWS` rows; scans return many small ones."""
    for start in range(0, len(column), _PART):
        yield column.slice(start, _PART).combine_chunks()


def _attached(sources: Array, targets: Array, edges: Array | None, highest: Any) -> Ends:
    missing = (sources < 0) | (targets < 0)
    dangling = int(np.count_nonzero(missing))
    if dangling:
        kept = ~missing
        sources, targets = sources[kept], targets[kept]
        edges = edges[kept] if edges is not None else None
    return Ends(sources, targets, edges, highest, dangling)


def make_sets(owners: Array, values: Array, size: int) -> Lists:
    """Return lists without repetition for rows 0 to `row_count - 1`.

    >>> made = make_sets(np.array([1, 0, 1, 1]), np.array([3, 2, 3, 1]), 2)
    >>> made.starts.tolist(), made.values.tolist(), [one.tolist() for one in made.repeats]
    ([0, 1, 3], [2, 1, 3], [[1], [3], [2]])
    """
    owners, values = sorted_pairs(owners, values)
    first = changes(owners)
    first |= changes(values)
    if first.all():
        return Lists(starts_of(owners, size), values)
    places = np.flatnonzero(first)
    counts = np.diff(np.append(places, len(owners)))
    owners, values = owners[places], values[places]
    several = np.flatnonzero(counts > 1)
    repeats = (owners[several], values[several], narrow(counts[several]))
    return Lists(starts_of(owners, size), values, repeats=repeats)


def make_bag(owners: Array, values: Array, edges: Array | None, size: int) -> Lists:
    """Return lists with one entry per edge; parallel edges are ordered by edge row id."""
    own = edges if edges is not None else np.empty(0, np.int64)
    order = np.lexsort((own, values, owners))
    return Lists(starts_of(owners[order], size), values[order], edges=own[order])


def sorted_pairs(owners: Array, values: Array) -> tuple[Array, Array]:
    """Sort pairs; one sort of packed 64-bit numbers is several times faster than a pair sort."""
    if owners.dtype == np.int32 and values.dtype == np.int32:
        keys = owners.astype(np.int64)
        keys <<= 32
        keys |= values
        keys.sort()
        halves = keys.view(np.int32)
        return np.ascontiguousarray(halves[1::2]), np.ascontiguousarray(halves[::2])
    order = np.lexsort((values, owners))
    return owners[order], values[order]


def starts_of(owners: Array, size: int) -> Array:
    """Return where the list of each row begins; pairs must be sorted by owner."""
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=size), out=starts[1:])
    return narrow(starts)


def narrow(values: Array) -> Array:
    """Return the same numbers in 32 bits if they fit."""
    if values.dtype == np.int32 or (len(values) and int(values.max()) >= _NARROW):
        return values
    return values.astype(np.int32)
