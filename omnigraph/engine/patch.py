"""Neighbour lists of one version derived from those of another when few rows differ.

Owns the proof that the derived lists are correct: every edge present in both versions must join
the same pair of rows in both. If that cannot be shown cheaply, the result is None and the lists
are rebuilt.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.difference import compare, read_changes
from omnigraph.storage.scan import ROW_ID, row_id_array, scan
from omnigraph.storage.table import Table

from .adjacency import Array, Lists, changes
from .encode import encoder_of
from .rows import Ids
from .topology import Tables, Topology, narrow

_SHARE = 10  # at most one edge in this many may differ
_SMALL = 1_000  # this many changed edges are always allowed


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges as pairs of endpoint row ids, with the row ids of the edges."""

    sources: Ids
    targets: Ids
    rows: Ids


def patch(old: Topology, before: Tables, after: Tables) -> Topology | None:
    """Return the lists of `target_tables`, derived from `base_topology`; None to rebuild them."""
    nodes = _changed_nodes(before, after)
    found = _changed_edges(old, before, after)
    if nodes is None or found is None or old.dangling:
        return None  # a dangling edge may have gained its endpoint
    (gone_sources, high), (gone_targets, top) = nodes
    lost, won = found
    out = _patched(old.out, _turn(lost, back=False), _turn(won, back=False), high)
    back = _patched(old.back, _turn(lost, back=True), _turn(won, back=True), top)
    if out is None or back is None:
        return None
    # A retained edge must not end at a row that was removed, or whose id now means another row.
    if out.bounds(gone_sources)[1].any() or back.bounds(gone_targets)[1].any():
        return None
    drift = old.drift + len(lost.rows) + len(won.rows)
    return Topology(out, back, 0, drift)


def _changed_nodes(before: Tables, after: Tables) -> tuple[tuple[Ids, int], ...] | None:
    """For source and target: rows removed or with a changed id, and the highest new row id."""
    found = []
    pairs = [(before.source, after.source), (before.target, after.target)]
    for one, other in pairs:
        if one.location != other.location:
            return None
        gone, come = read_changes(compare(one, other), ["id"])
        rows = row_id_array(come)
        found.append((row_id_array(gone), int(rows.max()) if len(rows) else -1))
    return tuple(found)


def _changed_edges(old: Topology, before: Tables, after: Tables) -> tuple[_Edges, _Edges] | None:
    """Return edges found in only one version; None if too many or an endpoint is missing."""
    if before.edge.location != after.edge.location:
        return None
    difference = compare(before.edge, after.edge)
    if difference.rows > max(_SMALL, len(old.out.values) // _SHARE):
        return None
    lost, won = read_changes(difference, ["src", "dst"])
    first, second = _resolved(lost, before), _resolved(won, after)
    return (first, second) if first is not None and second is not None else None


def _resolved(edges: pa.Table, tables: Tables) -> _Edges | None:
    sources = _look_up(tables.source, edges["src"])
    targets = _look_up(tables.target, edges["dst"])
    if (sources < 0).any() or (targets < 0).any():
        return None
    return _Edges(sources, targets, edges[ROW_ID].to_numpy().astype(np.int64))


def _look_up(table: Table, ids: pa.ChunkedArray) -> Ids:
    wanted = pc.unique(ids)
    found = scan(table, ["id"], pc.field("id").isin(wanted), row_ids=True)
    return encoder_of(found["id"], row_id_array(found)).encode(ids)


def _turn(edges: _Edges, *, back: bool) -> _Edges:
    return _Edges(edges.targets, edges.sources, edges.rows) if back else edges


def _patched(lists: Lists, lost: _Edges, won: _Edges, highest: int) -> Lists | None:
    wider = _widened(lists, highest + 1)
    if lists.edges is not None:
        return _patch_bag(wider, lost, won)
    return _patch_sets(wider, lost, won)


def _widened(lists: Lists, size: int) -> Lists:
    """Return the same lists, extended by empty ones up to `row_count` rows."""
    more = size - (len(lists.starts) - 1)
    if more <= 0:
        return lists
    starts = np.concatenate([lists.starts, np.full(more, lists.starts[-1], lists.starts.dtype)])
    return Lists(starts, lists.values, lists.edges, lists.repeats)


def _patch_sets(lists: Lists, lost: _Edges, won: _Edges) -> Lists | None:
    """Patch sets: a pair stays in its list as long as at least one edge joins it."""
    owners, values, more = _tally(lost, won)
    places, present = _find(lists, owners, values)
    repeats = _Repeats.of(lists)
    had = np.where(present, 1, 0)
    several = repeats.find(owners, values)
    had[several >= 0] = repeats.counts[several[several >= 0]]
    now = had + more
    if (now < 0).any():
        return None
    out, into = present & (now == 0), ~present & (now > 0)
    made = _edited(lists, (owners, values, None), places, out, into)
    again = now > 1
    left = repeats.without(several[several >= 0]).plus(owners[again], values[again], now[again])
    return Lists(made.starts, made.values, repeats=left.arrays)


def _patch_bag(lists: Lists, lost: _Edges, won: _Edges) -> Lists | None:
    """Patch bags: every edge has its own entry."""
    old = _sorted(lost)
    places, present = _find(lists, *old)
    if not present.all():
        return None
    less = _edited(lists, old, places, present, ~present)
    new = _sorted(won)
    places, present = _find(less, *new)
    return None if present.any() else _edited(less, new, places, present, ~present)


@dataclass(frozen=True, slots=True)
class _Repeats:
    """Sorted pairs joined by several edges, with the number of edges."""

    owners: Array
    values: Array
    counts: Array

    @classmethod
    def of(cls, lists: Lists) -> "_Repeats":
        empty = np.empty(0, np.int32)
        return cls(*(lists.repeats or (empty, empty, empty)))

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return narrow(self.owners), narrow(self.values), narrow(self.counts)

    def find(self, owners: Ids, values: Ids) -> Ids:
        """Return the positions of pairs, -1 for a pair that is not present."""
        known = {pair: at for at, pair in enumerate(zip(self.owners, self.values, strict=True))}
        asked = zip(owners, values, strict=True)
        return np.fromiter((known.get(one, -1) for one in asked), np.int64, len(owners))

    def without(self, places: Ids) -> "_Repeats":
        return _Repeats(
            *(np.delete(one, places) for one in (self.owners, self.values, self.counts))
        )

    def plus(self, owners: Ids, values: Ids, counts: Ids) -> "_Repeats":
        mine = (self.owners, self.values, self.counts)
        parts = [np.concatenate(two) for two in zip(mine, (owners, values, counts), strict=True)]
        order = np.lexsort((parts[1], parts[0]))
        return _Repeats(*(one[order] for one in parts))


def _tally(lost: _Edges, won: _Edges) -> tuple[Ids, Ids, Ids]:
    """Return the distinct pairs in order, and by how many edges each one changes."""
    owners = np.concatenate([lost.sources, won.sources])
    values = np.concatenate([lost.targets, won.targets])
    signs = np.repeat(np.array([-1, 1]), [len(lost.rows), len(won.rows)])
    order = np.lexsort((values, owners))
    owners, values, signs = owners[order], values[order], signs[order]
    first = np.flatnonzero(changes(owners) | changes(values)) if len(owners) else order
    sums = np.add.reduceat(signs, first) if len(first) else signs
    return owners[first], values[first], sums


def _sorted(edges: _Edges) -> tuple[Ids, Ids, Ids]:
    order = np.lexsort((edges.rows, edges.targets, edges.sources))
    return edges.sources[order], edges.targets[order], edges.rows[order]


def _find(
    lists: Lists, owners: Ids, values: Ids, edges: Ids | None = None
) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Return where entries are in their lists, or would be inserted, and whether they exist."""
    begins, lengths = lists.bounds(owners)
    low = begins.astype(np.int64)
    high = low + lengths
    present = np.zeros(len(owners), np.bool_)
    while (open_ := low < high).any():
        middle = np.where(open_, (low + high) >> 1, 0)
        less, same = lists.values[middle] < values, lists.values[middle] == values
        if edges is not None and lists.edges is not None:
            less |= same & (lists.edges[middle] < edges)
            same &= lists.edges[middle] == edges
        present |= open_ & same
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    return low, present


def _edited(
    lists: Lists, entries: tuple[Ids, Ids, Ids | None], places: Ids, out: Array, into: Array
) -> Lists:
    """Return lists with some entries removed and others inserted; positions are sorted."""
    owners, values, rows = entries
    gone, new = places[out], places[into]
    new = new - np.searchsorted(gone, new)
    more = np.zeros(len(lists.starts), np.int64)
    np.add.at(more, owners[into] + 1, 1)
    np.subtract.at(more, owners[out] + 1, 1)
    starts = narrow(lists.starts + np.cumsum(more))
    edges = lists.edges
    if edges is not None and rows is not None:
        edges = _replaced(edges, gone, new, rows[into])
    return Lists(starts, _replaced(lists.values, gone, new, values[into]), edges)


def _replaced(array: Array, gone: Ids, places: Ids, values: Ids) -> Array:
    kind = array.dtype if not len(values) or values.max() < 1 << 31 else np.dtype(np.int64)
    return np.insert(np.delete(array, gone).astype(kind, copy=False), places, values)
