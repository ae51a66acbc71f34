"""The Arrow schema for a type's rows, as queries return them and loads accept them."""

import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, ScalarType


def entity_schema(entity_type: NodeType | EdgeType) -> pa.Schema:
    """Return a type's columns: `id`, then `from` and `to` for an edge type, then the properties in name order."""
    system_columns = ("id", "from", "to") if isinstance(entity_type, EdgeType) else ("id",)
    fields = [pa.field(column_name, pa.string(), nullable=False) for column_name in system_columns]
    fields += [pa.field(prop.name, _value_type(prop.type), prop.type.nullable) for prop in entity_type.properties]
    return pa.schema(fields)


def _value_type(property_type: PropertyType) -> pa.DataType:
    return pa.large_binary() if property_type.scalar is ScalarType.BLOB else arrow_type(property_type)
