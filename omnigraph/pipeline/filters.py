"""The filter of a data source: conditions that are applied before rows reach Spark.

Owns their syntax, a JSON array of `[column, operator, value]`, and their semantics, which are those
of `where` in Spark: all conditions must be true, and a comparison with null is not true. Values are
passed as typed parameters, never spliced into filter text.
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
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, ScalarType, coerce_parameter

from .types import columns_of, kinds_of

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS = (*_COMPARE, "in", "is null", "is not null")
_ONLY_NULL = (ScalarType.BLOB, ScalarType.VECTOR)  # values of these types cannot be compared
_UNSIGNED = (ScalarType.U32, ScalarType.U64)  # storage cannot compare these
_FORM = 'a filter is a JSON array like [["age", ">=", 18], ["name", "in", ["ada", "bob"]]]'


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions as Arrow expressions: one for storage, one for the batches that storage returns.

    `batch_columns` are the columns that `batch_filter` reads.
    """

    stored: Any = None
    rest: Any = None
    columns: tuple[str, ...] = ()

    def kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch for which the batch filter is true."""
        return rows if self.rest is None else rows.filter(self.rest)


def filter_of(one: Node | Edge, text: str) -> Filter:
    """Parse the conditions of a filter.

    >>> from omnigraph.lang.schema import compile_schema
    >>> (node,) = compile_schema("node P { age: I32?  size: U64? }").nodes
    >>> found = filter_of(node, '[["age", ">", 3], ["size", "<", 7]]')
    >>> print(found.stored, found.rest, found.columns)
    (age > 3) (size < 7) ('size',)
    """
    try:
        given = json.loads(text)
    except ValueError:
        raise UsageError(reason=_FORM) from None
    if not isinstance(given, list) or not given:
        raise UsageError(reason=_FORM)
    made = [(_condition(one, each), each[0]) for each in given]
    names = tuple(dict.fromkeys(name for _, name in made if not _is_plain(one, name)))
    stored = [test for test, name in made if name not in names]
    rest = [test for test, name in made if name in names]
    return Filter(_all(stored), _all(rest), names)


def _all(tests: list[Any]) -> Any:
    return reduce(operator.and_, tests) if tests else None


def _is_plain(one: Node | Edge, name: str) -> bool:
    (kind,) = kinds_of(one, [name])
    return not kind.is_list and kind.scalar not in (*_ONLY_NULL, *_UNSIGNED)


def _condition(one: Node | Edge, given: Any) -> Any:
    if not isinstance(given, list) or len(given) not in (2, 3):
        raise UsageError(reason=_FORM)
    name, word, *value = given
    known = columns_of(one)
    if name not in known:
        hint = did_you_mean(str(name), known)
        raise UsageError(reason=f"{one.name} has no column '{name}'", hint=hint)
    if word not in OPERATORS:
        raise UsageError(reason=f"unknown operator '{word}'; expected {', '.join(OPERATORS)}")
    field, (kind,) = pc.field(name), kinds_of(one, [name])
    if word in ("is null", "is not null"):
        if value:
            raise UsageError(reason=f"'{word}' takes no value")
        return field.is_null() if word == "is null" else field.is_valid()
    if len(value) != 1 or kind.is_list or kind.scalar in _ONLY_NULL:
        raise UsageError(reason=f"'{word}' cannot compare '{name}' with this value")
    return _compared(field, kind, name, word, value[0])


def _compared(field: Any, kind: PropertyType, name: str, word: str, value: Any) -> Any:
    if word != "in":
        return _COMPARE[word](field, _scalar(kind, name, value))
    if not isinstance(value, list) or not value:
        raise UsageError(reason=f"'in' requires a non-empty array of values for '{name}'")
    either = (field == _scalar(kind, name, one) for one in value)
    return reduce(operator.or_, either)


def _scalar(kind: PropertyType, name: str, value: Any) -> Any:
    if value is None:
        raise UsageError(reason=f"null never equals anything; use 'is null' for '{name}'")
    plain = PropertyType(kind.scalar, nullable=False) if kind.nullable else kind
    stored = coerce_parameter(plain, value, name=name, mode="python")
    return pa.scalar(stored, arrow_type(plain))
