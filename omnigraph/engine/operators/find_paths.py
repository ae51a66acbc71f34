"""Search for paths, and join each row with the paths that start at the node bound to its source variable.

This module chooses a search algorithm based on the path mode and on whether the ends are known, and builds the
resulting rows. Each distinct start is searched once, regardless of how many rows share it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.neighbor_lists import expand_ranges
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan, plan_paths
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .breadth_first import row_id_bound
from .cheapest_between import search_cheapest_between
from .cheapest_paths import search_cheapest
from .choose_paths import PathTables, choose_paths
from .edge_costs import EdgeCosts
from .edge_tests import choose_adjacencies, reverse_steps
from .enumerate_paths import enumerate_paths
from .path_layers import PathLayers, all_paths
from .path_search import PathSearch, WantedEnds
from .path_table import PathBlock, PathGroup, PathTable, build_path_table
from .rows import NULL_ROW, IntArray, Rows, VariableBinding
from .scan import filtered_row_ids
from .shortest_between import MeetingLevels, search_shortest_between
from .shortest_paths import search_from_starts

_PathChoice = Callable[[PathLayers], list[PathBlock]]
_MAX_BOTH_SIDES = 4  # from one start to at most four ends, the search runs from both sides, one end at a time
_MAX_PLACES = 1 << 22  # number of (start, node) pairs that are searched at once
_MAX_WANTED_PLACES = 1 << 20
_UNKNOWN_STRIDE = 1 << 62  # without neighbor lists, the highest row id is unknown, so starts are searched individually


@record(eq=False)
class _SearchedRows:
    """The rows that have a start node: the row positions, the distinct start nodes, and the start and end of each row.

    `starts[owners[i]]` is the start node of row i. `ends` is None unless every path must end at a node that its row
    already contains.
    """

    positions: IntArray
    starts: IntArray
    owners: IntArray
    ends: IntArray | None


@record(eq=False)
class _FoundPaths:
    """Paths and, for each path, the index of its start among the distinct starts, its last node, and its cost."""

    groups: list[PathGroup]
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
    """Search from all starts in batches whose (start, node) pairs fit into arrays of a fixed size."""
    accepted = _accepted_ends(context, operator) if len(searched.starts) else None
    search = _path_search(context, operator, searched, accepted)
    find = _path_finder(context, operator, search)
    batch_starts = max(1, _MAX_PLACES // search.stride)
    groups: list[PathGroup] = []
    owners: list[IntArray] = []
    for first in range(0, len(searched.starts), batch_starts):
        context.meter.check_timeout()
        used_bytes = context.meter.used_bytes
        batch = searched.starts[first : first + batch_starts]
        wanted = _wanted_ends(searched, accepted, first, len(batch), search.stride)
        for group in find(batch + np.arange(len(batch)) * search.stride, wanted):
            owners.append(group.ends // search.stride + first)
            groups.append(_with_row_ids(group, search.stride))
            used_bytes += group.nbytes
        context.meter.used_bytes = used_bytes  # from here on, only the paths are in memory
    no_ids = np.empty(0, np.int64)
    ends = np.concatenate([no_ids, *(group.ends for group in groups)])
    costs = [group.costs for group in groups if group.costs is not None]
    all_costs = np.concatenate([np.empty(0), *costs]) if operator.cost is not None else None
    return _FoundPaths(groups, np.concatenate([no_ids, *owners]), ends, all_costs)


def _with_row_ids(group: PathGroup, stride: int) -> PathGroup:
    """Return the same paths with row ids instead of (start, node) pairs."""

    def load_block() -> PathBlock:
        block = group.load_block()
        return replace(block, nodes=block.nodes % stride)

    return replace(group, ends=group.ends % stride, load_block=load_block)


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


def _path_finder(
    context: ExecutionContext, operator: plan.FindPaths, search: PathSearch
) -> Callable[[IntArray, WantedEnds], Iterator[PathGroup]]:
    """Return a function that finds the paths from a batch of starts."""
    edge_keys = tuple(TableKey.edge(step.edge_type) for step in operator.steps)
    tables = PathTables(TableKey.node(operator.node_type), edge_keys, operator.backward, search.stride)
    choose = partial(choose_paths, context, tables)
    if operator.cost is not None:
        return partial(_find_cheapest, search, EdgeCosts(context, edge_keys, operator.cost), choose)
    if operator.mode == "any shortest":
        return partial(_find_shortest, search, choose)
    if operator.mode == "all shortest":
        return partial(_find_all_shortest, search)
    return partial(_find_every, search, operator.mode)


def _find_cheapest(
    search: PathSearch, read_costs: EdgeCosts, choose: _PathChoice, starts: IntArray, wanted: WantedEnds
) -> Iterator[PathGroup]:
    if wanted.places is None or not _is_pair_search(starts, wanted):
        cheapest = search_cheapest(search, read_costs, starts, wanted)
        yield from map(PathGroup.of_block, choose(cheapest.found), cheapest.end_costs)
        return
    for end in wanted.places:
        between = search_cheapest_between(search, read_costs, int(starts[0]), int(end))
        if between is not None:
            yield _group_to_end(between.found, choose, between.end_costs[-1])


def _find_shortest(
    search: PathSearch, choose: _PathChoice, starts: IntArray, wanted: WantedEnds
) -> Iterator[PathGroup]:
    if not _is_pair_search(starts, wanted):
        yield from map(PathGroup.of_block, choose(search_from_starts(search, starts, wanted)))
        return
    for levels in _meeting_levels(search, starts, wanted):

        def load_block(levels: MeetingLevels = levels) -> PathBlock:
            return choose(levels.find_layers(search))[-1]

        yield PathGroup(levels.length, levels.end, load_block)


def _find_all_shortest(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> Iterator[PathGroup]:
    if not _is_pair_search(starts, wanted):
        yield from map(PathGroup.of_block, all_paths(search.context, search_from_starts(search, starts, wanted)))
        return
    for levels in _meeting_levels(search, starts, wanted):
        yield from map(PathGroup.of_block, all_paths(search.context, levels.find_layers(search)))


def _find_every(
    search: PathSearch, mode: plan_paths.PathMode, starts: IntArray, wanted: WantedEnds
) -> Iterator[PathGroup]:
    yield from map(PathGroup.of_block, enumerate_paths(search, mode, starts, wanted))


def _group_to_end(found: PathLayers, choose: _PathChoice, costs: npt.NDArray[np.float64]) -> PathGroup:
    """Return a group with one path, to the only end. The path is chosen lazily, when its nodes or edges are needed."""
    return PathGroup(len(found.layers), found.ends[-1], lambda: choose(found)[-1], costs)


def _path_search(
    context: ExecutionContext, operator: plan.FindPaths, searched: _SearchedRows, accepted: IntArray | None
) -> PathSearch:
    start_count = len(searched.starts)

    def load_adjacencies(backward: bool, with_edges: bool = False) -> list[Adjacency]:
        steps = reverse_steps(operator.steps) if backward else operator.steps
        return choose_adjacencies(context, steps, operator.edge_test, start_count, with_edges=with_edges)

    load_neighbors = cache(load_adjacencies)
    known_ids = [searched.starts, *(ids for ids in (searched.ends, accepted) if ids is not None)]
    row_bound = row_id_bound(load_neighbors(False))
    stride = max(row_bound, *(int(ids.max(initial=0)) + 1 for ids in known_ids)) if row_bound else _UNKNOWN_STRIDE
    load_edges = cache(partial(load_adjacencies, with_edges=True))
    return PathSearch(context, load_edges, load_neighbors, operator.min_hops, operator.max_hops, stride)


def _is_pair_search(starts: IntArray, wanted: WantedEnds) -> bool:
    return wanted.places is not None and len(wanted.places) <= _MAX_BOTH_SIDES and len(starts) == 1


def _meeting_levels(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> Iterator[MeetingLevels]:
    for end in wanted.places if wanted.places is not None else ():
        levels = search_shortest_between(search, int(starts[0]), int(end))
        if levels is not None:
            yield levels


def _match_rows(found: _FoundPaths, searched: _SearchedRows) -> tuple[IntArray, IntArray, IntArray]:
    """Return the path numbers, grouped by start and end, and the position and size of the group for each row."""
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
    groups = [_reversed(group) for group in found.groups] if operator.backward else found.groups
    edge_keys = tuple(TableKey.edge(step.edge_type) for step in operator.steps)
    return build_path_table(node_key, edge_keys, groups, found.costs)


def _reversed(group: PathGroup) -> PathGroup:
    return replace(group, load_block=lambda: group.load_block().reversed())
