"""Reports about single records, stored as Arrow batches with a separate schema for each kind.

Spark joins and counts these rows, so the driver does not collect them with the other reports. All of a task's reports
share one DataFrame, which has the columns of all kinds. A batch is padded with null columns before it leaves the task,
and reduced to its own columns when rows of its kind are selected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPARK_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary"}
# The DataFrame's columns are `kind`, then the columns for per-record reports, then the remaining columns.
REPORT_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("type", pa.int32()),
        ("grp", pa.int32()),
        ("id", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
        ("value", pa.string()),
        ("spot", pa.int64()),
        ("members", pa.string()),
        ("payload", pa.binary()),
    ]
)


def spark_ddl(schema: pa.Schema) -> str:
    """Return a schema's columns in Spark DDL syntax.

    >>> spark_ddl(pa.schema([("type", pa.int32()), ("spot", pa.int64())]))
    'type int, spot bigint'
    """
    return ", ".join(f"{column.name} {_SPARK_TYPES[column.type]}" for column in schema)


@dataclass(frozen=True, slots=True)
class RowKind:
    """A kind of per-record report, with its columns."""

    kind: str
    schema: pa.Schema

    @property
    def ddl(self) -> str:
        """The columns in Spark DDL syntax."""
        return spark_ddl(self.schema)

    def batch(self, row_count: int, **columns: Any) -> pa.RecordBatch:
        """Build rows of this kind; missing columns are null, and a scalar is repeated for all rows."""
        arrays = [_column_array(column, columns.get(column.name), row_count) for column in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def to_report(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Extend rows of this kind to the columns of all kinds."""
        columns = {name: rows.column(name) for name in self.schema.names}
        return widen_batch(self.kind, rows.num_rows, columns)

    def from_report(self, reports: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of this kind, with only this kind's columns."""
        own_rows = reports.filter(pc.equal(reports.column("kind"), self.kind))
        return own_rows.select(self.schema.names)

    def select_from(self, task_reports: "DataFrame", types: Sequence[int] | None = None) -> "DataFrame":
        """Select the rows of this kind from all task reports, for some or all types."""
        own_rows = task_reports.where(task_reports.kind == self.kind)
        if types is not None:
            own_rows = own_rows.where(own_rows.type.isin(list(types)))
        return own_rows.select(*self.schema.names)


# A record's id and, for an edge, its endpoints. A generated id is null.
KEY_ROWS = RowKind(
    "key",
    pa.schema(
        [("type", pa.int32()), ("id", pa.string()), ("src", pa.string()), ("dst", pa.string()), ("spot", pa.int64())]
    ),
)
# A record's tuple for a `@unique` constraint. `grp` is the constraint's number.
TUPLE_ROWS = RowKind(
    "unique",
    pa.schema(
        [("type", pa.int32()), ("grp", pa.int32()), ("value", pa.string()), ("id", pa.string()), ("spot", pa.int64())]
    ),
)
# A stored edge that a loaded edge replaces.
REPLACED_EDGE_ROWS = RowKind("old", pa.schema([("type", pa.int32()), ("id", pa.string()), ("src", pa.string())]))
# The patched rows in one fragment, packed as bytes. `grp` is the fragment's id.
PATCHED_ROWS = RowKind("patched", pa.schema([("type", pa.int32()), ("grp", pa.int32()), ("payload", pa.binary())]))
ROW_KINDS = (KEY_ROWS, TUPLE_ROWS, REPLACED_EDGE_ROWS, PATCHED_ROWS)


def widen_batch(kind: str, row_count: int, columns: dict[str, Any]) -> pa.RecordBatch:
    """Build a batch with the columns for all kinds of reports; missing columns are null."""
    columns = {**columns, "kind": kind}
    arrays = [_column_array(column, columns.get(column.name), row_count) for column in REPORT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=REPORT_SCHEMA)


def _column_array(column: pa.Field, values: Any, row_count: int) -> pa.Array:
    if values is None:
        return pa.nulls(row_count, column.type)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values.cast(column.type)
    if hasattr(values, "__len__") and not isinstance(values, str | bytes):
        return pa.array(values, column.type)
    return pa.repeat(pa.scalar(values, column.type), row_count)
