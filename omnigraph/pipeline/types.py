"""Graph types as Spark types.

U32 becomes long, U64 decimal(20,0), DateTime timestamp, Vector array<float>, Blob binary; all
others have the same name. Conversion never changes a value: each Spark type holds every value of
its graph type.
"""

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.values import PropertyType, ScalarType

_TYPES: dict[ScalarType, tuple[str, pa.DataType]] = {
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
PLACES = ("_rowid", "_rowaddr")
_TEXT = PropertyType(ScalarType.STRING)


def spark_type(kind: PropertyType) -> str:
    """Return the Spark type of a property in SQL syntax.

    >>> spark_type(PropertyType(ScalarType.U64))
    'decimal(20,0)'
    >>> spark_type(PropertyType(ScalarType.VECTOR, vector_dim=2))
    'array<float>'
    """
    one = _TYPES[kind.scalar][0]
    return f"array<{one}>" if kind.is_list or kind.is_vector else one


def spark_arrow(kind: PropertyType) -> pa.DataType:
    """Return the Arrow type in which Spark expects a property."""
    one = _TYPES[kind.scalar][1]
    return pa.list_(one) if kind.is_list or kind.is_vector else one


def columns_of(one: Node | Edge) -> list[str]:
    """Return the columns of a type: id, src and dst of edges, then properties as declared."""
    system = ["id"] if isinstance(one, Node) else ["id", "src", "dst"]
    return [*system, *(prop.name for prop in one.properties)]


def kinds_of(one: Node | Edge, columns: Sequence[str]) -> list[PropertyType]:
    """Return the graph types of columns."""
    known = {prop.name: prop.type for prop in one.properties}
    return [known.get(name, _TEXT) for name in columns]


def ddl(one: Node | Edge, columns: Sequence[str], *, places: bool = False) -> str:
    """Return columns as a Spark schema."""
    kinds = kinds_of(one, columns)
    made = [f"{_quoted(n)} {spark_type(kind)}" for n, kind in zip(columns, kinds, strict=True)]
    return ", ".join([*made, *(f"{name} bigint" for name in PLACES if places)])


def arrow_schema(one: Node | Edge, columns: Sequence[str], *, places: bool = False) -> pa.Schema:
    """Return columns as the Arrow schema that Spark expects."""
    kinds = kinds_of(one, columns)
    made = [pa.field(n, spark_arrow(kind)) for n, kind in zip(columns, kinds, strict=True)]
    return pa.schema([*made, *(pa.field(name, pa.int64()) for name in PLACES if places)])


def as_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch of a table to the types of Spark."""
    columns = [batch.column(one.name).cast(one.type) for one in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _quoted(name: str) -> str:
    return f"`{name}`"
