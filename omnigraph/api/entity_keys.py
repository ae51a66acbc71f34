"""Parse an entity's key from a command line or a URL."""

import json
from typing import Any

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.values import ScalarType
from omnigraph.values.dates import format_date, format_datetime


def parse_entity_key(catalog: Catalog, type_name: str, kind: str | None, text: str) -> Any:
    """Return the key that a string represents; the string is parsed as JSON unless the key is a single String.

    An entity's id is also accepted in place of its key. For a composite key, the id is required.

    >>> from omnigraph.lang.schema import compile_schema
    >>> catalog = compile_schema("node Room { number: I32 @key }  node Person { name: String @key }")
    >>> parse_entity_key(catalog, "Room", None, "7"), parse_entity_key(catalog, "Person", None, "7")
    (7, '7')
    """
    node_type = None if kind == "edge" else catalog.node(type_name)
    entity_type = node_type or catalog.edge(type_name)
    key_columns = entity_type.key if entity_type is not None else None
    if entity_type is None or not key_columns or len(key_columns) > 1:
        return text
    scalar_type = entity_type.column_type(key_columns[0]).scalar
    if scalar_type is ScalarType.STRING:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return _date_of_id(scalar_type, value) if type(value) is int else value


def _date_of_id(scalar_type: ScalarType, number: int) -> Any:
    """Convert a number in an id to the date or time that it stands for. Return any other number unchanged."""
    if scalar_type not in (ScalarType.DATE, ScalarType.DATETIME):
        return number
    try:
        return format_date(number) if scalar_type is ScalarType.DATE else format_datetime(number)
    except (ValueError, OverflowError):  # outside the years 1 to 9999, which the caller reports
        return number
