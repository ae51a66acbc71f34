"""Reports of the tasks of a load: one table of rows of several kinds, in input order.

`key`: an id and the endpoints of an edge. `unique`: the tuple of a constraint. `old`: the source of
a replaced edge. `unread`, `broken`, `taken`, `held`: problems. `fragment`, `removed`: what was
written, and which stored rows it replaces. `noted`: a type has records that exist only in reports.
`count`, `lines`, `failure`: about a whole piece.
"""

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

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
        ("data", pa.binary()),
    ]
)
REPORT_DDL = (
    "kind string, type int, grp int, id string, src string, dst string, value string, "
    "spot bigint, data binary"
)
PER_RECORD_KINDS = (
    "key",
    "unique",
    "old",
)  # kinds with a row per record; the driver collects all others


def report_batch(kind: str, count: int, **columns: Any) -> pa.RecordBatch:
    """Build reports of one kind; omitted columns are null, a scalar is repeated for all rows."""
    arrays = [
        _report_column(report_field, columns.get(report_field.name), count)
        for report_field in REPORT_SCHEMA
    ]
    arrays[0] = pa.repeat(pa.scalar(kind, pa.string()), count)
    return pa.RecordBatch.from_arrays(arrays, schema=REPORT_SCHEMA)


def report_row(kind: str, *, data: Any = None, **facts: Any) -> pa.RecordBatch:
    """Build one report; `data` is any picklable object."""
    single_values = {name: [value] for name, value in facts.items()}
    pickled = None if data is None else [pickle.dumps(data)]
    return report_batch(kind, 1, data=pickled, **single_values)


def unpickle_data(data: bytes) -> Any:
    """Return the object of a report. Only our own tasks wrote it, so unpickling is safe."""
    return pickle.loads(data)  # noqa: S301


def _report_column(field: pa.Field, values: Any, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, field.type)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values.cast(field.type)
    if isinstance(values, Sequence) or hasattr(values, "__len__"):
        return pa.array(values, field.type)
    return pa.repeat(pa.scalar(values, field.type), count)
