"""Convert the Python values of properties and parameters to JSON, with the functions that an embedded graph uses.

A value that JSON expresses exactly is sent as it is, and the server checks it. Any other value is checked here against
its type. If it does not match, a stand-in is sent, which the server rejects with the same error as an embedded graph.
Values are never converted to fit a property of another type: for example, bytes must not be sent as text to a String
property.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from omnigraph.errors import InputError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.query.parse import read_queries
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.values import BlobSource, PropertyType, ScalarType
from omnigraph.values.convert import PYTHON_RULES, converter_for, unwrap_value
from omnigraph.values.describe_value import describe
from omnigraph.values.encode import encode_result
from omnigraph.values.mismatch import ConversionMismatch, write_stand_in

from .blob_sources import read_blob

PropertyTypes = Mapping[str, PropertyType]
FindTypes = Callable[[], PropertyTypes]
_STRING = PropertyType(ScalarType.STRING, nullable=True)
_ENDPOINT_NAMES = ("from", "to", "src", "dst")
_INTEGER_RANGE = range(-(2**63), 2**64)  # JSON readers round integers beyond 64 bits


def is_exact_json(value: Any) -> bool:
    """Return whether a server receives a value unchanged if it is sent as JSON.

    >>> [is_exact_json(value) for value in ("x", [1, None], b"x", float("nan"), {"x"}, 2**64)]
    [True, True, False, False, False, False]
    """
    kind = type(value)
    if value is None or kind is bool:
        return True
    if kind is str:
        return bool(value.isascii()) or _is_unicode(value)
    if kind is int:
        return value in _INTEGER_RANGE
    if kind is float:
        return math.isfinite(value)
    if kind in (list, tuple):
        return all(map(is_exact_json, value))
    return kind is dict and all(type(name) is str and is_exact_json(item) for name, item in value.items())


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode_property(property_type: PropertyType | None, value: Any) -> Any:
    """Return the JSON for a value of a property or a parameter. None stands for an unknown type.

    >>> encode_property(PropertyType(ScalarType.BLOB), b"x")
    'base64:eA=='
    >>> encode_property(PropertyType(ScalarType.STRING), b"x")
    {'$mismatch': {'expected': 'String', 'actual': 'bytes', 'hint': None}}
    """
    plain = _unwrap_items(value)
    if is_exact_json(plain):
        return plain
    if property_type is None:
        return write_stand_in(ConversionMismatch("a property value", describe(value)))
    try:
        stored = converter_for(property_type, PYTHON_RULES)(value)
    except ConversionMismatch as mismatch:
        return write_stand_in(mismatch)
    return encode_result(property_type, read_blob(stored.source) if isinstance(stored, BlobSource) else stored)


def _unwrap_items(value: Any) -> Any:
    """Unwrap Enum, NumPy and Arrow values, even in lists. A wrapped null stays wrapped, because no type accepts it."""
    plain = value if value is None else unwrap_value(value)
    if isinstance(plain, list | tuple) and type(plain) in (list, tuple):
        return [_unwrap_items(item) for item in plain]
    return value if plain is None else plain


def encode_properties(find_types: FindTypes, properties: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the JSON for the members of a record. The types are needed only if JSON cannot express a value."""
    if is_exact_json(properties):
        return dict(properties)
    types = find_types()
    return {str(name): encode_property(types.get(name), value) for name, value in properties.items()}


def encode_typed_records(find_types: FindTypes, records: Any) -> list[Any]:
    """Return records of one type as JSON objects; data frames and Arrow tables are converted to rows.

    >>> import pyarrow as pa
    >>> encode_typed_records(dict, pa.table({"name": ["ada"], "age": [36]}))
    [{'name': 'ada', 'age': 36}]
    """
    return [encode_record(find_types, entity) for entity in iter_rows(records)]


def encode_record(find_types: FindTypes, entity: Any) -> Any:
    """Return a record of a known type as a JSON object."""
    members = read_members(entity)
    return encode_property(None, entity) if members is None else encode_properties(find_types, members)


def read_members(entity: Any) -> Mapping[Any, Any] | None:
    """Return the members of a mapping or of a dataclass, or None for anything else."""
    if isinstance(entity, Mapping):
        return entity
    if is_dataclass(entity) and not isinstance(entity, type):
        return {field.name: getattr(entity, field.name) for field in fields(entity)}
    return None


def iter_rows(records: Any) -> Iterable[Any]:
    """Return the rows of a list, a table, a dataset or a data frame."""
    if hasattr(records, "to_table"):  # a dataset
        records = records.to_table()
    if hasattr(records, "__arrow_c_stream__") and not hasattr(records, "to_pylist"):
        import pyarrow as pa

        records = pa.table(records)
    if hasattr(records, "to_pylist"):
        records = records.to_pylist()
    elif hasattr(records, "to_dict") and hasattr(records, "columns"):  # a pandas DataFrame without Arrow support
        records = records.to_dict("records")
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise InputError(f"records must be a list of mappings or a table, got {describe(records)}", reason="no records")
    return records


def record_types(entity_type: NodeType | EdgeType | None) -> dict[str, PropertyType]:
    """Return the types of the members of a record: its properties, its id and, for an edge, its endpoints."""
    if entity_type is None:
        return {}
    names = ("id", *_ENDPOINT_NAMES) if isinstance(entity_type, EdgeType) else ("id",)
    properties = {declared.name: declared.type for declared in entity_type.properties}
    return dict.fromkeys(names, _STRING) | properties


def encode_arguments(query_text: str, query_name: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON for the arguments of a query, whose text declares their types."""
    return encode_properties(lambda: _declared_types(query_text, query_name), arguments)


def _declared_types(query_text: str, query_name: str | None) -> dict[str, PropertyType]:
    """Return the types of a query's parameters. They are unknown if the text is invalid; the server reports this."""
    file, _ = read_queries(SourceText("<query>", query_text))
    queries = [query for query in file.queries if query_name is None or query.name.text == query_name]
    return {parameter.name: parameter.type for parameter in queries[0].parameters} if len(queries) == 1 else {}
