"""Convert keys to JSON and to text for a server, in all forms that an embedded graph accepts.

A key that the schema does not allow is rejected here, with the error that an embedded graph raises. Values are never
converted to fit a key of another type: for example, bytes must not become text.
"""

from collections.abc import Mapping
from typing import Any

from omnigraph.api.builders.mutation_text import resolve_edge_id, resolve_node_id
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.declared_order import declared_key_columns
from omnigraph.lang.schema.ir import SchemaIR

from .property_values import encode_property, is_exact_json


def encode_node_key(ir: SchemaIR, node_type: NodeType | None, key: Any) -> Any:
    """Return the JSON for a node's key: a value, an array, an object or an id.

    >>> from datetime import date
    >>> from omnigraph.client.handle import compile_ir
    >>> ir = compile_ir("node Room { house: String  day: Date  @key(house, day) }")
    >>> encode_node_key(ir, ir.catalog.node("Room"), ("a", date(2024, 1, 1)))
    ['a', '2024-01-01']
    """
    if is_exact_json(key) or node_type is None:
        return key if is_exact_json(key) else str(key)  # the server reports an unknown type
    node_id = resolve_node_id(ir, node_type.name, key)  # raises the error for a key of the wrong type
    columns = declared_key_columns(ir, node_type)
    if not columns:
        return node_id
    if isinstance(key, Mapping):
        return {column: encode_property(node_type.column_type(column), key[column]) for column in columns}
    if isinstance(key, tuple | list):
        members = zip(columns, key, strict=True)
        return [encode_property(node_type.column_type(column), member) for column, member in members]
    return encode_property(node_type.column_type(columns[0]), key)


def write_key(ir: SchemaIR, entity_type: NodeType | EdgeType, key: Any) -> str:
    """Return an entity's id, which the server accepts in place of its key.

    >>> from omnigraph.client.handle import compile_ir
    >>> ir = compile_ir("node Room { house: String  number: I32  @key(house, number) }")
    >>> write_key(ir, ir.catalog.node("Room"), {"number": 1, "house": "a"})
    '["a","1"]'
    """
    if isinstance(key, str):  # an id, or a value that the server checks
        return key
    if isinstance(entity_type, EdgeType):
        return resolve_edge_id(ir, entity_type, key)
    return resolve_node_id(ir, entity_type.name, key)
