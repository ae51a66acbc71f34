"""Convert text cells to property values, according to each property's type.

A whole column is converted at once if every cell has the plain form of its type. Otherwise, each cell is converted to
the value that it would have in JSON, and `columns` then finds the cells that do not fit.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import PropertyValueError
from omnigraph.lang.schema.catalog import PropertyDefinition
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, ScalarType
from omnigraph.values.dates import FIRST_MILLIS, LAST_MILLIS

from .columns import FaultCallback, build_column, check_value_size
from .load_limits import LoadLimits
from .record_intake import RecordFaults, fault_recorder

_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,40}(?:\.0*)?")
_FLOAT_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOL_TEXTS = {"true": True, "t": True, "yes": True, "y": True, "1": True} | {
    "false": False, "f": False, "no": False, "n": False, "0": False
}  # fmt: skip
_PLAIN_INTEGER_BYTES, _PLAIN_FLOAT_BYTES = b"-0123456789", b"+-.0123456789eE"
_PLAIN_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3})?Z$"
_WHITESPACE = " \t"
_USUAL_NULL_TEXTS = frozenset({"-", "--", "?", "na", "n/a", "nan", "nil", "none", "null", "\\n"})


def parse_cells(
    prop: PropertyDefinition,
    cells: pa.Array,
    null_texts: Sequence[str],
    type_name: str,
    report_fault: FaultCallback,
    limits: LoadLimits,
) -> pa.Array:
    """Convert a column of cells to a property's column; cells that do not fit are passed to `report_fault`.

    A String property's value is the cell itself, even if it is empty. For any other type, surrounding spaces are
    ignored, and an empty cell or a null string means null even if it is quoted.
    """
    if not _is_text(prop.type):
        cells = _normalize_cells(cells, (*null_texts, ""))
    column = None if cells.null_count and not prop.type.nullable else _parse_plain_cells(prop, cells, type_name, limits)
    if column is None:
        values = [None if cell is None else read_cell(prop.type, cell) for cell in cells.to_pylist()]
        return build_column(prop, values, type_name, report_fault, limits)
    check_value_size(column, f"{type_name}.{prop.name}", limits)
    return column


def with_decimal_points(
    prop: PropertyDefinition, cells: pa.Array, decimal_sign: str, type_name: str, report_fault: FaultCallback
) -> pa.Array:
    """Replace the decimal separator in number cells with a point; a cell that already has a point is reported."""
    is_number = prop.type.is_integer or prop.type.scalar.is_float
    if decimal_sign == "." or not is_number or prop.type.is_list or prop.type.is_vector:
        return cells
    has_point = pc.fill_null(pc.match_substring(cells, "."), False)
    for position in pc.indices_nonzero(has_point).to_pylist():
        expected, actual = (
            f"{prop.type.display()} with the decimal separator '{decimal_sign}'",
            f"string '{cells[position]}'",
        )
        error = PropertyValueError(type_name=type_name, property=prop.name, expected=expected, actual=actual)
        report_fault(position, error)
    numbers = pc.if_else(has_point, pa.scalar("0"), cells)  # the record is rejected, so its value does not matter
    return pc.replace_substring(numbers, decimal_sign, ".")


def suggest_option(property_type: PropertyType, cell: str | None, decimal_sign: str) -> str | None:
    """Return a hint that names the CSV option that would make a cell valid, or None if there is no such option.

    >>> suggest_option(PropertyType(ScalarType.F64), "1,5", ".")
    "pass --csv-decimal , or CsvOptions(decimal=',')"
    """
    if cell is None:
        return None
    if property_type.scalar.is_float and decimal_sign == "." and _FLOAT_TEXT.fullmatch(cell.strip().replace(",", ".")):
        return "pass --csv-decimal , or CsvOptions(decimal=',')"
    if property_type.nullable and cell.strip().lower() in _USUAL_NULL_TEXTS:
        return f"if '{cell.strip()}' means null, pass --csv-null {cell.strip()} or CsvOptions(null='{cell.strip()}')"
    return None


def read_cell(property_type: PropertyType, cell: str) -> Any:
    """Return the JSON form of a cell's value, or the cell itself if it is not a value of the property's type.

    >>> read_cell(PropertyType(ScalarType.I32), "7"), read_cell(PropertyType(ScalarType.I32), "x")
    (7, 'x')
    """
    scalar_type = property_type.scalar
    if property_type.is_list or property_type.is_vector:
        return _read_json_array(cell)
    if property_type.is_integer or scalar_type in (ScalarType.DATE, ScalarType.DATETIME):
        return int(cell.partition(".")[0]) if _INTEGER_TEXT.fullmatch(cell) else cell
    if scalar_type.is_float:
        return float(cell) if _FLOAT_TEXT.fullmatch(cell) else cell
    return _BOOL_TEXTS.get(cell.lower(), cell) if scalar_type is ScalarType.BOOL else cell


def _read_json_array(cell: str) -> Any:
    try:
        items = orjson.loads(cell) if cell.startswith("[") else cell
    except orjson.JSONDecodeError:
        return cell
    return items


def _is_text(property_type: PropertyType) -> bool:
    return property_type.scalar is ScalarType.STRING and not property_type.is_list


def _normalize_cells(cells: pa.Array, null_texts: Sequence[str]) -> pa.Array:
    cells = pc.utf8_trim(cells, _WHITESPACE)
    is_null = pc.is_in(cells, value_set=pa.array(null_texts, pa.string()))
    return pc.if_else(is_null, pa.scalar(None, pa.string()), cells) if pc.any(is_null).as_py() else cells


def _parse_plain_cells(
    prop: PropertyDefinition, cells: pa.Array, type_name: str, limits: LoadLimits
) -> pa.Array | None:
    """Convert a column if all its cells have the plain form of their type; otherwise return None."""
    property_type, scalar_type = prop.type, prop.type.scalar
    if property_type.is_list or property_type.is_vector:
        return None
    if scalar_type is ScalarType.STRING:
        return cells
    if property_type.is_integer:
        return _cast(cells, arrow_type(property_type)) if _has_only(cells, _PLAIN_INTEGER_BYTES) else None
    if scalar_type.is_float:
        return _parse_floats(cells, scalar_type) if _has_only(cells, _PLAIN_FLOAT_BYTES) else None
    if scalar_type is ScalarType.DATETIME:
        instants = _parse_instants(cells, arrow_type(property_type))
        if instants is not None:
            return instants
    return _parse_distinct(prop, cells, type_name, limits)


def _has_only(cells: pa.Array, allowed_bytes: bytes) -> bool:
    """Return whether all cells consist only of the allowed bytes."""
    if len(cells) == cells.null_count:
        return True
    _, offsets, text_buffer = cells.buffers()
    ends = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1]
    text = np.frombuffer(text_buffer, np.uint8)[ends[0] : ends[-1]] if text_buffer is not None else ends[:0]
    is_allowed = np.zeros(256, bool)
    is_allowed[np.frombuffer(allowed_bytes, np.uint8)] = True
    return bool(is_allowed[text].all())


def _cast(cells: pa.Array, target_type: pa.DataType) -> pa.Array | None:
    try:
        return cells.cast(target_type)
    except pa.ArrowException:
        return None


def _parse_floats(cells: pa.Array, scalar_type: ScalarType) -> pa.Array | None:
    numbers = _cast(cells, pa.float64())
    if numbers is not None and scalar_type is ScalarType.F32:
        numbers = numbers.cast(pa.float32(), safe=False)
    is_finite = numbers is not None and pc.all(pc.is_finite(numbers)).as_py()
    return numbers if is_finite or (numbers is not None and numbers.null_count == len(numbers)) else None


def _parse_instants(cells: pa.Array, stored_type: pa.DataType) -> pa.Array | None:
    if len(cells) == cells.null_count or not pc.all(pc.match_substring_regex(cells, _PLAIN_INSTANT)).as_py():
        return None
    instants = _cast(pc.utf8_rtrim(cells, "Z"), pa.timestamp("ms"))
    if instants is None:
        return None
    value_range = pc.min_max(instants.cast(pa.int64()))
    if value_range["min"].as_py() < FIRST_MILLIS or value_range["max"].as_py() > LAST_MILLIS:
        return None
    return instants.cast(pa.int64()).cast(stored_type)


def _parse_distinct(prop: PropertyDefinition, cells: pa.Array, type_name: str, limits: LoadLimits) -> pa.Array | None:
    """Convert each distinct cell only once; return None if any cell does not fit."""
    encoded = cells.dictionary_encode()
    faults: RecordFaults = {}
    values = [read_cell(prop.type, cell) for cell in encoded.dictionary.to_pylist()]
    converted = build_column(prop, values, type_name, fault_recorder(faults), limits)
    return None if faults else converted.take(encoded.indices)
