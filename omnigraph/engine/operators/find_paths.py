"""Path search: join each row with the paths that start at one of its nodes.

This module chooses a search algorithm based on the path mode and on what is known about the ends, and builds the
resulting rows. Each distinct start is searched once, regardless of how many rows share it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.neighbour_lists import expand_ranges
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .breadth_first import row_id_bound
from .cheapest_between import search_cheapest_between
from .cheapest_paths import CheapestPaths, search_cheapest
from .edge_costs import EdgeCosts
from .edge_tests import choose_adjacencies, reverse_steps
from .enumerate_paths import enumerate_paths
from .path_layers import PathLayers, PathTables, all_paths, best_paths
from .path_search import PathSearch, WantedEnds
from .path_table import PathBlock, PathTable, build_path_table
from .rows import NULL_ROW, IntArray, Rows, VariableBinding
from .scan import filtered_row_ids
from .shortest_paths import search_both_sides, search_from_starts

_MAX_BOTH_SIDES = 4  # maximum number of ends per start for which the bidirectional search is used, one end at a time
_MAX_PLACES = 1 << 22  # number of (start, node) pairs per batch
_MAX_WANTED_PLACES = 1 << 20
_UNKNOWN_STRIDE = 1 << 62  # without neighbour lists, the highest row id is unknown, so starts are searched individually


@record(eq=False)
class _SearchedRows:
    """The rows that have a start node: their positions, the distinct start nodes, and the start and end of each row.

    `starts[owners[i]]` is the start node of row i. `ends` is None unless every path must end at a node that its row
    already contains.
    """

    positions: IntArray
    starts: IntArray
    owners: IntArray
    ends: IntArray | None


@record(eq=False)
class _FoundPaths:
    """Paths and, for each path, the index of its start in the distinct starts, its last node, and its cost."""

    blocks: list[PathBlock]
    owners: IntArray
    ends: IntArray
    costs: npt.NDArray[np.float64] | None


def find_paths(context: ExecutionContext, rows: Rows, operator: plan.FindPaths) -> Rows:
    """Join the rows with their paths and with the nodes at which the paths end."""
    node_key = TableKey.node(operator.node_type)
    searched = _searched_rows(rows, operator, node_key)
    found = _search_all(context, operator, searched)
    path_order, first, counts = _match_rows(found, searched)
    context.meter.charge_bytes(int(counts.sum()) * (rows.bytes_per_row + 16))
    positions = np.repeat(searched.positions, counts)
    path_numbers = path_order[expand_ranges(first, counts)]
    bindings = {operator.path: VariableBinding((), path_numbers, None, _path_table(operator, node_key, found))}
    if operator.target is not None:
        bindings[operator.target] = VariableBinding((node_key,), found.ends[path_numbers])
    return rows.take_with(positions, bindings)


def _searched_rows(rows: Rows, operator: plan.FindPaths, node_key: TableKey) -> _SearchedRows:
    row_starts = _row_ids_of_type(rows[operator.source], node_key)
    row_ends = _row_ids_of_type(rows[operator.closing], node_key) if operator.closing is not None else row_starts
    positions = np.flatnonzero((row_starts >= 0) & (row_ends >= 0))
    starts, owners = np.unique(row_starts[positions], return_inverse=True)
    return _SearchedRows(positions, starts, owners, row_ends[positions] if operator.closing is not None else None)


def _row_ids_of_type(binding: VariableBinding, node_key: TableKey) -> IntArray:
    if binding.table_keys == (node_key,):
        return binding.row_ids
    return np.where(binding.is_type(node_key), binding.row_ids, NULL_ROW)


def _search_all(context: ExecutionContext, operator: plan.FindPaths, searched: _SearchedRows) -> _FoundPaths:
    """Search from all starts in batches; the (start, node) pairs in a batch fit into arrays of a fixed size."""
    accepted = _accepted_ends(context, operator) if len(searched.starts) else None
    search = _path_search(context, operator, searched, accepted)
    find = _path_finder(context, operator, search)
    batch_starts = max(1, _MAX_PLACES // search.stride)
    blocks: list[PathBlock] = []
    owners: list[IntArray] = []
    costs: list[npt.NDArray[np.float64]] = []
    for first in range(0, len(searched.starts), batch_starts):
        context.meter.check_timeout()
        used_bytes = context.meter.used_bytes
        batch = searched.starts[first : first + batch_starts]
        wanted = _wanted_ends(searched, accepted, first, len(batch), search.stride)
        for block, block_costs in find(batch + np.arange(len(batch)) * search.stride, wanted):
            owners.append(block.nodes[:, 0] // search.stride + first)
            blocks.append(replace(block, nodes=block.nodes % search.stride))
            costs.append(block_costs)
            used_bytes += block.nbytes
        context.meter.used_bytes = used_bytes  # drop everything except the paths
    no_ids = np.empty(0, np.int64)
    ends = np.concatenate([no_ids, *(block.nodes[:, -1] for block in blocks)])
    all_costs = np.concatenate([np.empty(0), *costs]) if operator.cost is not None else None
    return _FoundPaths(blocks, np.concatenate([no_ids, *owners]), ends, all_costs)


def _accepted_ends(context: ExecutionContext, operator: plan.FindPaths) -> IntArray | None:
    """Return the nodes that pass the filters on the end of a path, or None if there are no filters."""
    if not operator.target_filters:
        return None
    return filtered_row_ids(context, TableKey.node(operator.node_type), operator.target_filters)


def _wanted_ends(
    searched: _SearchedRows, accepted: IntArray | None, first: int, start_count: int, stride: int
) -> WantedEnds:
    """Return the allowed ends for the paths from a batch of starts."""
    if searched.ends is not None:
        in_batch = (searched.owners >= first) & (searched.owners < first + start_count)
        places = (searched.owners[in_batch] - first) * stride + searched.ends[in_batch]
        return WantedEnds(places=np.unique(places))
    if accepted is None:
        return WantedEnds()
    if len(accepted) * start_count > _MAX_WANTED_PLACES:
        return WantedEnds(nodes=accepted)
    return WantedEnds(places=(np.arange(start_count)[:, None] * stride + accepted).ravel())


_BlockCosts = Iterator[tuple[PathBlock, npt.NDArray[np.float64]]]


def _path_finder(
    context: ExecutionContext, operator: plan.FindPaths, search: PathSearch
) -> Callable[[IntArray, WantedEnds], _BlockCosts]:
    """Return a function that finds the paths from a batch of starts."""
    edge_keys = tuple(TableKey.edge(step.edge_type) for step in operator.steps)
    tables = PathTables(TableKey.node(operator.node_type), edge_keys, operator.backward, search.stride)
    no_costs = np.empty(0)
    if operator.cost is not None:
        read_costs = EdgeCosts(context, edge_keys, operator.cost)

        def find_cheapest(starts: IntArray, wanted: WantedEnds) -> _BlockCosts:
            for cheapest in _cheapest_layers(search, read_costs, starts, wanted):
                yield from zip(best_paths(context, tables, cheapest.found), cheapest.end_costs, strict=True)

        return find_cheapest
    if operator.mode not in ("any shortest", "all shortest"):

        def find_every(starts: IntArray, wanted: WantedEnds) -> _BlockCosts:
            yield from ((block, no_costs) for block in enumerate_paths(search, operator.mode, starts, wanted))

        return find_every

    def find_shortest(starts: IntArray, wanted: WantedEnds) -> _BlockCosts:
        for found in _shortest_layers(search, starts, wanted):
            is_single = operator.mode == "any shortest"
            chosen = best_paths(context, tables, found) if is_single else all_paths(context, found)
            yield from ((block, no_costs) for block in chosen)

    return find_shortest


def _path_search(
    context: ExecutionContext, operator: plan.FindPaths, searched: _SearchedRows, accepted: IntArray | None
) -> PathSearch:
    start_count = len(searched.starts)

    def load_adjacencies(backward: bool, with_edges: bool = False) -> list[Adjacency]:
        steps = reverse_steps(operator.steps) if backward else operator.steps
        return choose_adjacencies(context, steps, operator.edge_test, start_count, with_edges=with_edges)

    forward = load_adjacencies(False, with_edges=True)
    load_backward = cache(partial(load_adjacencies, True, with_edges=True))
    known_ids = [searched.starts, *(ids for ids in (searched.ends, accepted) if ids is not None)]
    row_bound = row_id_bound(forward)
    stride = max(row_bound, *(int(ids.max(initial=0)) + 1 for ids in known_ids)) if row_bound else _UNKNOWN_STRIDE
    return PathSearch(
        context, forward, load_backward, cache(load_adjacencies), operator.min_hops, operator.max_hops, stride
    )


def _is_pair_search(starts: IntArray, wanted: WantedEnds) -> bool:
    return wanted.places is not None and len(wanted.places) <= _MAX_BOTH_SIDES and len(starts) == 1


def _cheapest_layers(
    search: PathSearch, read_costs: EdgeCosts, starts: IntArray, wanted: WantedEnds
) -> Iterator[CheapestPaths]:
    if wanted.places is None or not _is_pair_search(starts, wanted):
        yield search_cheapest(search, read_costs, starts, wanted)
        return
    for end in wanted.places.tolist():
        cheapest = search_cheapest_between(search, read_costs, int(starts[0]), end)
        if cheapest is not None:
            yield cheapest


def _shortest_layers(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> Iterator[PathLayers]:
    if wanted.places is None or not _is_pair_search(starts, wanted):
        yield search_from_starts(search, starts, wanted)
        return
    from_start, from_end = (search.levels(search.place_count(starts)) for _ in range(2))
    for end in wanted.places.tolist():
        found = search_both_sides(search, from_start, from_end, int(starts[0]), end)
        if found is not None:
            yield found


def _match_rows(found: _FoundPaths, searched: _SearchedRows) -> tuple[IntArray, IntArray, IntArray]:
    """Return path numbers ordered so that each row's paths are adjacent, and each row's range in that order."""
    if searched.ends is None:
        path_order = np.argsort(found.owners, kind="stable")
        path_keys, row_keys = found.owners[path_order], searched.owners
    else:
        path_order = np.lexsort((found.ends, found.owners))
        ends, end_codes = np.unique(np.concatenate([found.ends, searched.ends]), return_inverse=True)
        path_keys = (found.owners * len(ends) + end_codes[: len(found.ends)])[path_order]
        row_keys = searched.owners * len(ends) + end_codes[len(found.ends) :]
    first = np.searchsorted(path_keys, row_keys, side="left")
    return path_order, first, np.searchsorted(path_keys, row_keys, side="right") - first


def _path_table(operator: plan.FindPaths, node_key: TableKey, found: _FoundPaths) -> PathTable:
    blocks = [block.reversed() for block in found.blocks] if operator.backward else found.blocks
    edge_keys = tuple(TableKey.edge(step.edge_type) for step in operator.steps)
    return replace(build_path_table(node_key, edge_keys, blocks), costs=found.costs)
