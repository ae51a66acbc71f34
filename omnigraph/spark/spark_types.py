"""Map graph types to Spark types.

U32 maps to bigint, U64 to decimal(20,0), DateTime to timestamp, Vector to array<float>, and Blob to binary. Every other
type maps to its direct Spark counterpart. Conversion to Spark never changes a value, because each Spark type can
represent every value of its graph type. Types are written as DDL strings, which do not require pyspark.
"""

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.values import PropertyType, ScalarType

_SPARK_TYPES: dict[ScalarType, tuple[str, pa.DataType]] = {
    ScalarType.STRING: ("string", pa.string()),
    ScalarType.BOOL: ("boolean", pa.bool_()),
    ScalarType.I32: ("int", pa.int32()),
    ScalarType.I64: ("bigint", pa.int64()),
    ScalarType.U32: ("bigint", pa.int64()),
    ScalarType.U64: ("decimal(20,0)", pa.decimal128(20, 0)),
    ScalarType.F32: ("float", pa.float32()),
    ScalarType.F64: ("double", pa.float64()),
    ScalarType.DATE: ("date", pa.date32()),
    ScalarType.DATETIME: ("timestamp", pa.timestamp("us", tz="UTC")),
    ScalarType.BLOB: ("binary", pa.binary()),
    ScalarType.VECTOR: ("float", pa.float32()),
}
ROW_ID_COLUMNS = ("_rowid", "_rowaddr")
_STRING_TYPE = PropertyType(ScalarType.STRING)


def spark_type(property_type: PropertyType) -> str:
    """Return a property's Spark type in SQL syntax.

    >>> spark_type(PropertyType(ScalarType.U64))
    'decimal(20,0)'
    >>> spark_type(PropertyType(ScalarType.VECTOR, vector_dim=2))
    'array<float>'
    """
    element_type = _SPARK_TYPES[property_type.scalar][0]
    return f"array<{element_type}>" if property_type.is_list or property_type.is_vector else element_type


def spark_arrow_type(property_type: PropertyType) -> pa.DataType:
    """Return the Arrow type that Spark expects for a property."""
    element_type = _SPARK_TYPES[property_type.scalar][1]
    return pa.list_(element_type) if property_type.is_list or property_type.is_vector else element_type


def columns_of_type(entity_type: NodeType | EdgeType) -> list[str]:
    """Return a type's columns: id, then src and dst for an edge type, then the properties in declaration order."""
    system_columns = ["id"] if isinstance(entity_type, NodeType) else ["id", "src", "dst"]
    return [*system_columns, *(prop.name for prop in entity_type.properties)]


def property_types_of(entity_type: NodeType | EdgeType, columns: Sequence[str]) -> list[PropertyType]:
    """Return the graph type for each column."""
    declared_types = {prop.name: prop.type for prop in entity_type.properties}
    return [declared_types.get(column, _STRING_TYPE) for column in columns]


def spark_ddl(entity_type: NodeType | EdgeType, columns: Sequence[str], *, with_row_ids: bool = False) -> str:
    """Return the given columns as a Spark schema in DDL syntax."""
    property_types = property_types_of(entity_type, columns)
    definitions = [
        f"{_quote_name(column)} {spark_type(property_type)}"
        for column, property_type in zip(columns, property_types, strict=True)
    ]
    return ", ".join([*definitions, *(f"{name} bigint" for name in ROW_ID_COLUMNS if with_row_ids)])


def spark_arrow_schema(
    entity_type: NodeType | EdgeType, columns: Sequence[str], *, with_row_ids: bool = False
) -> pa.Schema:
    """Return the given columns as the Arrow schema that Spark expects."""
    property_types = property_types_of(entity_type, columns)
    fields = [
        pa.field(column, spark_arrow_type(property_type))
        for column, property_type in zip(columns, property_types, strict=True)
    ]
    return pa.schema([*fields, *(pa.field(name, pa.int64()) for name in ROW_ID_COLUMNS if with_row_ids)])


def cast_to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch of table rows to the Spark types."""
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _quote_name(name: str) -> str:
    return f"`{name}`"
