"""Map graph types to Arrow types and table columns.

Types are never mapped in the opposite direction: the schema determines the table layout. Columns are ordered by
property id, which does not change when a property is renamed.
"""

import pyarrow as pa
from lance.blob import blob_field

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values import PropertyType, ScalarType
from omnigraph.values.table_key import TableKey

_SCALAR_ARROW_TYPES = {
    ScalarType.STRING: pa.string(),
    ScalarType.BOOL: pa.bool_(),
    ScalarType.I32: pa.int32(),
    ScalarType.I64: pa.int64(),
    ScalarType.U32: pa.uint32(),
    ScalarType.U64: pa.uint64(),
    ScalarType.F32: pa.float32(),
    ScalarType.F64: pa.float64(),
    ScalarType.DATE: pa.date32(),
    ScalarType.DATETIME: pa.timestamp("ms", tz="UTC"),
}
PROPERTY_ID_KEY = b"omnigraph:property_id"


def table_key(entity_type: NodeType | EdgeType) -> TableKey:
    """Return the table key for a type, such as `node:Person` or `edge:Knows`."""
    return TableKey.of(entity_type.kind, entity_type.name)


def arrow_type(property_type: PropertyType) -> pa.DataType:
    """Return the Arrow type for a property that is not a Blob.

    >>> arrow_type(PropertyType(ScalarType.STRING, is_list=True))
    ListType(list<item: string>)
    """
    if property_type.vector_dim is not None:
        return pa.list_(pa.float32(), property_type.vector_dim)
    arrow_scalar = _SCALAR_ARROW_TYPES[property_type.scalar]
    return pa.list_(arrow_scalar) if property_type.is_list else arrow_scalar


def table_schema(ir: SchemaIR, entity_type: NodeType | EdgeType) -> pa.Schema:
    """Return the columns of a table: id, then src and dst for edges, then the properties in property id order."""
    system_columns = ["id"] if entity_type.kind == "node" else ["id", "src", "dst"]
    fields = [pa.field(column_name, pa.string(), nullable=False) for column_name in system_columns]
    numbered_properties = [
        (ir.property_id(entity_type.kind, entity_type.name, declared_property.name), declared_property)
        for declared_property in entity_type.properties
    ]
    for property_id, declared_property in sorted(numbered_properties, key=lambda pair: pair[0]):
        fields.append(_property_field(declared_property.name, declared_property.type, property_id))
    return pa.schema(fields)


def _property_field(column_name: str, property_type: PropertyType, property_id: int) -> pa.Field:
    if property_type.scalar is ScalarType.BLOB:
        arrow_field = blob_field(column_name, nullable=property_type.nullable)
    else:
        arrow_field = pa.field(column_name, arrow_type(property_type), nullable=property_type.nullable)
    metadata = {**(arrow_field.metadata or {}), PROPERTY_ID_KEY: str(property_id).encode()}
    return arrow_field.with_metadata(metadata)
