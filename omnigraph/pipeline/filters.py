"""The filter of a data source: conditions that are applied before anything reaches Spark.

Owns their form, a JSON array of `[column, operator, value]`, and their meaning, which is that of
`where` in Spark: all must be true, and a comparison with nothing is not. Values are parameters of
the type of their column, never text of a filter.
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
_ONLY_NULL = (ScalarType.BLOB, ScalarType.VECTOR)  # no values of these are compared
_UNSIGNED = (ScalarType.U32, ScalarType.U64)  # which storage does not compare
_FORM = 'a filter is JSON like [["age", ">=", 18], ["name", "in", ["ada", "bob"]]]'


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions as Arrow expressions: for storage, and for the batches that storage gives.

    `columns` are those that the latter look at.
    """

    stored: Any = None
    rest: Any = None
    columns: tuple[str, ...] = ()

    def kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch for which everything is true."""
        return rows if self.rest is None else rows.filter(self.rest)


def filter_of(one: Node | Edge, text: str) -> Filter:
    """The conditions of a text.

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
        raise UsageError(reason=f"'{name}' is no column of {one.name}", hint=hint)
    if word not in OPERATORS:
        raise UsageError(reason=f"'{word}' is none of {', '.join(OPERATORS)}")
    field, (kind,) = pc.field(name), kinds_of(one, [name])
    if word in ("is null", "is not null"):
        if value:
            raise UsageError(reason=f"'{word}' takes no value")
        return field.is_null() if word == "is null" else field.is_valid()
    if len(value) != 1 or kind.is_list or kind.scalar in _ONLY_NULL:
        raise UsageError(reason=f"'{name}' is not compared by '{word}' with this")
    return _compared(field, kind, name, word, value[0])


def _compared(field: Any, kind: PropertyType, name: str, word: str, value: Any) -> Any:
    if word != "in":
        return _COMPARE[word](field, _scalar(kind, name, value))
    if not isinstance(value, list) or not value:
        raise UsageError(reason=f"'in' takes an array of values for '{name}'")
    either = (field == _scalar(kind, name, one) for one in value)
    return reduce(operator.or_, either)


def _scalar(kind: PropertyType, name: str, value: Any) -> Any:
    if value is None:
        raise UsageError(reason=f"nothing is equal to null: '{name}' takes 'is null'")
    plain = PropertyType(kind.scalar, nullable=False) if kind.nullable else kind
    stored = coerce_parameter(plain, value, name=name, mode="python")
    return pa.scalar(stored, arrow_type(plain))
