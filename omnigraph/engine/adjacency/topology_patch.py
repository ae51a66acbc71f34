"""Derive neighbor lists from the lists for a different version if only a few rows differ.

The derived lists are correct only if every edge that exists in both versions joins the same pair of rows in both. If
this condition cannot be verified cheaply, the result is None and the lists are rebuilt.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.operators.rows import IntArray
from omnigraph.records.frozen import record
from omnigraph.storage.scan import ROW_ID, row_id_array, scan
from omnigraph.storage.table import Table
from omnigraph.storage.version_difference import compare_versions, read_changes

from .id_encoder import build_encoder
from .neighbor_lists import IndexArray, NeighborLists, run_starts
from .topology import EdgeTables, Topology, narrow_to_int32

_MIN_EDGES_PER_CHANGE = 10  # if more than 1/10 of the edges differ, the lists are rebuilt instead of derived
_ALWAYS_ALLOWED_CHANGES = 1_000  # with up to 1,000 differing edges, the lists are always derived


@record
class _EdgeRows:
    """Edges as pairs of endpoint row ids, together with the row ids of the edges themselves."""

    sources: IntArray
    targets: IntArray
    edge_ids: IntArray


def patch_topology(base_topology: Topology, base_tables: EdgeTables, target_tables: EdgeTables) -> Topology | None:
    """Derive the lists for `target_tables` from `base_topology`, or return None if they must be rebuilt."""
    node_changes = _find_node_changes(base_tables, target_tables)
    edge_changes = _find_edge_changes(base_topology, base_tables, target_tables)
    if node_changes is None or edge_changes is None or base_topology.dangling_count:
        return None  # the missing endpoint of a dangling edge may have been added
    (stale_sources, highest_source), (stale_targets, highest_target) = node_changes
    removed_edges, added_edges = edge_changes
    out = _patch_lists(
        base_topology.by_source,
        _orient_edges(removed_edges, reverse=False),
        _orient_edges(added_edges, reverse=False),
        highest_source,
    )
    back = _patch_lists(
        base_topology.by_target,
        _orient_edges(removed_edges, reverse=True),
        _orient_edges(added_edges, reverse=True),
        highest_target,
    )
    if out is None or back is None:
        return None
    # A retained edge must not end at a row that was removed or whose id now belongs to a different row.
    if out.bounds(stale_sources)[1].any() or back.bounds(stale_targets)[1].any():
        return None
    changed_count = base_topology.unsaved_changes + len(removed_edges.edge_ids) + len(added_edges.edge_ids)
    return Topology(out, back, 0, changed_count)


def _find_node_changes(base_tables: EdgeTables, target_tables: EdgeTables) -> tuple[tuple[IntArray, int], ...] | None:
    """Return the removed rows and the highest new row id of each endpoint table, or None if a table was replaced."""
    changes_per_endpoint = []
    table_pairs = [(base_tables.source, target_tables.source), (base_tables.target, target_tables.target)]
    for base_table, target_table in table_pairs:
        if base_table.location != target_table.location:
            return None
        removed_nodes, added_nodes = read_changes(compare_versions(base_table, target_table), ["id"])
        added_rows = row_id_array(added_nodes)
        changes_per_endpoint.append((row_id_array(removed_nodes), int(added_rows.max()) if len(added_rows) else -1))
    return tuple(changes_per_endpoint)


def _find_edge_changes(
    base_topology: Topology, base_tables: EdgeTables, target_tables: EdgeTables
) -> tuple[_EdgeRows, _EdgeRows] | None:
    """Return the removed and the added edges, or None if there are too many or an endpoint is missing."""
    if base_tables.edge.location != target_tables.edge.location:
        return None
    difference = compare_versions(base_tables.edge, target_tables.edge)
    if difference.max_rows_read > max(
        _ALWAYS_ALLOWED_CHANGES, len(base_topology.by_source.values) // _MIN_EDGES_PER_CHANGE
    ):
        return None
    removed_rows, added_rows = read_changes(difference, ["src", "dst"])
    removed_edges = _resolve_endpoints(removed_rows, base_tables)
    added_edges = _resolve_endpoints(added_rows, target_tables)
    return (removed_edges, added_edges) if removed_edges is not None and added_edges is not None else None


def _resolve_endpoints(edge_table: pa.Table, tables: EdgeTables) -> _EdgeRows | None:
    sources = _look_up_row_ids(tables.source, edge_table["src"])
    targets = _look_up_row_ids(tables.target, edge_table["dst"])
    if (sources < 0).any() or (targets < 0).any():
        return None
    return _EdgeRows(sources, targets, edge_table[ROW_ID].to_numpy().astype(np.int64))


def _look_up_row_ids(table: Table, node_ids: pa.ChunkedArray) -> IntArray:
    distinct_ids = pc.unique(node_ids)
    node_rows = scan(table, ["id"], pc.field("id").isin(distinct_ids), row_ids=True)
    return build_encoder(node_rows["id"], row_id_array(node_rows)).encode(node_ids)


def _orient_edges(edges: _EdgeRows, *, reverse: bool) -> _EdgeRows:
    return _EdgeRows(edges.targets, edges.sources, edges.edge_ids) if reverse else edges


def _patch_lists(
    lists: NeighborLists, removed_edges: _EdgeRows, added_edges: _EdgeRows, highest_row: int
) -> NeighborLists | None:
    widened = _widen_lists(lists, highest_row + 1)
    if lists.edges is not None:
        return _patch_bag(widened, removed_edges, added_edges)
    return _patch_sets(widened, removed_edges, added_edges)


def _widen_lists(lists: NeighborLists, row_count: int) -> NeighborLists:
    """Return the same lists, extended with empty lists up to `row_count` rows."""
    missing_rows = row_count - (len(lists.starts) - 1)
    if missing_rows <= 0:
        return lists
    starts = np.concatenate([lists.starts, np.full(missing_rows, lists.starts[-1], lists.starts.dtype)])
    return NeighborLists(starts, lists.values, lists.edges, lists.repeats)


def _patch_sets(lists: NeighborLists, removed_edges: _EdgeRows, added_edges: _EdgeRows) -> NeighborLists | None:
    """Patch neighbor sets, or return None if they are inconsistent.

    A pair stays in the set as long as at least one edge joins it.
    """
    owners, values, count_changes = _sum_count_changes(removed_edges, added_edges)
    entry_positions, present = _find_entries(lists, owners, values)
    repeats = _RepeatedPairs.from_lists(lists)
    old_counts = np.where(present, 1, 0)
    repeat_positions = repeats.find(owners, values)
    old_counts[repeat_positions >= 0] = repeats.counts[repeat_positions[repeat_positions >= 0]]
    new_counts = old_counts + count_changes
    if (new_counts < 0).any():
        return None
    to_remove, to_insert = present & (new_counts == 0), ~present & (new_counts > 0)
    edited = _edit_lists(lists, (owners, values, None), entry_positions, to_remove, to_insert)
    still_repeated = new_counts > 1
    new_repeats = repeats.without(repeat_positions[repeat_positions >= 0]).plus(
        owners[still_repeated], values[still_repeated], new_counts[still_repeated]
    )
    return NeighborLists(edited.starts, edited.values, repeats=new_repeats.arrays)


def _patch_bag(lists: NeighborLists, removed_edges: _EdgeRows, added_edges: _EdgeRows) -> NeighborLists | None:
    """Patch neighbor bags, in which every edge has its own entry; return None if the bags are inconsistent."""
    removed_entries = _sort_entries(removed_edges)
    entry_positions, present = _find_entries(lists, *removed_entries)
    if not present.all():
        return None
    without_removed = _edit_lists(lists, removed_entries, entry_positions, present, ~present)
    added_entries = _sort_entries(added_edges)
    entry_positions, present = _find_entries(without_removed, *added_entries)
    return None if present.any() else _edit_lists(without_removed, added_entries, entry_positions, present, ~present)


@record
class _RepeatedPairs:
    """The pairs that are joined by several edges, in sorted order, and the number of edges that join each pair."""

    owners: IndexArray
    values: IndexArray
    counts: IndexArray

    @classmethod
    def from_lists(cls, lists: NeighborLists) -> "_RepeatedPairs":
        empty = np.empty(0, np.int32)
        return cls(*(lists.repeats or (empty, empty, empty)))

    @property
    def arrays(self) -> tuple[IndexArray, IndexArray, IndexArray]:
        return (narrow_to_int32(self.owners), narrow_to_int32(self.values), narrow_to_int32(self.counts))

    def find(self, owners: IntArray, values: IntArray) -> IntArray:
        """Return the position of each pair, or -1 if the pair is not present."""
        position_by_pair = {
            owner_value: pair_position
            for pair_position, owner_value in enumerate(zip(self.owners, self.values, strict=True))
        }
        requested = zip(owners, values, strict=True)
        return np.fromiter(
            (position_by_pair.get(requested_pair, -1) for requested_pair in requested), np.int64, len(owners)
        )

    def without(self, positions: IntArray) -> "_RepeatedPairs":
        return _RepeatedPairs(*(np.delete(array, positions) for array in (self.owners, self.values, self.counts)))

    def plus(self, owners: IntArray, values: IntArray, counts: IntArray) -> "_RepeatedPairs":
        existing_arrays = (self.owners, self.values, self.counts)
        merged_arrays = [
            np.concatenate(array_pair) for array_pair in zip(existing_arrays, (owners, values, counts), strict=True)
        ]
        order = np.lexsort((merged_arrays[1], merged_arrays[0]))
        return _RepeatedPairs(*(merged_array[order] for merged_array in merged_arrays))


def _sum_count_changes(removed_edges: _EdgeRows, added_edges: _EdgeRows) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct pairs in ascending order, and the change in the number of edges that join each pair."""
    owners = np.concatenate([removed_edges.sources, added_edges.sources])
    values = np.concatenate([removed_edges.targets, added_edges.targets])
    signs = np.repeat(np.array([-1, 1]), [len(removed_edges.edge_ids), len(added_edges.edge_ids)])
    order = np.lexsort((values, owners))
    owners, values, signs = owners[order], values[order], signs[order]
    group_starts = np.flatnonzero(run_starts(owners) | run_starts(values)) if len(owners) else order
    count_changes = np.add.reduceat(signs, group_starts) if len(group_starts) else signs
    return owners[group_starts], values[group_starts], count_changes


def _sort_entries(edges: _EdgeRows) -> tuple[IntArray, IntArray, IntArray]:
    order = np.lexsort((edges.edge_ids, edges.targets, edges.sources))
    return edges.sources[order], edges.targets[order], edges.edge_ids[order]


def _find_entries(
    lists: NeighborLists, owners: IntArray, values: IntArray, edge_ids: IntArray | None = None
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the position of each entry in the lists, or its insertion point, and whether the entry exists."""
    begins, lengths = lists.bounds(owners)
    low_positions = begins.astype(np.int64)
    high_positions = low_positions + lengths
    present = np.zeros(len(owners), np.bool_)
    while (searching := low_positions < high_positions).any():
        midpoints = np.where(searching, (low_positions + high_positions) >> 1, 0)
        is_less, is_equal = lists.values[midpoints] < values, lists.values[midpoints] == values
        if edge_ids is not None and lists.edges is not None:
            is_less |= is_equal & (lists.edges[midpoints] < edge_ids)
            is_equal &= lists.edges[midpoints] == edge_ids
        present |= searching & is_equal
        low_positions = np.where(searching & is_less, midpoints + 1, low_positions)
        high_positions = np.where(searching & ~is_less, midpoints, high_positions)
    return low_positions, present


def _edit_lists(
    lists: NeighborLists,
    entries: tuple[IntArray, IntArray, IntArray | None],
    entry_positions: IntArray,
    to_remove: IndexArray,
    to_insert: IndexArray,
) -> NeighborLists:
    """Remove some entries from the lists and insert others; all positions must be in ascending order."""
    owners, values, edge_ids = entries
    removed_positions, inserted_positions = entry_positions[to_remove], entry_positions[to_insert]
    inserted_positions = inserted_positions - np.searchsorted(removed_positions, inserted_positions)
    length_changes = np.zeros(len(lists.starts), np.int64)
    np.add.at(length_changes, owners[to_insert] + 1, 1)
    np.subtract.at(length_changes, owners[to_remove] + 1, 1)
    starts = narrow_to_int32(lists.starts + np.cumsum(length_changes))
    new_edges = lists.edges
    if new_edges is not None and edge_ids is not None:
        new_edges = _replace_entries(new_edges, removed_positions, inserted_positions, edge_ids[to_insert])
    return NeighborLists(
        starts, _replace_entries(lists.values, removed_positions, inserted_positions, values[to_insert]), new_edges
    )


def _replace_entries(
    array: IndexArray, removed_positions: IntArray, inserted_positions: IntArray, inserted_values: IntArray
) -> IndexArray:
    value_dtype = array.dtype if not len(inserted_values) or inserted_values.max() < 1 << 31 else np.dtype(np.int64)
    return np.insert(
        np.delete(array, removed_positions).astype(value_dtype, copy=False), inserted_positions, inserted_values
    )
