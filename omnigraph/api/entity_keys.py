"""Parse an entity's key from a command line or a URL."""

import json
from typing import Any

from omnigraph.lang.schema.catalog import Catalog


def parse_entity_key(catalog: Catalog, type_name: str, kind: str | None, text: str) -> Any:
    """Return the key that a string represents; the string is parsed as JSON unless the key is a single String.

    A composite key must be passed as the entity's id.

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
    if entity_type.column_type(key_columns[0]).scalar.value == "String":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
