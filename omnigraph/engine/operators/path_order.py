"""The sort order of paths: by length, then by node ids, then by edge ids."""

import numpy as np

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import Codes, dense_ranks, pair_codes
from omnigraph.values.table_key import TableKey

from .order import id_order
from .path_table import PathTable
from .rows import NULL_ROW, IntArray, VariableBinding


def path_order(context: ExecutionContext, paths: PathTable, path_numbers: IntArray) -> Codes:
    """Return numbers that sort like the paths; a null path sorts first."""
    distinct_numbers, occurrences = np.unique(path_numbers, return_inverse=True)
    known = distinct_numbers[distinct_numbers != NULL_ROW]
    ranks = np.full(len(distinct_numbers), -1, np.int64)
    ranks[distinct_numbers != NULL_ROW] = _rank_paths(context, paths, known)
    return ranks[occurrences]


def _rank_paths(context: ExecutionContext, paths: PathTable, path_numbers: IntArray) -> Codes:
    ranks = dense_ranks(paths.lengths[path_numbers])
    max_length = int(paths.lengths[path_numbers].max()) if len(path_numbers) else 0
    for position in range(max_length + 1):
        ranks = _refine_ranks(context, paths, path_numbers, ranks, position, of_nodes=True)
    for position in range(max_length):
        ranks = _refine_ranks(context, paths, path_numbers, ranks, position, of_nodes=False)
    return ranks


def type_name_ranks(table_keys: tuple[TableKey, ...]) -> Codes:
    """Return the rank of the type name of each table, for sorting equal ids of different types."""
    return np.argsort(np.argsort(np.array(table_keys))).astype(np.int64)


def _refine_ranks(
    context: ExecutionContext, paths: PathTable, path_numbers: IntArray, ranks: Codes, position: int, *, of_nodes: bool
) -> Codes:
    """Order paths of equal rank by the ids at one position, and return the new ranks."""
    context.meter.check_timeout()
    is_tied = np.bincount(ranks, minlength=1)[ranks] > 1
    is_tied &= paths.lengths[path_numbers] + of_nodes > position
    if not is_tied.any():
        return ranks
    starts = paths.node_starts if of_nodes else paths.starts
    members = starts[path_numbers[is_tied]] + position
    if of_nodes:
        binding = VariableBinding((paths.node_key,), paths.nodes[members])
    else:
        edge_types = paths.edge_types[members] if len(paths.edge_keys) > 1 else None
        binding = VariableBinding(paths.edge_keys, paths.edges[members], edge_types)
    member_ranks = np.zeros(len(ranks), np.int64)
    member_ranks[is_tied] = dense_ranks(id_order(context, binding))
    if binding.type_indexes is not None:
        type_ranks = type_name_ranks(paths.edge_keys)[binding.type_indexes]
        member_ranks[is_tied] = member_ranks[is_tied] * len(paths.edge_keys) + type_ranks
    return dense_ranks(pair_codes(ranks, member_ranks))
