"""Build an edge type's neighbor lists, in both directions, from a single read of its table.

The lists depend only on the versions of the edge table and of both endpoint tables. Edges with a missing endpoint are
counted but not added to the lists.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.records.frozen import record
from omnigraph.storage.scan import row_id_array, scan
from omnigraph.storage.table import Table

from .id_encoder import IdEncoder, build_encoder
from .neighbor_lists import IndexArray, NeighborLists, run_starts

_INT32_LIMIT = 1 << 31
_ENCODE_CHUNK_ROWS = 1 << 17  # number of edges encoded per chunk


@record
class EdgeTables:
    """An edge table and its endpoint tables, each at one version."""

    edge: Table
    source: Table
    target: Table


@record
class Topology:
    """An edge type's neighbor lists, by source and by target.

    `dangling_count` is the number of edges that were omitted because an endpoint is missing. If it is 0, a new node
    cannot change the lists. `unsaved_changes` is the number of edges changed since the lists were last written to disk.
    """

    by_source: NeighborLists
    by_target: NeighborLists
    dangling_count: int = 0
    unsaved_changes: int = 0

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes."""
        return self.by_source.nbytes + self.by_target.nbytes


@record
class EdgeEndpoints:
    """Edges as pairs of endpoint row ids; `edge_ids` holds the row ids of the edges themselves, if requested."""

    sources: IndexArray
    targets: IndexArray
    edge_ids: IndexArray | None
    highest_row_ids: tuple[int, int]
    dangling_count: int = 0


def build_topology(edge_tables: EdgeTables, *, with_edge_ids: bool) -> Topology:
    """Build neighbor sets or, if `with_edge_ids` is true, neighbor bags that also contain edge row ids."""
    endpoints = read_endpoints(edge_tables, with_edge_ids=with_edge_ids)
    forward_pairs = (endpoints.sources, endpoints.targets, endpoints.highest_row_ids[0] + 1)
    backward_pairs = (endpoints.targets, endpoints.sources, endpoints.highest_row_ids[1] + 1)
    with ThreadPoolExecutor(2) as pool:
        if endpoints.edge_ids is not None:
            built_lists = pool.map(
                lambda pairs: build_bags(pairs[0], pairs[1], endpoints.edge_ids, pairs[2]),
                (forward_pairs, backward_pairs),
            )
        else:
            built_lists = pool.map(lambda pairs: build_sets(*pairs), (forward_pairs, backward_pairs))
        source_lists, target_lists = built_lists
    return Topology(source_lists, target_lists, endpoints.dangling_count)


def read_endpoints(edge_tables: EdgeTables, *, with_edge_ids: bool) -> EdgeEndpoints:
    """Read all edges, with their endpoints as row ids."""
    with ThreadPoolExecutor(2) as pool:
        same_table = edge_tables.source.location == edge_tables.target.location
        source_future = pool.submit(read_encoder, edge_tables.source)
        target_future = source_future if same_table else pool.submit(read_encoder, edge_tables.target)
        edge_rows = scan(edge_tables.edge, ["src", "dst"], row_ids=with_edge_ids)
        (source_encoder, highest_source), (target_encoder, highest_target) = (
            source_future.result(),
            target_future.result(),
        )
        encoded_sources = pool.submit(_encode_column, source_encoder, edge_rows["src"], highest_source)
        encoded_targets = pool.submit(_encode_column, target_encoder, edge_rows["dst"], highest_target)
        row_id_pair = encoded_sources.result(), encoded_targets.result()
    edge_ids = narrow_to_int32(row_id_array(edge_rows)) if with_edge_ids else None
    return _drop_dangling(row_id_pair[0], row_id_pair[1], edge_ids, (highest_source, highest_target))


def read_encoder(table: Table) -> tuple[IdEncoder, int]:
    """Return a node table's id encoder and its highest row id (-1 if the table is empty)."""
    id_rows = scan(table, ["id"], row_ids=True)
    row_ids = row_id_array(id_rows)
    return build_encoder(id_rows["id"], row_ids), int(row_ids.max()) if len(row_ids) else -1


def _encode_column(encoder: IdEncoder, column: pa.ChunkedArray, highest_row_id: int) -> IndexArray:
    index_dtype = np.int32 if highest_row_id < _INT32_LIMIT else np.int64
    encoded = np.empty(len(column), index_dtype)
    chunk_start = 0
    for chunk in _column_chunks(column):
        encoded[chunk_start : chunk_start + len(chunk)] = encoder.encode(chunk)
        chunk_start += len(chunk)
    return encoded


def _column_chunks(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield arrays of about `_ENCODE_CHUNK_ROWS` rows by combining the small arrays that scans return."""
    for start in range(0, len(column), _ENCODE_CHUNK_ROWS):
        yield column.slice(start, _ENCODE_CHUNK_ROWS).combine_chunks()


def _drop_dangling(
    sources: IndexArray, targets: IndexArray, edge_ids: IndexArray | None, highest_row_ids: Any
) -> EdgeEndpoints:
    is_dangling = (sources < 0) | (targets < 0)
    dangling_count = int(np.count_nonzero(is_dangling))
    if dangling_count:
        is_attached = ~is_dangling
        sources, targets = sources[is_attached], targets[is_attached]
        edge_ids = edge_ids[is_attached] if edge_ids is not None else None
    return EdgeEndpoints(sources, targets, edge_ids, highest_row_ids, dangling_count)


def build_sets(owners: IndexArray, values: IndexArray, row_count: int) -> NeighborLists:
    """Return lists without duplicates for rows 0 to `row_count - 1`.

    >>> sets = build_sets(np.array([1, 0, 1, 1]), np.array([3, 2, 3, 1]), 2)
    >>> sets.starts.tolist(), sets.values.tolist(), [array.tolist() for array in sets.repeats]
    ([0, 1, 3], [2, 1, 3], [[1], [3], [2]])
    """
    owners, values = sort_pairs(owners, values)
    is_first = run_starts(owners)
    is_first |= run_starts(values)
    if is_first.all():
        return NeighborLists(list_starts(owners, row_count), values)
    first_positions = np.flatnonzero(is_first)
    edge_counts = np.diff(np.append(first_positions, len(owners)))
    owners, values = owners[first_positions], values[first_positions]
    repeated_pairs = np.flatnonzero(edge_counts > 1)
    repeats = (owners[repeated_pairs], values[repeated_pairs], narrow_to_int32(edge_counts[repeated_pairs]))
    return NeighborLists(list_starts(owners, row_count), values, repeats=repeats)


def build_bags(owners: IndexArray, values: IndexArray, edge_ids: IndexArray | None, row_count: int) -> NeighborLists:
    """Return lists with one entry per edge; parallel edges are ordered by edge row id."""
    sort_ids = edge_ids if edge_ids is not None else np.empty(0, np.int64)
    order = np.lexsort((sort_ids, values, owners))
    return NeighborLists(list_starts(owners[order], row_count), values[order], edges=sort_ids[order])


def sort_pairs(owners: IndexArray, values: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Sort pairs as packed 64-bit numbers, which is several times faster than sorting by two keys."""
    if owners.dtype == np.int32 and values.dtype == np.int32:
        packed_pairs = owners.astype(np.int64)
        packed_pairs <<= 32
        packed_pairs |= values
        packed_pairs.sort()
        halves = packed_pairs.view(np.int32)
        return np.ascontiguousarray(halves[1::2]), np.ascontiguousarray(halves[::2])
    order = np.lexsort((values, owners))
    return owners[order], values[order]


def list_starts(owners: IndexArray, row_count: int) -> IndexArray:
    """Return the start of each row's list; pairs must be sorted by row."""
    starts = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=row_count), out=starts[1:])
    return narrow_to_int32(starts)


def narrow_to_int32(values: IndexArray) -> IndexArray:
    """Return the numbers as 32-bit integers if all of them fit, or unchanged otherwise."""
    if values.dtype == np.int32 or (len(values) and int(values.max()) >= _INT32_LIMIT):
        return values
    return values.astype(np.int32)
