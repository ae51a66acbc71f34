"""Scan all nodes of a type, or of every type that implements an interface, and keep those that pass the filters.

Filters that storage can evaluate exactly are pushed down. Other filters are evaluated on columns that the scan reads.
If a query scans twice, the result is the cross product of the existing rows and the nodes of the second scan.
"""

import math
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.execution_context import ExecutionContext, ScannedRows
from omnigraph.engine.expressions.compare import normalize_comparison
from omnigraph.engine.expressions.evaluate import TableSource, true_mask
from omnigraph.engine.expressions.hot_columns import HotColumn, hot_columns, hot_id_order, hot_rows
from omnigraph.engine.physical_operators import KeyScan
from omnigraph.errors import InputError
from omnigraph.lang.query import plan
from omnigraph.storage import scan as storage
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, ScalarType, entity_id
from omnigraph.values.table_key import TableKey

from .fetch import columns_read
from .filter import filter_rows
from .pushdown import to_storage_filter
from .rows import IntArray, Mask, Rows, VariableBinding, concat_bindings

if TYPE_CHECKING:
    from omnigraph.engine.search.fulltext_scan import TextLookup

SCAN_COST_RATIO = 160  # loading a single row by its id costs about as much as scanning 160 rows


def node_scan(context: ExecutionContext, rows: Rows, scan: plan.NodeScan) -> Rows:
    """Combine every row with every node that the scan returns."""
    return cross_join(context, rows, scan.variable, scan_nodes(context, scan))


def scan_nodes(context: ExecutionContext, scan: plan.NodeScan) -> VariableBinding:
    """Return the nodes that a scan finds, each exactly once."""
    table_keys = [TableKey.node(type_name) for type_name in scan.implementers or (scan.type_name,)]
    if scan.implementers == () and context.catalog.node(scan.type_name) is None:
        return VariableBinding((), np.empty(0, np.int64))  # no type implements the interface
    bindings = [
        VariableBinding((table_key,), filtered_row_ids(context, table_key, scan.filters)) for table_key in table_keys
    ]
    return bindings[0] if len(bindings) == 1 else concat_bindings(bindings)


def cross_join(context: ExecutionContext, rows: Rows, variable: str, binding: VariableBinding) -> Rows:
    """Return the cross product of the rows and the entities in a binding."""
    entity_count = len(binding.row_ids)
    if rows.count == 1 and rows.weights is None and not rows.bindings:
        return Rows(entity_count, {variable: binding})
    context.meter.charge_bytes(rows.count * entity_count * (rows.bytes_per_row + 24))
    positions = np.repeat(np.arange(rows.count), entity_count)
    row_ids = np.tile(binding.row_ids, rows.count)
    type_indexes = np.tile(binding.type_indexes, rows.count) if binding.type_indexes is not None else None
    return rows.take_with(positions, {variable: VariableBinding(binding.table_keys, row_ids, type_indexes)})


def filtered_row_ids(context: ExecutionContext, table_key: TableKey, filters: tuple[plan.Predicate, ...]) -> IntArray:
    """Return the row ids of the rows that pass all filters, in ascending order."""
    context.meter.check_timeout()
    text_matches = _scan_text_index(context, table_key, filters)
    if text_matches is not None:
        return text_matches
    cached_matches = _scan_cached_columns(context, table_key, filters)
    if cached_matches is not None:
        return cached_matches
    table = context.table(table_key)
    storage_filter, remaining_filters = split_filters(context, table_key, filters)
    filter_columns = sorted({column_name for _, column_name in columns_read(*remaining_filters)})
    context.meter.charge_bytes(context.row_count(table_key) * 8 * (1 + 2 * len(filter_columns)))
    scanned = storage.scan(table, filter_columns, storage_filter, row_ids=True)
    matching_ids = storage.row_id_array(scanned)
    if remaining_filters:
        source = TableSource(scanned, context.params)
        matching_ids = matching_ids[
            np.logical_and.reduce([true_mask(source, predicate) for predicate in remaining_filters])
        ]
    return matching_ids if _is_ascending(matching_ids) else np.sort(matching_ids)


def split_filters(
    context: ExecutionContext, table_key: TableKey, filters: tuple[plan.Predicate, ...]
) -> tuple[Any | None, tuple[plan.Predicate, ...]]:
    """Return the filter to push down to storage (None if there is none), and the remaining predicates."""
    schema = context.table(table_key).schema
    pushed_pairs = [(predicate, to_storage_filter(schema, predicate, context.constant)) for predicate in filters]
    expressions = [expression for _, expression in pushed_pairs if expression is not None]
    remaining_filters = tuple(predicate for predicate, expression in pushed_pairs if expression is None)
    return (reduce(and_, expressions) if expressions else None), remaining_filters


def plan_text_lookup(
    context: ExecutionContext, table_key: TableKey, filters: tuple[plan.Predicate, ...]
) -> "TextLookup | None":
    """Return the full-text index lookup that proposes the rows for a scan, or None if no index is used."""
    if not any(isinstance(predicate, plan.TextSearch) for predicate in filters):
        return None
    from omnigraph.engine.search.fulltext_scan import plan_lookup

    storage_filter, _ = split_filters(context, table_key, filters)
    return plan_lookup(context, table_key, filters, has_storage_filter=storage_filter is not None)


def _scan_text_index(
    context: ExecutionContext, table_key: TableKey, filters: tuple[plan.Predicate, ...]
) -> IntArray | None:
    text_lookup = plan_text_lookup(context, table_key, filters)
    if text_lookup is None:
        return None
    from omnigraph.engine.search.fulltext_scan import find_matching_rows

    return find_matching_rows(context, table_key, filters, text_lookup)


def key_scan(context: ExecutionContext, rows: Rows, scan: KeyScan) -> Rows:
    """Look up a node by its id, which is computed from the complete key."""
    table_key = TableKey.node(scan.scan.type_name)
    entity = key_scan_id(context, scan)
    id_ranks = hot_id_order(context, table_key, 1) if entity is not None else None
    if id_ranks is not None and entity is not None:
        return _scan_cached_id(context, rows, scan, id_ranks.find_row(entity))
    row_ids = np.empty(0, np.int64)
    if entity is not None:
        id_filter = pc.field("id") == entity
        found_rows = storage.scan(context.table(table_key), scan.prefetch_columns, id_filter, row_ids=True)
        row_ids = storage.row_id_array(found_rows)
        context.scanned_rows[table_key] = ScannedRows(row_ids, found_rows)
        source = TableSource(found_rows, context.params)
        for predicate in scan.remaining_filters:
            if len(row_ids):
                row_ids = row_ids[true_mask(source, predicate)]
    return cross_join(context, rows, scan.scan.variable, VariableBinding((table_key,), row_ids))


def _scan_cached_id(context: ExecutionContext, rows: Rows, scan: KeyScan, row_id: int | None) -> Rows:
    variable = scan.scan.variable
    row_ids = np.array([] if row_id is None else [row_id], np.int64)
    binding = VariableBinding((TableKey.node(scan.scan.type_name),), row_ids)
    if scan.remaining_filters and row_id is not None:
        binding = filter_rows(context, Rows(1, {variable: binding}), scan.remaining_filters)[variable]
    return cross_join(context, rows, variable, binding)


def _scan_cached_columns(
    context: ExecutionContext, table_key: TableKey, filters: tuple[plan.Predicate, ...]
) -> IntArray | None:
    """Return the row ids of the rows that pass all filters in cached columns, or None if a column is not cached."""
    row_ids = hot_rows(context, table_key)
    column_names = sorted({column_name for _, column_name in columns_read(*filters)})
    if row_ids is None or (filters and not column_names):
        return row_ids if not filters else None
    cached_columns = (
        hot_columns(context, table_key, column_names, context.row_count(table_key) // SCAN_COST_RATIO)
        if column_names
        else []
    )
    if cached_columns is None:
        return None
    column_by_name = dict(zip(column_names, cached_columns, strict=True))
    for predicate in filters:
        row_ids = row_ids[_test_cached_columns(context, predicate, column_by_name, row_ids)]
    return row_ids


def _test_cached_columns(
    context: ExecutionContext, predicate: plan.Predicate, column_by_name: dict[str, HotColumn], row_ids: IntArray
) -> Mask:
    column_names = sorted({column_name for _, column_name in columns_read(predicate)})
    first_column = column_by_name[column_names[0]] if column_names else None
    if first_column is not None and len(column_names) == 1 and first_column.codes is not None:
        # Test each distinct value only once.
        source = TableSource(pa.table({column_names[0]: first_column.values}), context.params)
        return true_mask(source, predicate)[first_column.value_positions(row_ids)]
    table = pa.table({column_name: column_by_name[column_name].take(row_ids) for column_name in column_names})
    return true_mask(TableSource(table, context.params), predicate)


def key_scan_id(context: ExecutionContext, scan: KeyScan) -> str | None:
    """Return the id formed by the key members, or None if no node can have this key."""
    if len(scan.key_members) == 1:
        _, member_type, value = scan.key_members[0]
        constant = context.constant(value)
        if type(constant) is str and member_type.scalar is ScalarType.STRING and not member_type.is_list:
            return constant or None  # the id equals the value of a key with a single member
    key_values = [_as_key_value(member_type, context.constant(value)) for _, member_type, value in scan.key_members]
    if None in key_values:
        return None
    try:
        return entity_id([member_type for _, member_type, _ in scan.key_members], key_values)
    except InputError:
        return None


def _as_key_value(member_type: PropertyType, value: Any) -> Any:
    """Convert a value to the stored form of a key member, or return None if the type cannot represent it exactly."""
    if isinstance(value, float) and math.isnan(value):
        return None
    exact_test = normalize_comparison(arrow_type(member_type), "=", value) if value is not None else "never"
    return None if isinstance(exact_test, str) else exact_test.constant


def _is_ascending(row_ids: IntArray) -> bool:
    return bool((row_ids[1:] > row_ids[:-1]).all())
