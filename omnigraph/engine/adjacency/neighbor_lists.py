"""Operations on the sorted neighbor lists for one edge type and direction.

Nodes and edges are identified by stable row ids. A null or unknown row id has no neighbors. Callers supply all arrays,
and this module never reads storage.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.engine.operators.rows import IntArray, Mask
from omnigraph.records.frozen import record

IndexArray = npt.NDArray[Any]
_BLOCK_PAIRS = 1 << 17  # number of pairs built at a time
_FEW_ROWS = 8  # for up to eight lists, a loop is faster than vectorized operations
SMALL_BATCH = 32  # maximum number of lists that are concatenated one by one
_SKETCH_BITS = 8  # number of bits per pair; about one in eight missing pairs still passes the sketch


@dataclass(slots=True, eq=False)
class ProbeStats:
    """The number of pairs probed so far, and the bit filter that is built once that number is large."""

    probed_pairs: int = 0
    sketch: "PairSketch | None" = None


@record
class NeighborLists:
    """Sorted neighbor lists for rows 0, 1, 2, ...: list `i` is `values[starts[i]:starts[i + 1]]`.

    In set form, no list contains a value twice, and `repeats` holds the row, the value and the edge count for each pair
    that is joined by several edges. In bag form, `edges` holds the edge row ids.

    >>> lists = NeighborLists(np.array([0, 2, 2, 3]), np.array([5, 7, 5], np.int32))
    >>> lists.expand(np.array([2, 1, 0, -1, 9]))[1].tolist()
    [5, 5, 7]
    """

    starts: IndexArray
    values: IndexArray
    edges: IndexArray | None = None
    repeats: tuple[IndexArray, IndexArray, IndexArray] | None = None
    probe_stats: "ProbeStats" = field(default_factory=ProbeStats, compare=False, repr=False)

    def bounds(self, owner_rows: IntArray) -> tuple[IndexArray, IndexArray]:
        """Return the start and the length of each row's list; unknown rows have empty lists."""
        list_count = len(self.starts) - 1
        if len(owner_rows) == 0 or list_count == 0:
            return np.zeros(len(owner_rows), np.int64), np.zeros(len(owner_rows), np.int64)
        if len(owner_rows) == list_count and owner_rows[0] == 0 and bool((owner_rows[1:] - owner_rows[:-1] == 1).all()):
            return self.starts[:-1], np.diff(self.starts)  # all rows, in order
        if int(owner_rows.min()) >= 0 and int(owner_rows.max()) < list_count:
            list_starts = self.starts[owner_rows]
            return list_starts, self.starts[owner_rows + 1] - list_starts
        in_range = (owner_rows >= 0) & (owner_rows < list_count)
        clipped_rows = np.where(in_range, owner_rows, 0)
        list_starts = self.starts[clipped_rows]
        return list_starts, np.where(in_range, self.starts[clipped_rows + 1] - list_starts, 0)

    def count_pairs(self, owner_rows: IntArray) -> int:
        """Return the total length of the lists for the given rows."""
        if len(owner_rows) > _FEW_ROWS:
            return int(self.bounds(owner_rows)[1].sum())
        starts, list_count, pair_count = self.starts, len(self.starts) - 1, 0
        for owner in owner_rows.tolist():
            if 0 <= owner < list_count:
                pair_count += int(starts[owner + 1]) - int(starts[owner])
        return pair_count

    def expand(self, owner_rows: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Concatenate the lists of the given rows; also return the position in `owner_rows` that each value belongs to.

        `accepted_rows` is a mask that is indexed by value and selects the values to return. The last entry of the mask
        also applies to all higher values.
        """
        if len(owner_rows) == 1 and accepted_rows is None:
            neighbors = as_int64(self.union(owner_rows))
            return np.zeros(len(neighbors), np.int64), neighbors
        list_starts, list_lengths = self.bounds(owner_rows)
        cumulative_lengths = np.cumsum(list_lengths, dtype=np.int64)
        total_pairs = int(cumulative_lengths[-1]) if len(cumulative_lengths) else 0
        if total_pairs == 0 or (accepted_rows is None and total_pairs <= _BLOCK_PAIRS):
            positions = np.repeat(np.arange(len(owner_rows), dtype=np.int64), list_lengths)
            return positions, as_int64(self.values[expand_ranges(list_starts, list_lengths)])
        block_starts = np.unique(
            np.searchsorted(cumulative_lengths, np.arange(0, total_pairs, _BLOCK_PAIRS), side="left")
        )
        blocks = [
            self._expand_range(list_starts, list_lengths, int(block_start), int(block_stop), accepted_rows)
            for block_start, block_stop in zip(block_starts, [*block_starts[1:], len(owner_rows)], strict=True)
        ]
        return _concat_ids([block for block, _ in blocks]), _concat_ids([block for _, block in blocks])

    def _expand_range(
        self,
        list_starts: IndexArray,
        list_lengths: IndexArray,
        first_row: int,
        stop_row: int,
        accepted_rows: Mask | None,
    ) -> tuple[IntArray, IntArray]:
        """Expand the rows between two positions. Callers choose ranges whose results fit in the CPU cache."""
        list_lengths = list_lengths[first_row:stop_row]
        neighbors = self.values[expand_ranges(list_starts[first_row:stop_row], list_lengths)]
        if accepted_rows is not None:
            is_accepted = accepted_rows.take(neighbors, mode="clip")
            neighbors = np.compress(is_accepted, neighbors)
            accepted_before = np.zeros(len(is_accepted) + 1, np.int64)
            np.cumsum(is_accepted, out=accepted_before[1:])
            cumulative_lengths = np.cumsum(list_lengths, dtype=np.int64)
            list_lengths = accepted_before[cumulative_lengths] - accepted_before[cumulative_lengths - list_lengths]
        return np.repeat(np.arange(first_row, stop_row, dtype=np.int64), list_lengths), as_int64(neighbors)

    def restrict_to(self, accepted_rows: Mask) -> "NeighborLists":
        """Return the same lists with only the accepted values. `accepted_rows` has the same form as in `expand`."""
        is_accepted = np.empty(len(self.values), np.bool_)
        for block_start in range(0, len(is_accepted), _BLOCK_PAIRS):
            accepted_rows.take(
                self.values[block_start : block_start + _BLOCK_PAIRS],
                out=is_accepted[block_start : block_start + _BLOCK_PAIRS],
                mode="clip",
            )
        accepted_before = np.zeros(len(is_accepted) + 1, np.int32 if len(is_accepted) < 1 << 31 else np.int64)
        np.cumsum(is_accepted, out=accepted_before[1:])
        return NeighborLists(accepted_before[self.starts], np.compress(is_accepted, self.values))

    def union(self, owner_rows: IntArray) -> IndexArray:
        """Return the concatenated lists of the rows, without recording which row each value belongs to."""
        if len(owner_rows) > SMALL_BATCH:
            list_starts, list_lengths = self.bounds(owner_rows)
            return self.values[expand_ranges(list_starts, list_lengths)]
        starts, values, list_count = self.starts, self.values, len(self.starts) - 1
        lists = [values[starts[owner] : starts[owner + 1]] for owner in owner_rows.tolist() if 0 <= owner < list_count]
        return np.concatenate(lists) if lists else values[:0].copy()

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes."""
        repeat_arrays = self.repeats or ()
        arrays = [self.starts, self.values, self.edges, *repeat_arrays]
        return sum(array.nbytes for array in arrays if array is not None)


def expand_ranges(range_starts: IndexArray, range_lengths: IndexArray) -> IntArray:
    """Return the numbers in all ranges, one range after another; a range is given by its first number and its length.

    >>> expand_ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    cumulative_lengths = np.cumsum(range_lengths, dtype=np.int64)
    total_length = int(cumulative_lengths[-1]) if len(cumulative_lengths) else 0
    numbers: IntArray = np.repeat(range_starts - (cumulative_lengths - range_lengths), range_lengths)
    numbers += np.arange(total_length, dtype=np.int64)
    return numbers


def search_pairs(neighbor_lists: NeighborLists, sources: IntArray, targets: IntArray) -> Mask:
    """Return whether each target is in its source's list, using one vectorized bisection."""
    if len(sources) <= _FEW_ROWS:
        return _search_few_pairs(neighbor_lists, sources, targets)
    low, list_lengths = neighbor_lists.bounds(sources)
    low = low.astype(np.int64)
    high = low + list_lengths
    is_neighbor = np.zeros(len(sources), np.bool_)
    open_pairs = np.flatnonzero(list_lengths > 0)
    low, high, open_targets = low[open_pairs], high[open_pairs], targets[open_pairs]
    while len(open_pairs):
        middle = (low + high) >> 1
        middle_values = neighbor_lists.values[middle]
        is_neighbor[open_pairs[middle_values == open_targets]] = True
        target_is_right = middle_values < open_targets
        low = np.where(target_is_right, middle + 1, low)
        high = np.where(target_is_right, high, middle)
        still_open = (low < high) & (middle_values != open_targets)
        if not still_open.all():
            open_pairs = open_pairs[still_open]
            low = low[still_open]
            high = high[still_open]
            open_targets = open_targets[still_open]
    return is_neighbor


def _search_few_pairs(neighbor_lists: NeighborLists, sources: IntArray, targets: IntArray) -> Mask:
    is_neighbor = np.zeros(len(sources), np.bool_)
    starts, list_count = neighbor_lists.starts, len(neighbor_lists.starts) - 1
    for position, owner in enumerate(sources.tolist()):
        if 0 <= owner < list_count:
            neighbors = neighbor_lists.values[starts[owner] : starts[owner + 1]]
            found_at = neighbors.searchsorted(targets[position])
            is_neighbor[position] = found_at < len(neighbors) and neighbors[found_at] == targets[position]
    return is_neighbor


class PairSketch:
    """A bit filter that rules out most missing pairs; false positives are possible.

    The filter pays off because searching a list takes several scattered memory reads and most probed pairs are missing.
    """

    def __init__(self, neighbor_lists: NeighborLists) -> None:
        bit_count = max(10, (len(neighbor_lists.values) * _SKETCH_BITS).bit_length())
        self._shift = np.uint64(64 - bit_count)
        self._packed_bits = np.zeros(1 << (bit_count - 3), np.uint8)
        is_marked = np.zeros(1 << bit_count, np.bool_)
        for block_start in range(0, len(neighbor_lists.starts) - 1, _BLOCK_PAIRS):
            block_bounds = neighbor_lists.starts[block_start : block_start + _BLOCK_PAIRS + 1].astype(np.int64)
            owners = np.repeat(np.arange(block_start, block_start + len(block_bounds) - 1), np.diff(block_bounds))
            is_marked[self._hash_slots(owners, neighbor_lists.values[block_bounds[0] : block_bounds[-1]])] = True
        self._packed_bits = np.packbits(is_marked, bitorder="little")

    def _hash_slots(self, sources: IntArray, targets: IndexArray) -> IndexArray:
        hashes = sources.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= targets.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        hashes *= np.uint64(0xD6E8FEB86659FD93)
        hashes >>= self._shift
        return hashes.view(np.int64)

    def may_contain(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return a mask that is False where a pair is definitely missing."""
        slots = self._hash_slots(sources, targets)
        may_exist: Mask = (self._packed_bits[slots >> 3] >> (slots & 7).astype(np.uint8)) & 1 != 0
        return may_exist

    @property
    def nbytes(self) -> int:
        """The size of the filter in bytes."""
        return self._packed_bits.nbytes


def distinct_pairs(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct pairs, sorted."""
    if len(first) == 0:
        return first, second
    if int(first.max()) < 1 << 31 and int(second.max()) < 1 << 32:
        packed_pairs = (first << 32) | second
        packed_pairs.sort()
        packed_pairs = packed_pairs[run_starts(packed_pairs)]
        return packed_pairs >> 32, packed_pairs & 0xFFFFFFFF
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    is_new_pair = run_starts(first) | run_starts(second)
    return first[is_new_pair], second[is_new_pair]


def run_starts(sorted_values: IndexArray) -> Mask:
    """Return a mask of the positions at which the value differs from the previous value.

    The first entry in the mask is True.
    """
    is_start = np.ones(len(sorted_values), np.bool_)
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=is_start[1:])
    return is_start


def as_int64(values: IndexArray) -> IntArray:
    """Return the values as 64-bit integers, without copying an array that already has this type."""
    return values.astype(np.int64, copy=False)


def _concat_ids(blocks: list[IntArray]) -> IntArray:
    return np.concatenate(blocks) if blocks else np.empty(0, np.int64)
