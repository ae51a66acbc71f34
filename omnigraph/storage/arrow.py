"""Map graph types to Arrow types and table columns.

Owns the mapping in one direction: a schema determines what its tables look like. Columns are
ordered by property id, which a rename never changes.
"""

import pyarrow as pa
from lance.blob import blob_field

from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values import PropertyType, ScalarType

_SCALARS = {
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
PROPERTY_ID = b"omnigraph:property_id"


def table_key(one: Node | Edge) -> str:
    """Return the key of a type's table: `node:Person` or `edge:Knows`."""
    return f"{one.kind}:{one.name}"


def arrow_type(kind: PropertyType) -> pa.DataType:
    """Return the Arrow type of a property that is not a Blob.

    >>> arrow_type(PropertyType(ScalarType.STRING, is_list=True))
    ListType(list<item: string>)
    """
    if kind.vector_dim is not None:
        return pa.list_(pa.float32(), kind.vector_dim)
    scalar = _SCALARS[kind.scalar]
    return pa.list_(scalar) if kind.is_list else scalar


def table_schema(ir: SchemaIR, one: Node | Edge) -> pa.Schema:
    """Return the columns of a table: id, for edges src and dst, then properties by property id."""
    system = ["id"] if one.kind == "node" else ["id", "src", "dst"]
    fields = [pa.field(name, pa.string(), nullable=False) for name in system]
    numbered = [(ir.property_id(one.kind, one.name, p.name), p) for p in one.properties]
    for number, prop in sorted(numbered, key=lambda pair: pair[0]):
        fields.append(_field(prop.name, prop.type, number))
    return pa.schema(fields)


def _field(name: str, kind: PropertyType, number: int) -> pa.Field:
    if kind.scalar is ScalarType.BLOB:
        made = blob_field(name, nullable=kind.nullable)
    else:
        made = pa.field(name, arrow_type(kind), nullable=kind.nullable)
    metadata = {**(made.metadata or {}), PROPERTY_ID: str(number).encode()}
    return made.with_metadata(metadata)
