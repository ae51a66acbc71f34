"""Fetch properties. This is the only module that turns row ids into values.

A variable may be null, may have several types, and may have the same id in many rows. Fetched columns are always
aligned with the rows. Each column is read once per set of rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.column_size import overflow_error
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.hot_columns import hot_columns, take_columns
from omnigraph.errors import InternalError
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.query.plan_variables import operands_of
from omnigraph.storage.scan import align_rows, take_rows
from omnigraph.values.table_key import TableKey

from .rows import NULL_ROW, IntArray, Rows, VariableBinding

VariableColumn = tuple[str, str]  # (variable, name of a column in its table)

SYSTEM_COLUMNS = {"id": "id", "from": "src", "to": "dst"}


def columns_read(*expressions: plan.Value | plan.Predicate | plan.Ranking | None) -> set[VariableColumn]:
    """Return the columns that values, predicates and rankings read.

    >>> from omnigraph.values import PropertyType, ScalarType
    >>> age = plan.PropertyValue("p", "age", PropertyType(ScalarType.I32))
    >>> columns_read(plan.IsNull(age), plan.Entity("q", "Person")) == {("p", "age"), ("q", "id")}
    True
    """
    column_keys: set[VariableColumn] = set()
    for expression in expressions:
        column_keys |= _columns_read_by(expression)
    return column_keys


def _columns_read_by(  # noqa: PLR0911 - one return per kind
    expression: plan.Value | plan.Predicate | plan.Ranking | None,
) -> set[VariableColumn]:
    match expression:
        case plan.PropertyValue():
            return {(expression.variable, expression.name)}
        case plan.SystemValue():
            return {(expression.variable, SYSTEM_COLUMNS[expression.field])}
        case plan.Entity():
            return {(expression.variable, "id")}
        case plan_paths.PathValue():
            return {(expression.variable, expression.function)}
        case plan_paths.PathEntity():
            return {(expression.variable, "length")}
        case plan.TextSearch() | plan.Bm25() | plan.Nearest():
            return _columns_read_by(expression.field)
        case None | plan.OfType():
            return set()
    return columns_read(*operands_of(expression))


@dataclass(slots=True, eq=False)
class RowSource:
    """A column source for a set of rows. Each column is read on first use.

    `max_column_bytes` limits the estimated size of a column in which values repeat.
    """

    context: ExecutionContext
    rows: Rows
    fetched: dict[VariableColumn, pa.Array] = field(default_factory=dict)
    max_column_bytes: int | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.rows.count

    def prefetch(self, columns: Iterable[VariableColumn]) -> "RowSource":
        """Read the given columns with one request per variable."""
        missing_columns: dict[str, list[str]] = {}
        for variable, column_name in sorted(columns):
            if (variable, column_name) not in self.fetched:
                missing_columns.setdefault(variable, []).append(column_name)
        for variable, column_names in missing_columns.items():
            self.fetch(variable, column_names)
        return self

    def fetch(self, variable: str, column_names: Sequence[str]) -> None:
        """Read the given columns of a variable with one request."""
        binding = self.rows.bindings[variable]
        fetched_columns = fetch_columns(self.context, binding, column_names, self.max_column_bytes)
        for column_name, column in zip(column_names, fetched_columns, strict=True):
            self.fetched[variable, column_name] = column

    def column(self, variable: str, column_name: str) -> pa.Array:
        """Return one column of a variable, aligned with the rows."""
        column = self.fetched.get((variable, column_name))
        if column is None:
            self.fetch(variable, [column_name])
            column = self.fetched[variable, column_name]
        return column

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Return a boolean column that is true where the node has the given type."""
        return pa.array(self.rows[variable].is_type(TableKey.node(type_name)))

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        return self.context.constant(value)

    def aggregate(self, value: plan.Aggregate) -> pa.Array:
        """Raise InternalError, because single rows have no aggregates."""
        raise InternalError(reason=f"`{value.function}` cannot be evaluated per row")


def fetch_columns(
    context: ExecutionContext,
    binding: VariableBinding,
    column_names: Sequence[str],
    max_column_bytes: int | None = None,
) -> list[pa.Array]:
    """Return columns of a variable, aligned with the rows. A value is null where the variable is null.

    Raise `ResourceLimitExceeded` if a column is too large.
    """
    context.meter.charge_bytes(len(binding.row_ids) * 16 * len(column_names))
    try:
        if binding.paths is not None:
            from .path_values import path_columns

            return path_columns(context, binding.paths, binding.row_ids, column_names)
        if len(binding.table_keys) == 1:
            return _fetch_from_table(context, binding.table_keys[0], binding.row_ids, column_names, max_column_bytes)
        return _fetch_from_tables(context, binding, column_names)
    except pa.ArrowInvalid as error:
        raise overflow_error(error) from error
    finally:
        context.meter.release_bytes(len(binding.row_ids) * 16 * len(column_names))


def _fetch_from_table(
    context: ExecutionContext,
    table_key: TableKey,
    row_ids: IntArray,
    column_names: Sequence[str],
    max_column_bytes: int | None = None,
) -> list[pa.Array]:
    scanned_rows = context.scanned_rows.get(table_key)
    if scanned_rows is not None and scanned_rows.covers(row_ids, column_names):
        stored_rows = align_rows(scanned_rows.table.select(list(column_names)), scanned_rows.row_ids, row_ids)
        return [stored_rows.column(column_name).combine_chunks() for column_name in column_names]
    cached_columns = hot_columns(context, table_key, column_names, len(row_ids))
    if cached_columns is not None:
        return take_columns(cached_columns, row_ids, max_column_bytes)
    stored_rows = take_rows(context.table(table_key), row_ids, column_names)
    return [stored_rows.column(column_name).combine_chunks() for column_name in column_names]


def _fetch_from_tables(
    context: ExecutionContext, binding: VariableBinding, column_names: Sequence[str]
) -> list[pa.Array]:
    """Fetch rows from several tables, one table at a time, then restore the original row order."""
    type_indexes = (
        binding.type_indexes if binding.type_indexes is not None else np.zeros(len(binding.row_ids), np.int16)
    )
    type_indexes = np.where(binding.row_ids == NULL_ROW, -1, type_indexes)
    table_columns: list[list[pa.Array]] = []
    position_blocks: list[IntArray] = []
    for type_index, table_key in enumerate(binding.table_keys):
        row_positions = np.flatnonzero(type_indexes == type_index)
        if len(row_positions):
            position_blocks.append(row_positions)
            table_columns.append(_fetch_from_table(context, table_key, binding.row_ids[row_positions], column_names))
    if not table_columns:
        return _null_columns(context, binding, column_names)
    stacked_position = np.full(len(binding.row_ids), -1, np.int64)
    stacked_position[np.concatenate(position_blocks)] = np.arange(sum(map(len, position_blocks)))
    take_index = pa.array(stacked_position, mask=stacked_position < 0)
    return [
        pa.concat_arrays([columns_of_table[column_number] for columns_of_table in table_columns]).take(take_index)
        for column_number in range(len(column_names))
    ]


def _null_columns(context: ExecutionContext, binding: VariableBinding, column_names: Sequence[str]) -> list[pa.Array]:
    if not binding.table_keys:  # no type implements the interface
        return [pa.nulls(len(binding.row_ids)) for _ in column_names]
    table_schema = context.table(binding.table_keys[0]).schema
    return [pa.nulls(len(binding.row_ids), table_schema.field(column_name).type) for column_name in column_names]
