"""Data source filters, which are applied before rows reach Spark.

This module defines the filter syntax: a JSON array of conditions, each of which is a `[column, operator, value]` array.
The conditions have the same meaning as `where` in Spark: all of them must be true, and a comparison with null is not
true. Values are passed as typed parameters, never inserted into filter text. Scan tasks apply the conditions.
"""

import json
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import UsageError
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, ScalarType, coerce_parameter

from .spark_types import columns_of_type, property_types_of

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS = (*_COMPARISONS, "in", "is null", "is not null")
_NULL_TESTS_ONLY = (ScalarType.BLOB, ScalarType.VECTOR)  # values of these types cannot be compared
_UNSIGNED = (ScalarType.U32, ScalarType.U64)  # storage cannot compare values of these types
_SYNTAX = 'a filter is a JSON array like [["age", ">=", 18], ["name", "in", ["ada", "bob"]]]'


@dataclass(frozen=True, slots=True)
class SparkFilter:
    """A filter as two Arrow expressions: one for storage, and one for the batches that storage returns.

    `batch_columns` are the columns that `batch_filter` reads.
    """

    storage_filter: Any = None
    batch_filter: Any = None
    batch_columns: tuple[str, ...] = ()

    def apply_to_batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in a batch for which the batch filter is true."""
        return rows if self.batch_filter is None else rows.filter(self.batch_filter)


def parse_filter(entity_type: NodeType | EdgeType, filter_json: str) -> SparkFilter:
    """Parse the conditions in a filter.

    >>> from omnigraph.lang.schema import compile_schema
    >>> (node,) = compile_schema("node P { age: I32?  size: U64? }").nodes
    >>> parsed = parse_filter(node, '[["age", ">", 3], ["size", "<", 7]]')
    >>> print(parsed.storage_filter, parsed.batch_filter, parsed.batch_columns)
    (age > 3) (size < 7) ('size',)
    """
    try:
        conditions = json.loads(filter_json)
    except ValueError:
        raise UsageError(reason=_SYNTAX) from None
    if not isinstance(conditions, list) or not conditions:
        raise UsageError(reason=_SYNTAX)
    parsed_conditions = [(_parse_condition(entity_type, condition), condition[0]) for condition in conditions]
    batch_columns = tuple(
        dict.fromkeys(column for _, column in parsed_conditions if not _can_filter_in_storage(entity_type, column))
    )
    storage_tests = [test for test, column in parsed_conditions if column not in batch_columns]
    batch_tests = [test for test, column in parsed_conditions if column in batch_columns]
    return SparkFilter(_conjunction(storage_tests), _conjunction(batch_tests), batch_columns)


def _conjunction(tests: list[Any]) -> Any:
    return reduce(operator.and_, tests) if tests else None


def _can_filter_in_storage(entity_type: NodeType | EdgeType, column: str) -> bool:
    (property_type,) = property_types_of(entity_type, [column])
    return not property_type.is_list and property_type.scalar not in (*_NULL_TESTS_ONLY, *_UNSIGNED)


def _parse_condition(entity_type: NodeType | EdgeType, condition: Any) -> Any:
    if not isinstance(condition, list) or len(condition) not in (2, 3):
        raise UsageError(reason=_SYNTAX)
    column, operator_name, *operands = condition
    known_columns = columns_of_type(entity_type)
    if column not in known_columns:
        hint = did_you_mean(str(column), known_columns)
        raise UsageError(reason=f"{entity_type.name} has no column '{column}'", hint=hint)
    if operator_name not in OPERATORS:
        raise UsageError(reason=f"unknown operator '{operator_name}'; expected one of {', '.join(OPERATORS)}")
    column_expression, (property_type,) = pc.field(column), property_types_of(entity_type, [column])
    if operator_name in ("is null", "is not null"):
        if operands:
            raise UsageError(reason=f"'{operator_name}' does not take a value")
        return column_expression.is_null() if operator_name == "is null" else column_expression.is_valid()
    if len(operands) != 1 or property_type.is_list or property_type.scalar in _NULL_TESTS_ONLY:
        raise UsageError(reason=f"'{operator_name}' cannot compare '{column}' with this value")
    return _build_comparison(column_expression, property_type, column, operator_name, operands[0])


def _build_comparison(
    column_expression: Any, property_type: PropertyType, column: str, operator_name: str, operand: Any
) -> Any:
    if operator_name != "in":
        return _COMPARISONS[operator_name](column_expression, _typed_scalar(property_type, column, operand))
    if not isinstance(operand, list) or not operand:
        raise UsageError(reason=f"'in' requires a non-empty array of values for '{column}'")
    equalities = (column_expression == _typed_scalar(property_type, column, member) for member in operand)
    return reduce(operator.or_, equalities)


def _typed_scalar(property_type: PropertyType, column: str, operand: Any) -> Any:
    if operand is None:
        raise UsageError(reason=f"null never equals anything; use 'is null' for '{column}'")
    required_type = PropertyType(property_type.scalar, nullable=False) if property_type.nullable else property_type
    stored_value = coerce_parameter(required_type, operand, parameter_name=column, mode="python")
    return pa.scalar(stored_value, arrow_type(required_type))
