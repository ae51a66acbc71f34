"""Evaluate plan values and predicates over Arrow columns, using three-valued logic.

The caller supplies the columns, which belong either to the rows of a query or to the pending rows of a mutation. A
predicate evaluates to true, false or null (unknown). Filters keep only the rows where the predicate is true.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.operators.fetch import SYSTEM_COLUMNS
from omnigraph.errors import InternalError
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.query.plan_variables import contains_aggregate, variables_of
from omnigraph.storage.arrow import arrow_type

from .compare import compare_columns, compare_constant, normalize_comparison, swap_operator


class ColumnSource(Protocol):
    """A source of parameter values and of columns of equal length, which are addressed by variable and column name."""

    @property
    def count(self) -> int:
        """The number of rows."""
        ...

    def column(self, variable: str, column_name: str) -> pa.Array:
        """Return one column of a variable."""
        ...

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Return a boolean column that is true where the node has the given type."""
        ...

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        ...

    def aggregate(self, value: plan.Aggregate) -> pa.Array:
        """Return the value of an aggregate for every row. Each row must represent a group."""
        ...


class TableSource:
    """The columns of a single variable, taken from pending rows or from a scan result."""

    def __init__(self, table: pa.Table, params: Any) -> None:
        self.table = table
        self.params = params

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def column(self, variable: str, column_name: str) -> pa.Array:
        """Return one column of the table."""
        return self.table.column(column_name).combine_chunks()

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Raise InternalError, because a table contains a single type and the caller has already checked it."""
        raise InternalError(reason="type tests cannot be evaluated for the rows of a single table")

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant, a parameter or a constant expression."""
        return resolve_constant(value, self.params)

    def aggregate(self, value: plan.Aggregate) -> pa.Array:
        """Raise InternalError, because rows of a table are not groups."""
        raise InternalError(reason="aggregates cannot be evaluated for the rows of a single table")


def resolve_constant(value: plan.Value, params: Mapping[str, Any]) -> Any:
    """Return the stored form of a constant, a parameter or a constant expression."""
    if isinstance(value, plan.Constant):
        return value.value
    if isinstance(value, plan.Parameter):
        return params[value.name]
    if not is_constant(value):
        raise InternalError(reason=f"{type(value).__name__} is not constant")
    column = evaluate_value(TableSource(pa.table({"_": pa.nulls(1)}), params), value)
    if pa.types.is_temporal(column.type):  # stored as days or milliseconds
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return column[0].as_py()


def is_constant(value: plan.Value) -> bool:
    """Return whether a value is the same in every row and can therefore be resolved before any row is read."""
    if isinstance(value, plan.Arithmetic | plan.Negative | plan.ScalarCall | plan.Case):
        return not variables_of(value) and not contains_aggregate(value)
    return isinstance(value, plan.Constant | plan.Parameter)


def evaluate_value(source: ColumnSource, value: plan.Value) -> pa.Array:  # noqa: PLR0911 - one return per kind
    """Evaluate a plan value for every row."""
    match value:
        case plan.PropertyValue():
            return source.column(value.variable, value.name)
        case plan.SystemValue():
            return source.column(value.variable, SYSTEM_COLUMNS[value.field])
        case plan.Entity():
            return source.column(value.variable, "id")
        case plan_paths.PathValue():
            return source.column(value.variable, value.function)
        case plan_paths.PathEntity():
            return source.column(value.variable, "length")
        case plan.Constant() | plan.Parameter():
            return repeat_value(source.constant(value), arrow_type(value.type), source.count)
        case plan.Arithmetic() | plan.Negative() | plan.ScalarCall() | plan.Case():
            # Imported here to avoid a circular import: `scalars` evaluates operands with this function.
            from .scalars import evaluate_scalar

            return evaluate_scalar(source, value)
        case plan.Aggregate():
            return source.aggregate(value)
    raise InternalError(reason=f"{type(value).__name__} cannot be evaluated per row")


def repeat_value(value: Any, data_type: pa.DataType, row_count: int) -> pa.Array:
    """Return a column that repeats one value `row_count` times."""
    if value is None or row_count == 0:  # Arrow cannot repeat a list zero times
        return pa.nulls(row_count, data_type)
    return pa.repeat(pa.scalar(value, data_type), row_count)


def true_mask(source: ColumnSource, predicate: plan.Predicate) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask that is True only where a predicate is true, and False where it is false or unknown."""
    truth_column = evaluate_predicate(source, predicate)
    if truth_column.null_count:
        truth_column = truth_column.fill_null(False)
    is_true: np.ndarray[Any, np.dtype[np.bool_]] = truth_column.to_numpy(zero_copy_only=False)
    return is_true


def evaluate_predicate(source: ColumnSource, predicate: plan.Predicate) -> pa.Array:  # noqa: PLR0911, C901 - one each
    """Evaluate a predicate for every row; the result is true, false, or null (unknown)."""
    match predicate:
        case plan.Compare():
            return _evaluate_comparison(source, predicate)
        case plan.TextTest():
            return _evaluate_text_test(source, predicate)
        case plan.InList():
            return is_member(evaluate_value(source, predicate.operand), source.constant(predicate.items))
        case plan.IsNull():
            operand = evaluate_value(source, predicate.operand)
            return pc.is_valid(operand) if predicate.negated else pc.is_null(operand)
        case plan.OfType():
            return source.of_type(predicate.variable, predicate.type_name)
        case plan.TextSearch():
            return _evaluate_text_search(source, predicate)
        case plan.Truth():
            return evaluate_value(source, predicate.value)
        case plan.And():
            return reduce(pc.and_kleene, (evaluate_predicate(source, item) for item in predicate.items))
        case plan.Or():
            return reduce(pc.or_kleene, (evaluate_predicate(source, item) for item in predicate.items))
        case plan.Not():
            return pc.invert(evaluate_predicate(source, predicate.item))


def _evaluate_comparison(source: ColumnSource, comparison: plan.Compare) -> pa.Array:
    left, right = comparison.left, comparison.right
    if is_constant(right):
        return compare_constant(evaluate_value(source, left), comparison.operator, source.constant(right))
    if is_constant(left):
        swapped_operator = swap_operator(comparison.operator)
        return compare_constant(evaluate_value(source, right), swapped_operator, source.constant(left))
    return compare_columns(evaluate_value(source, left), comparison.operator, evaluate_value(source, right))


def is_member(operand: pa.Array, items: Any) -> pa.Array:
    """Return whether each value is one of the constants, or null where the value is null."""
    if items is None:
        return pa.nulls(len(operand), pa.bool_())
    comparisons = [normalize_comparison(operand.type, "=", item) for item in items]
    representable = [item.constant for item in comparisons if not isinstance(item, str)]
    membership = pc.is_in(operand, value_set=pa.array(representable, operand.type))
    if pa.types.is_floating(operand.type) and 0 in representable:
        membership = pc.or_(membership, pc.equal(operand, 0.0).fill_null(False))  # 0.0 equals -0.0
    return membership if operand.null_count == 0 else pc.if_else(operand.is_valid(), membership, None)


def _evaluate_text_test(source: ColumnSource, text_test: plan.TextTest) -> pa.Array:
    if text_test.operator == "list_contains":
        return _evaluate_list_contains(source, text_test)
    if not is_constant(text_test.right):
        return _evaluate_text_by_row(source, text_test)
    needle = source.constant(text_test.right)
    haystack = evaluate_value(source, text_test.left)
    if needle is None:
        return pa.nulls(len(haystack), pa.bool_())
    match_function = pc.starts_with if text_test.operator == "starts_with" else pc.match_substring
    return match_function(haystack, pattern=needle)


def _evaluate_text_by_row(source: ColumnSource, text_test: plan.TextTest) -> pa.Array:
    """Evaluate a text predicate whose right-hand side differs from row to row."""
    is_prefix_test = text_test.operator == "starts_with"
    row_pairs = zip(
        evaluate_value(source, text_test.left).to_pylist(),
        evaluate_value(source, text_test.right).to_pylist(),
        strict=True,
    )
    matches = [
        None
        if haystack is None or needle is None
        else haystack.startswith(needle)
        if is_prefix_test
        else needle in haystack
        for haystack, needle in row_pairs
    ]
    return pa.array(matches, pa.bool_())


def _evaluate_list_contains(source: ColumnSource, text_test: plan.TextTest) -> pa.Array:
    if is_constant(text_test.left):
        return is_member(evaluate_value(source, text_test.right), source.constant(text_test.left))
    lists = evaluate_value(source, text_test.left)
    items, owner_rows = lists.flatten(), pc.list_parent_indices(lists)
    if is_constant(text_test.right):
        wanted_item = source.constant(text_test.right)
        item_matches = compare_constant(items, "=", wanted_item)
        is_unknown = pa.repeat(wanted_item is None, len(lists))
    else:
        wanted_items = evaluate_value(source, text_test.right)
        item_matches = compare_columns(items, "=", wanted_items.take(owner_rows))
        is_unknown = pc.is_null(wanted_items)
    contains_item = np.zeros(len(lists), np.bool_)
    contains_item[owner_rows.filter(item_matches.fill_null(False)).to_numpy(zero_copy_only=False)] = True
    is_unknown = pc.or_(is_unknown, pc.is_null(lists))
    return pc.if_else(is_unknown, pa.scalar(None, pa.bool_()), pa.array(contains_item))


def _evaluate_text_search(source: ColumnSource, text_search: plan.TextSearch) -> pa.Array:
    from omnigraph.engine.search.text import match_texts

    max_edits = source.constant(text_search.max_edits) if text_search.max_edits is not None else None
    return match_texts(
        text_search.function, evaluate_value(source, text_search.field), source.constant(text_search.query), max_edits
    )
