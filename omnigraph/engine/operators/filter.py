"""Filters: keep the rows for which all predicates are true.

If there are many rows, a predicate on a single variable is evaluated only once per entity.
"""

from collections.abc import Iterable

import numpy as np

from omnigraph.engine.column_size import is_column_limit
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.evaluate import true_mask
from omnigraph.engine.identity_cache import IdentityCache
from omnigraph.errors import ResourceLimitExceeded
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_variables import variables_of
from omnigraph.storage.scan import distinct_row_ids

from .fetch import RowSource, columns_read
from .rows import NULL_ROW, Mask, Rows, VariableBinding

MIN_ENTITY_ROWS = 1_000  # with more rows than this, a predicate on a single variable is evaluated once per entity
_CHUNK_ROWS = 1 << 20  # maximum number of rows whose columns are in memory at the same time
_CHUNK_COLUMN_BYTES = 64 << 20  # approximate maximum size of such a column; time limits are checked between chunks
_columns_of_predicate = IdentityCache(columns_read)


def filter_rows(context: ExecutionContext, rows: Rows, predicates: Iterable[plan.Predicate]) -> Rows:
    """Return the rows for which all predicates are true."""
    for predicate in predicates:
        if rows.count:
            rows = rows.filter(matching_mask(context, rows, predicate))
    return rows


def matching_mask(context: ExecutionContext, rows: Rows, predicate: plan.Predicate) -> Mask:
    """Return a mask of the rows for which a predicate is true."""
    if rows.count <= MIN_ENTITY_ROWS:
        return _evaluate_chunk(context, rows, predicate)
    variables = variables_of(predicate)
    if len(variables) == 1:
        return _mask_by_entity(context, rows[next(iter(variables))], predicate, next(iter(variables)))
    chunk_masks = [
        _evaluate_chunk(
            context, rows.select_variables(variables).slice(chunk_start, chunk_start + _CHUNK_ROWS), predicate
        )
        for chunk_start in range(0, rows.count, _CHUNK_ROWS)
    ]
    return chunk_masks[0] if len(chunk_masks) == 1 else np.concatenate(chunk_masks)


def _evaluate_chunk(context: ExecutionContext, chunk_rows: Rows, predicate: plan.Predicate) -> Mask:
    """Return a mask of the rows for which a predicate is true.

    If a column would be too large, process each half of the rows separately.
    """
    context.meter.check_timeout()
    max_column_bytes = _CHUNK_COLUMN_BYTES if chunk_rows.count > 1 else None
    source = RowSource(context, chunk_rows, max_column_bytes=max_column_bytes)
    try:
        source.prefetch(_columns_of_predicate(predicate))
    except ResourceLimitExceeded as error:
        if chunk_rows.count == 1 or not is_column_limit(error):
            raise
        middle = chunk_rows.count // 2
        halves = chunk_rows.slice(0, middle), chunk_rows.slice(middle, chunk_rows.count)
        return np.concatenate([_evaluate_chunk(context, half, predicate) for half in halves])
    return true_mask(source, predicate)


def _mask_by_entity(
    context: ExecutionContext, binding: VariableBinding, predicate: plan.Predicate, variable: str
) -> Mask:
    if binding.type_indexes is not None:
        return _mask_by_entity_of_mixed_types(context, binding, predicate, variable)
    distinct_ids = np.append(distinct_row_ids(binding.row_ids), NULL_ROW)
    entity_mask = _evaluate_chunk(
        context,
        Rows.from_bindings({variable: VariableBinding(binding.table_keys, distinct_ids, None, binding.paths)}),
        predicate,
    )
    # The mask is indexed by row id. A null variable has index -1 and therefore reads the last entry.
    mask_by_row_id: Mask = np.zeros(int(distinct_ids.max()) + 2, np.bool_)
    mask_by_row_id[distinct_ids] = entity_mask
    return mask_by_row_id[binding.row_ids]


def _mask_by_entity_of_mixed_types(
    context: ExecutionContext, binding: VariableBinding, predicate: plan.Predicate, variable: str
) -> Mask:
    type_indexes = (
        binding.type_indexes if binding.type_indexes is not None else np.zeros(len(binding.row_ids), np.int16)
    )
    entity_numbers = np.where(binding.row_ids < 0, NULL_ROW, binding.row_ids * len(binding.table_keys) + type_indexes)
    _, first_rows, entity_positions = np.unique(entity_numbers, return_index=True, return_inverse=True)
    entity_mask: Mask = _evaluate_chunk(context, Rows.from_bindings({variable: binding.take(first_rows)}), predicate)
    return entity_mask[entity_positions]
