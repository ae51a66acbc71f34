"""Evaluation of plan values and predicates over Arrow columns, with three-valued logic.

The caller supplies the columns: rows of a query, or pending rows of a mutation. A predicate yields
true, false or null (unknown); filters keep only rows where it is true.
"""

from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError
from omnigraph.lang.query import plan
from omnigraph.storage.arrow import arrow_type

from .compare import compare, compare_constant, settle, turned
from .fetch import SYSTEM


class Source(Protocol):
    """Columns by variable and name, all of the same length, and parameter values."""

    @property
    def count(self) -> int:
        """Number of rows."""
        ...

    def column(self, variable: str, name: str) -> pa.Array:
        """Return one column of a variable."""
        ...

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Return a boolean column: whether the node is of this type."""
        ...

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        ...


class TableSource:
    """Columns of a single variable from one table: pending rows, or the result of a scan."""

    def __init__(self, table: pa.Table, params: Any) -> None:
        self.table = table
        self.params = params

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def column(self, variable: str, name: str) -> pa.Array:
        """Return one column of the table."""
        return self.table.column(name).combine_chunks()

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Raise InternalError: a table holds a single type, already fixed by the caller."""
        raise InternalError(reason="a single table cannot test the type of its rows")

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        return value.value if isinstance(value, plan.Constant) else self.params[_name(value)]


def _name(value: plan.Value) -> str:
    if isinstance(value, plan.Parameter):
        return value.name
    raise InternalError(reason=f"{type(value).__name__} is not constant")


def is_constant(value: plan.Value) -> bool:
    """Return whether a value is the same in every row."""
    return isinstance(value, plan.Constant | plan.Parameter)


def column(source: Source, value: plan.Value) -> pa.Array:
    """Return a plan value for every row."""
    match value:
        case plan.PropertyValue():
            return source.column(value.variable, value.name)
        case plan.SystemValue():
            return source.column(value.variable, SYSTEM[value.field])
        case plan.Entity():
            return source.column(value.variable, "id")
        case plan.Constant() | plan.Parameter():
            return repeat(source.constant(value), arrow_type(value.type), source.count)
    raise InternalError(reason=f"{type(value).__name__} cannot be evaluated per row")


def repeat(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column that holds one value `row_count` times."""
    if value is None or count == 0:  # Arrow cannot repeat a list zero times
        return pa.nulls(count, kind)
    return pa.repeat(pa.scalar(value, kind), count)


def mask(source: Source, predicate: plan.Predicate) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where a predicate is true: neither false nor unknown."""
    found = truth(source, predicate)
    if found.null_count:
        found = found.fill_null(False)
    known: np.ndarray[Any, np.dtype[np.bool_]] = found.to_numpy(zero_copy_only=False)
    return known


def truth(source: Source, predicate: plan.Predicate) -> pa.Array:  # noqa: PLR0911 - one each
    """Return a predicate for every row: true, false, or null for unknown."""
    match predicate:
        case plan.Compare():
            return _compare(source, predicate)
        case plan.TextTest():
            return _text_test(source, predicate)
        case plan.InList():
            return is_member(column(source, predicate.operand), source.constant(predicate.items))
        case plan.IsNull():
            operand = column(source, predicate.operand)
            return pc.is_valid(operand) if predicate.negated else pc.is_null(operand)
        case plan.OfType():
            return source.of_type(predicate.variable, predicate.type_name)
        case plan.TextSearch():
            return _search(source, predicate)
        case plan.And():
            return reduce(pc.and_kleene, (truth(source, one) for one in predicate.items))
        case plan.Or():
            return reduce(pc.or_kleene, (truth(source, one) for one in predicate.items))
        case plan.Not():
            return pc.invert(truth(source, predicate.item))


def _compare(source: Source, test: plan.Compare) -> pa.Array:
    left, right = test.left, test.right
    if is_constant(right):
        return compare_constant(column(source, left), test.operator, source.constant(right))
    if is_constant(left):
        operator = turned(test.operator)
        return compare_constant(column(source, right), operator, source.constant(left))
    return compare(column(source, left), test.operator, column(source, right))


def is_member(operand: pa.Array, items: Any) -> pa.Array:
    """Return where a value is one of the constants; null where the value is null."""
    if items is None:
        return pa.nulls(len(operand), pa.bool_())
    settled = [settle(operand.type, "=", one) for one in items]
    held = [one.constant for one in settled if not isinstance(one, str)]
    found = pc.is_in(operand, value_set=pa.array(held, operand.type))
    if pa.types.is_floating(operand.type) and 0 in held:
        found = pc.or_(found, pc.equal(operand, 0.0).fill_null(False))  # 0.0 equals -0.0
    return found if operand.null_count == 0 else pc.if_else(operand.is_valid(), found, None)


def _text_test(source: Source, test: plan.TextTest) -> pa.Array:
    if test.operator == "list_contains":
        return _list_contains(source, test)
    if not is_constant(test.right):
        return _text_by_row(source, test)
    needle = source.constant(test.right)
    haystack = column(source, test.left)
    if needle is None:
        return pa.nulls(len(haystack), pa.bool_())
    function = pc.starts_with if test.operator == "starts_with" else pc.match_substring
    return function(haystack, pattern=needle)


def _text_by_row(source: Source, test: plan.TextTest) -> pa.Array:
    """Evaluate a text test whose right side differs from row to row."""
    prefix = test.operator == "starts_with"
    pairs = zip(
        column(source, test.left).to_pylist(), column(source, test.right).to_pylist(), strict=True
    )
    found = [
        None if one is None or other is None else one.startswith(other) if prefix else other in one
        for one, other in pairs
    ]
    return pa.array(found, pa.bool_())


def _list_contains(source: Source, test: plan.TextTest) -> pa.Array:
    if is_constant(test.left):
        return is_member(column(source, test.right), source.constant(test.left))
    lists = column(source, test.left)
    items, owner = lists.flatten(), pc.list_parent_indices(lists)
    if is_constant(test.right):
        wanted = source.constant(test.right)
        hits = compare_constant(items, "=", wanted)
        unknown = pa.repeat(wanted is None, len(lists))
    else:
        others = column(source, test.right)
        hits = compare(items, "=", others.take(owner))
        unknown = pc.is_null(others)
    found = np.zeros(len(lists), np.bool_)
    found[owner.filter(hits.fill_null(False)).to_numpy(zero_copy_only=False)] = True
    unknown = pc.or_(unknown, pc.is_null(lists))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), pa.array(found))


def _search(source: Source, test: plan.TextSearch) -> pa.Array:
    from .text import matches

    edits = source.constant(test.max_edits) if test.max_edits is not None else None
    return matches(test.function, column(source, test.field), source.constant(test.query), edits)
