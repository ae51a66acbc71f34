"""Infer a column's property type, with a comment if the type is a guess.

An Arrow type determines the property type. A text column in a CSV file gets a number type, a date type or Bool if every
cell is a value of that type; a text column in JSON gets a date type if every value is a date. A number with leading
zeros is a code, so its column stays text.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .samples import SampleOrigin

_INTEGER_TEXT = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_FLOAT_TEXT = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MAX_ENUM_VALUES, _MIN_ENUM_ROWS = 8, 20
_ENUM_VALUE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_MIN_VECTOR_DIMENSION = 8
_NARROW_INTEGERS = {"int8": "I32", "int16": "I32", "int32": "I32", "int64": "I64"} | {
    "uint8": "U32", "uint16": "U32", "uint32": "U32", "uint64": "U64"
}  # fmt: skip


@record
class ColumnType:
    """An inferred column type; `type` is None if no property can have these values."""

    type: PropertyType | None
    comment: str = ""


def infer_type(column: Any, origin: SampleOrigin) -> ColumnType:
    """Return the type that a column suggests.

    >>> infer_type(pa.chunked_array([["1", "2"]]), "csv").type.display()
    'I64'
    >>> infer_type(pa.chunked_array([[1.5, None]]), "typed").type.display()
    'F64?'
    """
    suggested = _text_type(column, origin) if _is_text(column.type) else _arrow_type(column)
    if suggested.type is None:
        return suggested
    return ColumnType(suggested.type.as_nullable(nullable=column.null_count > 0), suggested.comment)


def _is_text(data_type: pa.DataType) -> bool:
    return bool(kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_string_view(data_type))


def _arrow_type(column: Any) -> ColumnType:
    data_type = column.type
    if kinds.is_null(data_type):
        return ColumnType(PropertyType(ScalarType.STRING), "no values: the type is a guess")
    if kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type):
        return _list_type(column)
    if kinds.is_timestamp(data_type) and data_type.tz is None:
        return ColumnType(PropertyType(ScalarType.DATETIME), "without a time zone: convert to UTC before loading")
    if kinds.is_decimal(data_type):
        return ColumnType(PropertyType(ScalarType.F64), f"{data_type}: F64 may lose digits")
    scalar = _scalar_type(data_type)
    if scalar is None:
        return ColumnType(None, f"{data_type} is not supported")
    return ColumnType(PropertyType(scalar))


def _scalar_type(data_type: pa.DataType) -> ScalarType | None:
    if str(data_type) in _NARROW_INTEGERS:
        return ScalarType(_NARROW_INTEGERS[str(data_type)])
    tests: tuple[tuple[Callable[[Any], bool], ScalarType], ...] = (
        (_is_text, ScalarType.STRING),
        (kinds.is_boolean, ScalarType.BOOL),
        (kinds.is_float64, ScalarType.F64),
        (kinds.is_floating, ScalarType.F32),
        (kinds.is_date, ScalarType.DATE),
        (kinds.is_timestamp, ScalarType.DATETIME),
        (lambda value: kinds.is_binary(value) or kinds.is_large_binary(value), ScalarType.BLOB),
    )
    return next((scalar for test, scalar in tests if test(data_type)), None)


def _list_type(column: Any) -> ColumnType:
    element_type, values = column.type.value_type, column.drop_null()
    if kinds.is_floating(element_type):
        if kinds.is_fixed_size_list(column.type):
            return ColumnType(PropertyType(ScalarType.VECTOR, vector_dim=column.type.list_size))
        lengths = pc.unique(pc.list_value_length(values)).to_pylist()
        if len(lengths) == 1 and lengths[0] >= _MIN_VECTOR_DIMENSION:
            comment = f"all lists have {lengths[0]} values, so they are assumed to be vectors"
            return ColumnType(PropertyType(ScalarType.VECTOR, vector_dim=lengths[0]), comment)
    scalar = ScalarType.STRING if kinds.is_null(element_type) else _scalar_type(element_type)
    if scalar in (None, ScalarType.BLOB):
        return ColumnType(None, f"{column.type} is not supported")
    return ColumnType(PropertyType(scalar, is_list=True))


def _text_type(column: Any, origin: SampleOrigin) -> ColumnType:
    texts = [] if origin == "typed" else pc.unique(column.drop_null()).to_pylist()
    scalar = _scalar_of_texts(texts, origin) if texts else None
    if scalar is not None:
        return ColumnType(PropertyType(scalar))
    if column.null_count == len(column):
        return ColumnType(PropertyType(ScalarType.STRING), "no values: the type is a guess")
    return ColumnType(PropertyType(ScalarType.STRING), _enum_comment(column))


def _scalar_of_texts(texts: Sequence[str], origin: SampleOrigin) -> ScalarType | None:
    """Return the type that fits all strings, or None if they are ordinary text."""
    if all(map(_is_date, texts)):
        return ScalarType.DATE
    if all(map(_is_instant, texts)):
        return ScalarType.DATETIME
    if origin != "csv":
        return None
    if all(text.lower() in ("true", "false") for text in texts):
        return ScalarType.BOOL
    if all(map(_INTEGER_TEXT.fullmatch, texts)):
        return _integer_type([int(text) for text in texts])
    return ScalarType.F64 if all(map(_FLOAT_TEXT.fullmatch, texts)) else None


def _integer_type(numbers: Sequence[int]) -> ScalarType | None:
    if min(numbers) >= -(1 << 63) and max(numbers) < 1 << 63:
        return ScalarType.I64
    return ScalarType.U64 if min(numbers) >= 0 and max(numbers) < 1 << 64 else None


def _is_date(text: str) -> bool:
    if not _DATE_TEXT.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_instant(text: str) -> bool:
    """Return whether a string is a time with a time zone. A load would reject a time without a time zone."""
    if len(text) < 16 or not text[:4].isdigit():
        return False
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _enum_comment(column: Any) -> str:
    """Return a comment about a column with few distinct words, which may be an enum."""
    if len(column) < _MIN_ENUM_ROWS:
        return ""
    values = pc.unique(column.drop_null()).to_pylist()
    if 1 < len(values) <= _MAX_ENUM_VALUES and all(map(_ENUM_VALUE.fullmatch, values)):
        return f"or enum({', '.join(sorted(values))})"
    return ""
