"""Path search: join each row with the paths from one of its nodes.

Owns the choice of a search by the path mode and by what is known of the ends, and the rows that result. Paths are
searched once for each distinct start, however many rows have it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.neighbour_lists import expand_ranges
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .cheapest_paths import edge_costs, search_cheapest
from .edge_tests import choose_adjacencies, reverse_steps
from .enumerate_paths import enumerate_paths
from .path_layers import PathLayers, PathTables, all_paths, best_paths
from .path_table import PathBlock, PathTable, build_path_table
from .rows import NULL_ROW, IntArray, Rows, VariableBinding
from .scan import filtered_row_ids
from .shortest_paths import PathSearch, search_both_sides, search_from_start

_MAX_BOTH_SIDES = 4  # up to this many ends are searched from both sides, one after another


@dataclass(frozen=True, slots=True, eq=False)
class _SearchedRows:
    """The rows whose start is a node: their positions, the distinct starts, and each row's start and end.

    `owners` are positions in `starts`. `ends` is None unless every path must end at a node of the row.
    """

    positions: IntArray
    starts: IntArray
    owners: IntArray
    ends: IntArray | None


@dataclass(frozen=True, slots=True, eq=False)
class _FoundPaths:
    """Paths with the position of their start among the distinct starts, the node where the search ended, and cost."""

    blocks: list[PathBlock]
    owners: IntArray
    ends: IntArray
    costs: npt.NDArray[np.float64] | None


def find_paths(context: ExecutionContext, rows: Rows, operator: plan.FindPaths) -> Rows:
    """Return the rows joined with their paths, and with the nodes at which the paths end."""
    node_key = TableKey.node(operator.node_type)
    searched = _searched_rows(rows, operator, node_key)
    found = _search_all(context, operator, searched.starts, _wanted_ends(context, operator, searched))
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


def _wanted_ends(
    context: ExecutionContext, operator: plan.FindPaths, searched: _SearchedRows
) -> Callable[[int], IntArray | None]:
    """Return a function that returns the possible ends of a start's paths, or None if all nodes are possible."""
    if searched.ends is not None:
        owner_order = np.argsort(searched.owners, kind="stable")
        sorted_ends = searched.ends[owner_order]
        owner_stops = np.cumsum(np.bincount(searched.owners, minlength=len(searched.starts)))

        def ends_of_owner(owner: int) -> IntArray:
            first = int(owner_stops[owner - 1]) if owner else 0
            return np.unique(sorted_ends[first : owner_stops[owner]])

        return ends_of_owner
    if not operator.target_filters or len(searched.starts) == 0:
        return lambda _: None
    accepted = filtered_row_ids(context, TableKey.node(operator.node_type), operator.target_filters)
    return lambda _: accepted


def _search_all(
    context: ExecutionContext,
    operator: plan.FindPaths,
    starts: IntArray,
    wanted_by_start: Callable[[int], IntArray | None],
) -> _FoundPaths:
    find = _path_finder(context, operator, len(starts))
    blocks: list[PathBlock] = []
    owners: list[IntArray] = []
    costs: list[npt.NDArray[np.float64]] = []
    for owner, start in enumerate(starts.tolist()):
        context.meter.check_timeout()
        wanted = wanted_by_start(owner)
        if wanted is not None and len(wanted) == 0:
            continue
        for block, block_costs in find(start, wanted):
            if len(block.nodes):
                blocks.append(block)
                owners.append(np.full(len(block.nodes), owner, np.int64))
                costs.append(block_costs)
    no_ids = np.empty(0, np.int64)
    ends = np.concatenate([no_ids, *(block.nodes[:, -1] for block in blocks)])
    all_costs = np.concatenate([np.empty(0), *costs]) if operator.cost is not None else None
    return _FoundPaths(blocks, np.concatenate([no_ids, *owners]), ends, all_costs)


_BlockCosts = Iterator[tuple[PathBlock, npt.NDArray[np.float64]]]


def _path_finder(
    context: ExecutionContext, operator: plan.FindPaths, start_count: int
) -> Callable[[int, IntArray | None], _BlockCosts]:
    """Return the function that finds the paths from one start node."""
    search = _path_search(context, operator, start_count)
    edge_keys = tuple(TableKey.edge(step.edge_type) for step in operator.steps)
    tables = PathTables(TableKey.node(operator.node_type), edge_keys, operator.backward)
    no_costs = np.empty(0)
    if operator.cost is not None:
        read_costs = edge_costs(context, edge_keys, operator.cost)

        def find_cheapest(start: int, wanted: IntArray | None) -> _BlockCosts:
            cheapest = search_cheapest(search, read_costs, start, wanted)
            yield from zip(best_paths(context, tables, cheapest.found), cheapest.end_costs, strict=True)

        return find_cheapest
    if operator.mode not in ("any shortest", "all shortest"):

        def find_every(start: int, wanted: IntArray | None) -> _BlockCosts:
            yield from ((block, no_costs) for block in enumerate_paths(search, operator.mode, start, wanted))

        return find_every
    search_layers = _layer_search(search)

    def find_shortest(start: int, wanted: IntArray | None) -> _BlockCosts:
        for found in search_layers(start, wanted):
            is_single = operator.mode == "any shortest"
            chosen = best_paths(context, tables, found) if is_single else all_paths(context, found)
            yield from ((block, no_costs) for block in chosen)

    return find_shortest


def _path_search(context: ExecutionContext, operator: plan.FindPaths, start_count: int) -> PathSearch:
    def load_backward() -> list[Adjacency]:
        return choose_adjacencies(
            context, reverse_steps(operator.steps), operator.edge_test, start_count, with_edges=True
        )

    forward = choose_adjacencies(context, operator.steps, operator.edge_test, start_count, with_edges=True)
    return PathSearch(context, forward, cache(load_backward), operator.min_hops, operator.max_hops)


def _layer_search(search: PathSearch) -> Callable[[int, IntArray | None], Iterator[PathLayers]]:
    levels, end_levels = search.levels(), search.levels()

    def search_layers(start: int, wanted: IntArray | None) -> Iterator[PathLayers]:
        if wanted is None or len(wanted) > _MAX_BOTH_SIDES:
            yield search_from_start(search, levels, start, wanted)
            return
        for end in wanted.tolist():
            found = search_both_sides(search, levels, end_levels, start, end)
            if found is not None:
                yield found

    return search_layers


def _match_rows(found: _FoundPaths, searched: _SearchedRows) -> tuple[IntArray, IntArray, IntArray]:
    """Return path numbers in an order in which the paths of a row are adjacent, and each row's range in this order."""
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
