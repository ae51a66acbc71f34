"""Graph types as Spark has them.

U32 becomes long, U64 decimal(20,0), DateTime timestamp, Vector array<float>, Blob binary; all
others are called alike. Values never change on the way: each Spark type holds all values of its
own.
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
    """The Spark type of a property, as SQL writes it.

    >>> spark_type(PropertyType(ScalarType.U64))
    'decimal(20,0)'
    >>> spark_type(PropertyType(ScalarType.VECTOR, vector_dim=2))
    'array<float>'
    """
    one = _TYPES[kind.scalar][0]
    return f"array<{one}>" if kind.is_list or kind.is_vector else one


def spark_arrow(kind: PropertyType) -> pa.DataType:
    """The Arrow type in which Spark takes a property."""
    one = _TYPES[kind.scalar][1]
    return pa.list_(one) if kind.is_list or kind.is_vector else one


def columns_of(one: Node | Edge) -> list[str]:
    """The columns of a type: id, of edges src and dst, then properties as declared."""
    system = ["id"] if isinstance(one, Node) else ["id", "src", "dst"]
    return [*system, *(prop.name for prop in one.properties)]


def kinds_of(one: Node | Edge, columns: Sequence[str]) -> list[PropertyType]:
    """The graph types of columns."""
    known = {prop.name: prop.type for prop in one.properties}
    return [known.get(name, _TEXT) for name in columns]


def ddl(one: Node | Edge, columns: Sequence[str], *, places: bool = False) -> str:
    """Columns as a Spark schema."""
    kinds = kinds_of(one, columns)
    made = [f"{_quoted(n)} {spark_type(kind)}" for n, kind in zip(columns, kinds, strict=True)]
    return ", ".join([*made, *(f"{name} bigint" for name in PLACES if places)])


def arrow_schema(one: Node | Edge, columns: Sequence[str], *, places: bool = False) -> pa.Schema:
    """Columns as Spark takes them from Arrow."""
    kinds = kinds_of(one, columns)
    made = [pa.field(n, spark_arrow(kind)) for n, kind in zip(columns, kinds, strict=True)]
    return pa.schema([*made, *(pa.field(name, pa.int64()) for name in PLACES if places)])


def as_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of a table in the types of Spark."""
    columns = [batch.column(one.name).cast(one.type) for one in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _quoted(name: str) -> str:
    return f"`{name}`"
