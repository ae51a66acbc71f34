"""Grouping: combine rows with equal keys into one row and compute aggregates per group.

Keys are compared by value, and null forms its own group. Without keys, there is exactly one group, even if there are no
rows. Sums do not depend on row order or on whether rows are weighted: integers are summed exactly, and float sums are
rounded only once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions import evaluate
from omnigraph.engine.expressions.row_values import RowValues, count_distinct_entities, entity_values, evaluate_rows
from omnigraph.engine.expressions.value_codes import (
    Codes,
    Numbers,
    dense_codes,
    dense_ranks,
    entity_codes,
    pair_codes,
    value_codes,
)
from omnigraph.engine.identity_cache import IdentityCache
from omnigraph.engine.result_rows import ProjectedRows
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.query.plan_values import result_values
from omnigraph.lang.query.plan_variables import contains_aggregate, contains_collect
from omnigraph.records.frozen import record

from .aggregate import RowGroups, aggregate
from .fetch import RowSource
from .having import having_mask
from .order import SortKeyFunction, default_sort_keys, id_order, sorted_positions
from .path_values import path_column
from .project import cast_to, entity_column, entity_struct_type, projection_shape
from .rows import NULL_ROW, IntArray, Rows


def group_rows(
    context: ExecutionContext, rows: Rows, read_plan: plan.ReadPlan, row_limit: int | None
) -> pa.Table | ProjectedRows:
    """Return the groups as result columns, in the order that the query specifies.

    `row_limit` limits the number of groups.
    """
    if _has_collect(read_plan):
        rows = rows.take(sorted_positions(context, rows.count, default_sort_keys(context, rows, read_plan.variables)))
    key_values = _key_values(read_plan.columns)
    codes, first_rows = group_codes(context, rows, key_values)
    groups = RowGroups(codes, len(first_rows) if key_values else 1)
    grouped_rows = _GroupedRows(context, rows, groups, first_rows, {})
    sort_limit = row_limit if read_plan.having is None else None
    group_order = grouped_rows.ordered_groups(read_plan, key_values, sort_limit)
    if read_plan.having is not None:
        passing_groups = having_mask(grouped_rows.as_source(), read_plan.having)
        group_order = group_order[passing_groups[group_order]][:row_limit]
    shape = projection_shape(context.catalog, read_plan.columns)
    arrays = [
        cast_to(grouped_rows.result_column(column), result_type)
        for column, result_type in zip(read_plan.columns, shape.types, strict=True)
    ]
    # Most queries that count produce a single group, which needs no ordering.
    if groups.group_count == len(group_order) == 1:
        return ProjectedRows(shape.schema, arrays, 1)
    return pa.table(arrays, schema=shape.schema).take(pa.array(group_order))


def _find_key_values(columns: Sequence[plan.PlanColumn]) -> list[plan.Value]:
    return [column.value for column in columns if not contains_aggregate(column.value)]


_key_values = IdentityCache(_find_key_values)


def group_codes(context: ExecutionContext, rows: Rows, keys: Sequence[plan.Value]) -> tuple[Codes, IntArray]:
    """Return a group number per row, and one example row per group."""
    codes = np.zeros(rows.count, np.int64)
    if not keys:
        return codes, codes[:1]
    for key in keys:
        codes = dense_ranks(pair_codes(codes, _codes_for_key(context, rows, key)))
    first_rows = np.zeros(int(codes.max()) + 1 if rows.count else 0, np.int64)
    first_rows[codes] = np.arange(rows.count)
    return codes, first_rows


def _codes_for_key(context: ExecutionContext, rows: Rows, key_value: plan.Value) -> Codes:
    if isinstance(key_value, plan.Entity | plan_paths.PathEntity):
        return entity_codes(rows[key_value.variable])
    if isinstance(key_value, plan.SystemValue) and key_value.field == "id":
        binding = rows[key_value.variable]
        if binding.type_indexes is None:
            return binding.row_ids
    return evaluate_rows(context, rows, key_value).codes()


def _contains_collect(read_plan: plan.ReadPlan) -> bool:
    return any(map(contains_collect, result_values(read_plan)))


_has_collect = IdentityCache(_contains_collect)


@record(eq=False)
class _GroupSource:
    """A column source with one row per group: its keys, taken from one of the rows in the group, and its aggregates."""

    grouped_rows: "_GroupedRows"
    first_rows: RowSource

    @property
    def count(self) -> int:
        """The number of groups."""
        return self.grouped_rows.groups.group_count

    def column(self, variable: str, column_name: str) -> pa.Array:
        """Return one column of a variable."""
        return self.first_rows.column(variable, column_name)

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Return a boolean column that is true where the node has the given type."""
        return self.first_rows.of_type(variable, type_name)

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        return self.first_rows.constant(value)

    def aggregate(self, value: plan.Aggregate) -> pa.Array:
        """Return an aggregate, with one value per group."""
        return self.grouped_rows.group_values(value)


@record(eq=False)
class _GroupedRows:
    """Rows with their group numbers; `first_rows` holds one row per group."""

    context: ExecutionContext
    rows: Rows
    groups: RowGroups
    first_rows: IntArray
    computed: dict[plan.Value, pa.Array]

    def result_column(self, plan_column: plan.PlanColumn) -> pa.Array:
        """Return a result column with one value per group."""
        if isinstance(plan_column.value, plan_paths.PathEntity):
            return path_column(RowSource(self.context, self.rows.take(self.first_rows)), plan_column.value)
        if isinstance(plan_column.value, plan.Entity):
            first_rows = self.rows.take(self.first_rows)
            struct_type = entity_struct_type(self.context.catalog, plan_column.value)
            return entity_column(RowSource(self.context, first_rows), plan_column.value, struct_type)
        return self.group_values(plan_column.value)

    def group_values(self, value: plan.Value) -> pa.Array:
        """Return a key or an aggregate, with one value per group. An entity is represented by its id."""
        column = self.computed.get(value)
        if column is None:
            column = self.computed[value] = self._compute_values(value)
        return column

    def _compute_values(self, value: plan.Value) -> pa.Array:
        if isinstance(value, plan.Aggregate):
            counted_variable = _counted_variable(value)
            if self.groups.group_count == 1 and counted_variable is not None:
                if value.distinct:
                    return pa.array([count_distinct_entities(self.rows, counted_variable)], pa.int64())
                if self.rows.weights is None:
                    return pa.array([np.count_nonzero(self.rows[counted_variable].row_ids != NULL_ROW)], pa.int64())
            argument = self._aggregate_argument(value)
            return aggregate(value, argument, self.groups, self.rows.weights)
        if contains_aggregate(value):
            return evaluate.evaluate_value(self.as_source(), value)
        return evaluate.evaluate_value(self._first_row_source(), value)

    def as_source(self) -> _GroupSource:
        """Return the groups as a column source for expressions over keys and aggregates."""
        return _GroupSource(self, self._first_row_source())

    def _first_row_source(self) -> RowSource:
        return RowSource(self.context, self.rows.take(self.first_rows))

    def _aggregate_argument(self, aggregation: plan.Aggregate) -> RowValues:
        if aggregation.function == "count" and isinstance(aggregation.argument, plan.Entity | plan_paths.PathEntity):
            return entity_values(self.rows, aggregation.argument.variable)
        return evaluate_rows(self.context, self.rows, aggregation.argument)

    def ordered_groups(self, read_plan: plan.ReadPlan, key_values: list[plan.Value], row_limit: int | None) -> IntArray:
        """Return the group numbers in result order."""
        if self.groups.group_count < 2:
            return np.arange(self.groups.group_count)[:row_limit]
        if not read_plan.order:
            return self._first_appearance_order(read_plan.variables)[:row_limit]
        sort_keys = [self._value_sort_key(ordering.value, ordering.descending) for ordering in read_plan.order]
        sort_keys += [self._value_sort_key(key_value, False) for key_value in key_values]
        sort_keys += [self._type_sort_key(key_value) for key_value in key_values if isinstance(key_value, plan.Entity)]
        return sorted_positions(self.context, self.groups.group_count, sort_keys, row_limit)

    def _value_sort_key(self, value: plan.Value, descending: bool) -> SortKeyFunction:
        def sort_key(positions: IntArray, row_limit: int | None) -> Numbers:
            if isinstance(value, plan_paths.PathEntity):
                return id_order(self.context, self.rows[value.variable].take(self.first_rows[positions]))
            sort_values = RowValues(self.group_values(value).take(pa.array(positions)))
            return sort_values.sort_numbers(descending=descending, limit=row_limit)

        return sort_key

    def _type_sort_key(self, entity: plan.Entity) -> SortKeyFunction:
        """Return a sort key that breaks ties by type, because nodes of different types may share an id."""
        type_indexes = self.rows[entity.variable].type_indexes

        def sort_key(positions: IntArray, _: int | None) -> Numbers:
            if type_indexes is None:
                return np.zeros(len(positions), np.int64)
            return type_indexes[self.first_rows[positions]].astype(np.int64)

        return sort_key

    def _first_appearance_order(self, variables: Sequence[str]) -> IntArray:
        """Return the groups ordered by their first row in the default row order."""
        remaining_rows = np.arange(self.rows.count)
        remaining_codes = self.groups.codes
        lowest_by_variable: list[Codes] = []
        for variable in variables:
            binding = self.rows[variable].take(remaining_rows)
            order_ranks = dense_ranks(id_order(self.context, binding))
            if binding.type_indexes is not None:
                order_ranks = order_ranks * len(binding.table_keys) + binding.type_indexes
            lowest_rank = np.full(self.groups.group_count, np.iinfo(np.int64).max)
            np.minimum.at(lowest_rank, remaining_codes, order_ranks)
            lowest_by_variable.append(lowest_rank)
            is_first = order_ranks == lowest_rank[remaining_codes]
            # Continue even if only one candidate row remains in each group, because two groups may still be tied.
            remaining_rows, remaining_codes = remaining_rows[is_first], remaining_codes[is_first]
        return np.asarray(np.lexsort(lowest_by_variable[::-1]), np.int64)


def _counted_variable(aggregation: plan.Aggregate) -> str | None:
    """Return the variable whose entities an aggregate counts, or None if it does not count entities."""
    argument = aggregation.argument
    if aggregation.function == "count" and isinstance(argument, plan.Entity | plan_paths.PathEntity):
        return argument.variable
    return None


def distinct_rows(table: pa.Table) -> IntArray:
    """Return the position of the first occurrence of each distinct row, in ascending order."""
    codes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        codes, _ = dense_codes(pair_codes(codes, value_codes(column.combine_chunks())))
    first_rows = dense_codes(codes)[1]
    return np.sort(first_rows)
