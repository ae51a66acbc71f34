"""Adjacency of one edge type in one direction: operations on sorted neighbour lists.

Owns the `Adjacency` protocol and its in-memory forms. Nodes and edges are stable row ids; a row id
that is null or unknown has no neighbours. Never reads storage: callers supply the arrays.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .rows import Ids, Mask

Array = npt.NDArray[Any]
_BLOCK = 1 << 17  # pairs built at a time
_FEW = 32  # up to this many lists are concatenated one by one
_WORTH = 2  # build a sketch once the probed pairs exceed this fraction (1/2) of the stored pairs
_SKETCH_BITS = 8  # per pair: about one in eight absent pairs passes the sketch


class Adjacency(Protocol):
    """Neighbours along one edge type and direction, at fixed table versions."""

    def degrees(self, rows: Ids) -> Ids:
        """Return the number of distinct neighbours of each source."""

    def expand(self, rows: Ids, passes: Mask | None = None) -> tuple[Ids, Ids]:
        """Return (positions into `sources`, neighbours): a sorted set for each position.

        `accepted_rows` is a mask by row id that restricts the neighbours; its last entry applies to
        all row ids beyond it.
        """

    def union(self, rows: Ids) -> Array:
        """Return the neighbours of all sources, in any order and possibly repeated."""

    @property
    def size(self) -> int:
        """Upper bound of all row ids if both endpoints have the same type; 0 if unknown."""

    def expand_edges(self, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """Return (positions, neighbours, edge row ids): one entry per edge, including parallels."""

    def edge_degrees(self, rows: Ids) -> Ids:
        """Return the number of edges of each source; may overestimate."""

    def contains(self, sources: Ids, targets: Ids) -> Mask:
        """Return for each pair whether the target is a neighbour of the source."""


@dataclass(slots=True, eq=False)
class Probes:
    """Number of pairs probed in the lists, and the sketch that was built once there were many."""

    asked: int = 0
    sketch: "Sketch | None" = None


@dataclass(frozen=True, slots=True)
class Lists:
    """Sorted neighbour lists of rows 0, 1, 2, ...: list `i` is `values[starts[i]:starts[i + 1]]`.

    In a set, no value occurs twice in a list, and `repeats` holds the pairs with several edges as
    (owners, values, counts). In a bag, `edges` holds the edge row ids.

    >>> lists = Lists(np.array([0, 2, 2, 3]), np.array([5, 7, 5], np.int32))
    >>> lists.of(np.array([2, 1, 0, -1, 9]))[1].tolist()
    [5, 5, 7]
    """

    starts: Array
    values: Array
    edges: Array | None = None
    repeats: tuple[Array, Array, Array] | None = None
    probes: "Probes" = field(default_factory=Probes, compare=False, repr=False)

    def bounds(self, rows: Ids) -> tuple[Array, Array]:
        """Return the start and length of each row's list; unknown rows have empty lists."""
        size = len(self.starts) - 1
        if len(rows) == 0 or size == 0:
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        if len(rows) == size and rows[0] == 0 and bool((rows[1:] - rows[:-1] == 1).all()):
            return self.starts[:-1], np.diff(self.starts)  # all rows, in order
        if int(rows.min()) >= 0 and int(rows.max()) < size:
            begins = self.starts[rows]
            return begins, self.starts[rows + 1] - begins
        inside = (rows >= 0) & (rows < size)
        safe = np.where(inside, rows, 0)
        begins = self.starts[safe]
        return begins, np.where(inside, self.starts[safe + 1] - begins, 0)

    def of(self, rows: Ids, passes: Mask | None = None) -> tuple[Ids, Ids]:
        """Return (positions into `owner_rows`, values): the lists of the rows, concatenated.

        `accepted_rows` restricts the values; its last entry applies to all values beyond it.
        """
        begins, lengths = self.bounds(rows)
        ends = np.cumsum(lengths, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        if total == 0 or (passes is None and total <= _BLOCK):
            positions = np.repeat(np.arange(len(rows), dtype=np.int64), lengths)
            return positions, _wide(self.values[ranges(begins, lengths)])
        cuts = np.unique(np.searchsorted(ends, np.arange(0, total, _BLOCK), side="left"))
        parts = [
            self._part(begins, lengths, int(one), int(other), passes)
            for one, other in zip(cuts, [*cuts[1:], len(rows)], strict=True)
        ]
        return _together([block for block, _ in parts]), _together([block for _, block in parts])

    def _part(
        self, begins: Array, lengths: Array, first: int, last: int, passes: Mask | None
    ) -> tuple[Ids, Ids]:
        """Expand the rows between two positions; the intermediate arrays fit into a CPU cache."""
        lengths = lengths[first:last]
        values = self.values[ranges(begins[first:last], lengths)]
        if passes is not None:
            chosen = passes.take(values, mode="clip")
            values = np.compress(chosen, values)
            sums = np.zeros(len(chosen) + 1, np.int64)
            np.cumsum(chosen, out=sums[1:])
            ends = np.cumsum(lengths, dtype=np.int64)
            lengths = sums[ends] - sums[ends - lengths]
        return np.repeat(np.arange(first, last, dtype=np.int64), lengths), _wide(values)

    def thinned(self, passes: Mask) -> "Lists":
        """Return the same lists with only the accepted values; see `expand`."""
        chosen = np.empty(len(self.values), np.bool_)
        for at in range(0, len(chosen), _BLOCK):
            passes.take(self.values[at : at + _BLOCK], out=chosen[at : at + _BLOCK], mode="clip")
        sums = np.zeros(len(chosen) + 1, np.int32 if len(chosen) < 1 << 31 else np.int64)
        np.cumsum(chosen, out=sums[1:])
        return Lists(sums[self.starts], np.compress(chosen, self.values))

    def union(self, rows: Ids) -> Array:
        """Return the concatenated lists of the rows, without their owners."""
        if len(rows) > _FEW:
            begins, lengths = self.bounds(rows)
            return self.values[ranges(begins, lengths)]
        size = len(self.starts) - 1
        cuts = [(self.starts[r], self.starts[r + 1]) for r in rows.tolist() if 0 <= r < size]
        return np.concatenate([self.values[:0], *(self.values[a:b] for a, b in cuts)])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        extra = self.repeats or ()
        arrays = [self.starts, self.values, self.edges, *extra]
        return sum(one.nbytes for one in arrays if one is not None)


def ranges(begins: Array, lengths: Array) -> Ids:
    """Return the numbers `start, start + 1, ...` of every range, concatenated.

    >>> ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    found: Ids = np.repeat(begins - (ends - lengths), lengths)
    found += np.arange(total, dtype=np.int64)
    return found


def search_lists(lists: Lists, sources: Ids, targets: Ids) -> Mask:
    """Return for each pair whether the target is in the source's list; one vectorized bisection."""
    low, lengths = lists.bounds(sources)
    low = low.astype(np.int64)
    high = low + lengths
    found = np.zeros(len(sources), np.bool_)
    asked = np.flatnonzero(lengths > 0)
    low, high, wanted = low[asked], high[asked], targets[asked]
    while len(asked):
        middle = (low + high) >> 1
        seen = lists.values[middle]
        found[asked[seen == wanted]] = True
        right = seen < wanted
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, middle)
        left = (low < high) & (seen != wanted)
        if not left.all():
            asked, low, high, wanted = asked[left], low[left], high[left], wanted[left]
    return found


class Sketch:
    """Bit filter that rules out most absent pairs; false positives are possible.

    Searching a list costs several scattered memory reads, and most probed pairs are not edges.
    """

    def __init__(self, lists: Lists) -> None:
        bits = max(10, (len(lists.values) * _SKETCH_BITS).bit_length())
        self._shift = np.uint64(64 - bits)
        self._bits = np.zeros(1 << (bits - 3), np.uint8)
        marked = np.zeros(1 << bits, np.bool_)
        for start in range(0, len(lists.starts) - 1, _BLOCK):
            part = lists.starts[start : start + _BLOCK + 1].astype(np.int64)
            owners = np.repeat(np.arange(start, start + len(part) - 1), np.diff(part))
            marked[self._slots(owners, lists.values[part[0] : part[-1]])] = True
        self._bits = np.packbits(marked, bitorder="little")

    def _slots(self, sources: Ids, targets: Array) -> Array:
        mixed = sources.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= targets.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        mixed >>= self._shift
        return mixed.view(np.int64)

    def maybe(self, sources: Ids, targets: Ids) -> Mask:
        """Return False where a pair is certainly absent."""
        slots = self._slots(sources, targets)
        found: Mask = (self._bits[slots >> 3] >> (slots & 7).astype(np.uint8)) & 1 != 0
        return found

    @property
    def nbytes(self) -> int:
        """Size of the filter in bytes."""
        return self._bits.nbytes


@dataclass(slots=True, eq=False)
class OneWay:
    """Edges followed in one direction: along or against their own."""

    lists: Lists
    bag: Lists | None = None

    def degrees(self, rows: Ids) -> Ids:
        """Return the number of distinct neighbours of each source."""
        return self.lists.bounds(rows)[1].astype(np.int64, copy=False)

    def expand(self, rows: Ids, passes: Mask | None = None) -> tuple[Ids, Ids]:
        """Return a set of neighbours for each position."""
        return self.lists.of(rows, passes)

    def union(self, rows: Ids) -> Array:
        """Return the neighbours of all sources, possibly repeated."""
        return self.lists.union(rows)

    @property
    def size(self) -> int:
        """Number of rows that have lists."""
        return len(self.lists.starts) - 1

    def expand_edges(self, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """Return one neighbour per edge."""
        bag = self._bag()
        begins, lengths = bag.bounds(rows)
        places = ranges(begins, lengths)
        positions = np.repeat(np.arange(len(rows), dtype=np.int64), lengths)
        edges = bag.edges if bag.edges is not None else bag.values
        return positions, _wide(bag.values[places]), _wide(edges[places])

    def edge_degrees(self, rows: Ids) -> Ids:
        """Return the number of edges of each source."""
        return self._bag().bounds(rows)[1].astype(np.int64, copy=False)

    def _bag(self) -> Lists:
        if self.bag is None:
            raise ValueError("edge lists were not loaded for this adjacency")
        return self.bag

    def contains(self, sources: Ids, targets: Ids) -> Mask:
        """Return for each pair whether the target is a neighbour of the source."""
        probes = self.lists.probes
        probes.asked += len(sources)
        if probes.sketch is None and probes.asked > len(self.lists.values) // _WORTH:
            probes.sketch = Sketch(self.lists)
        if probes.sketch is None or len(sources) < _FEW:
            return search_lists(self.lists, sources, targets)
        found = probes.sketch.maybe(sources, targets)
        left = np.flatnonzero(found)
        found[left] = search_lists(self.lists, sources[left], targets[left])
        return found


@dataclass(slots=True, eq=False)
class BothWays:
    """Edges within one node type, followed in both directions."""

    out: Adjacency
    back: Adjacency

    def degrees(self, rows: Ids) -> Ids:
        """Return the number of distinct neighbours of each source."""
        distinct, places = np.unique(rows, return_inverse=True)
        positions, _ = self.expand(distinct)
        return np.bincount(positions, minlength=len(distinct))[places].astype(np.int64, copy=False)

    def expand(self, rows: Ids, passes: Mask | None = None) -> tuple[Ids, Ids]:
        """Return the union of both directions for each position."""
        first, second = self.out.expand(rows, passes), self.back.expand(rows, passes)
        return distinct_pairs(
            np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
        )

    def union(self, rows: Ids) -> Array:
        """Return the neighbours of all sources, possibly repeated."""
        return np.concatenate([self.out.union(rows), self.back.union(rows)])

    @property
    def size(self) -> int:
        """Number of rows that have lists; 0 if unknown."""
        return max(self.out.size, self.back.size) if self.out.size and self.back.size else 0

    def expand_edges(self, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """Return one neighbour per edge; a self-loop counts once, not twice."""
        out, back = self.out.expand_edges(rows), self.back.expand_edges(rows)
        proper = rows[back[0]] != back[1]
        parts = [np.concatenate([a, b[proper]]) for a, b in zip(out, back, strict=True)]
        return parts[0], parts[1], parts[2]

    def edge_degrees(self, rows: Ids) -> Ids:
        """Return the edges of each source with self-loops counted twice: exact enough to charge."""
        return self.out.edge_degrees(rows) + self.back.edge_degrees(rows)

    def contains(self, sources: Ids, targets: Ids) -> Mask:
        """Return for each pair whether an edge leads in either direction."""
        found = self.out.contains(sources, targets)
        left = np.flatnonzero(~found)
        found[left] = self.back.contains(sources[left], targets[left])
        return found


def distinct_pairs(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Return the distinct pairs, sorted."""
    if len(first) == 0:
        return first, second
    if int(first.max()) < 1 << 31 and int(second.max()) < 1 << 32:
        keys = (first << 32) | second
        keys.sort()
        keys = keys[changes(keys)]
        return keys >> 32, keys & 0xFFFFFFFF
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    kept = changes(first) | changes(second)
    return first[kept], second[kept]


def changes(values: Array) -> Mask:
    """Return a mask of positions whose value differs from the previous one; the first is True."""
    found = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def _wide(values: Array) -> Ids:
    return values.astype(np.int64, copy=False)


def _together(parts: list[Ids]) -> Ids:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
