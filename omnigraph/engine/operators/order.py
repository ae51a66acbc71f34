"""Row ordering: sort keys, tie breaking, the default order, and top-k selection.

Sort keys are applied one after another, each only to the rows that are tied on all previous keys. Ids are therefore
read only to break ties. Nulls sort first in ascending order and last in descending order.
"""

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.hot_columns import hot_id_order
from omnigraph.engine.expressions.row_values import evaluate_rows
from omnigraph.engine.expressions.value_codes import Codes, Numbers, dense_ranks, pair_codes
from omnigraph.lang.query import plan

from .rows import IntArray, Rows, VariableBinding

SortKeyFunction = Callable[[IntArray, int | None], Numbers]
"""Maps row positions to numbers that sort like the rows.

With a limit, the numbers need to be exact only for the first `limit` rows.
"""

_SORT_BYTES_PER_ROW = 48  # working memory per sorted row in bytes


def sorted_positions(
    context: ExecutionContext, row_count: int, sort_keys: Sequence[SortKeyFunction], limit: int | None = None
) -> IntArray:
    """Return row positions in sort order; with `limit`, only the first `limit` positions."""
    context.meter.charge_bytes(row_count * _SORT_BYTES_PER_ROW)
    try:
        return _sort_positions(context, row_count, sort_keys, limit)
    finally:
        context.meter.release_bytes(row_count * _SORT_BYTES_PER_ROW)


def _sort_positions(
    context: ExecutionContext, row_count: int, sort_keys: Sequence[SortKeyFunction], limit: int | None
) -> IntArray:
    candidates: IntArray = np.arange(0 if limit == 0 else row_count)
    rank_codes: Codes | None = None
    for sort_key in sort_keys:
        context.meter.check_timeout()
        if len(candidates) < 2:
            break
        if len(sort_keys) == 1 and limit is None:  # no later key can break ties, so ranks are not needed
            return np.argsort(sort_key(candidates, None), kind="stable")
        if rank_codes is None:
            candidates, rank_codes = _keep_first(candidates, sort_key(candidates, limit), limit)
            continue
        tied_mask = _find_ties(rank_codes)
        if not tied_mask.any():
            break
        tie_ranks = np.zeros(len(candidates), np.int64)
        tie_ranks[tied_mask] = dense_ranks(sort_key(candidates[tied_mask], None))
        candidates, rank_codes = _keep_first(candidates, pair_codes(rank_codes, tie_ranks), limit)
    ordered = candidates if rank_codes is None else candidates[np.argsort(rank_codes, kind="stable")]
    return ordered if limit is None else ordered[:limit]


def _keep_first(candidates: IntArray, sort_numbers: Numbers, limit: int | None) -> tuple[IntArray, Codes]:
    """Return the rows that can be among the first `limit` rows, and their rank codes."""
    if limit is not None and limit < len(candidates):
        within_limit = sort_numbers <= np.partition(sort_numbers, limit - 1)[limit - 1]
        candidates, sort_numbers = candidates[within_limit], sort_numbers[within_limit]
    return candidates, dense_ranks(sort_numbers)


def _find_ties(rank_codes: Codes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if len(rank_codes) == 0:
        return np.zeros(0, np.bool_)
    return np.asarray(np.bincount(rank_codes)[rank_codes] > 1)


def sort_by_value(
    context: ExecutionContext, rows: Rows, value: plan.Value, *, descending: bool = False
) -> SortKeyFunction:
    """Return a sort key that evaluates a value for each row."""

    def value_order(positions: IntArray, limit: int | None) -> Numbers:
        selected_rows = rows if len(positions) == rows.count else rows.take(positions)
        return evaluate_rows(context, selected_rows, value).sort_numbers(descending=descending, limit=limit)

    return value_order


def sort_by_id(context: ExecutionContext, rows: Rows, variable: str) -> list[SortKeyFunction]:
    """Return sort keys for the id of a variable. Equal ids of different types are sorted by type name."""
    binding = rows[variable]

    def entity_id_order(positions: IntArray, limit: int | None) -> Numbers:
        takes_all = len(positions) == len(binding.row_ids)
        return id_order(context, binding if takes_all else binding.take(positions), limit)

    def type_name_order(positions: IntArray, limit: int | None) -> Codes:
        type_indexes = binding.type_indexes if binding.type_indexes is not None else np.zeros(0, np.int16)
        type_ranks = np.argsort(np.argsort(np.array(binding.table_keys)))
        return np.asarray(type_ranks[type_indexes[positions]], np.int64)

    return [entity_id_order] if binding.type_indexes is None else [entity_id_order, type_name_order]


def id_order(context: ExecutionContext, binding: VariableBinding, limit: int | None = None) -> Numbers:
    """Return numbers that sort like the ids; paths sort by length, then by the ids of their nodes and edges."""
    if binding.paths is not None:
        from .path_order import path_order

        return path_order(context, binding.paths, binding.row_ids)
    if len(binding.table_keys) == 1 and len(binding.row_ids) > 1:
        id_ranks = hot_id_order(context, binding.table_keys[0], len(binding.row_ids))
        if id_ranks is not None:
            return id_ranks.order_numbers(binding.row_ids)
    rows = Rows.from_bindings({"_": binding})
    return evaluate_rows(context, rows, plan.Entity("_", "")).sort_numbers(limit=limit)


def default_sort_keys(context: ExecutionContext, rows: Rows, variables: Sequence[str]) -> list[SortKeyFunction]:
    """Return the sort keys for the ids of the given variables, in the given order."""
    return [
        sort_key
        for variable in variables
        if not _is_constant(rows[variable])
        for sort_key in sort_by_id(context, rows, variable)
    ]


def _is_constant(binding: VariableBinding) -> bool:
    """Return whether the variable is bound to the same entity in all rows, so that sorting by it has no effect."""
    row_ids = binding.row_ids
    if len(row_ids) < 2 or binding.type_indexes is not None:
        return False
    return bool(row_ids[0] == row_ids[-1]) and bool((row_ids == row_ids[0]).all())


def row_sort_keys(context: ExecutionContext, rows: Rows, read_plan: plan.ReadPlan) -> list[SortKeyFunction]:
    """Return all sort keys for an ungrouped query: its own keys, if any, followed by the ids of all variables."""
    if not read_plan.order:
        return default_sort_keys(context, rows, read_plan.variables)
    sort_keys = [
        sort_by_value(context, rows, ordering.value, descending=ordering.descending) for ordering in read_plan.order
    ]
    return sort_keys + default_sort_keys(context, rows, sorted(read_plan.variables))
