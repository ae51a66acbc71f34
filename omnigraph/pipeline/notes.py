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

SCHEMA = pa.schema(
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
DDL = (
    "kind string, type int, grp int, id string, src string, dst string, value string, "
    "spot bigint, data binary"
)
BULK = ("key", "unique", "old")  # kinds with a row per record; the driver collects all others


def notes(kind: str, count: int, **columns: Any) -> pa.RecordBatch:
    """Build reports of one kind; omitted columns are null, a scalar is repeated for all rows."""
    arrays = [_column(one, columns.get(one.name), count) for one in SCHEMA]
    arrays[0] = pa.repeat(pa.scalar(kind, pa.string()), count)
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def note(kind: str, *, data: Any = None, **facts: Any) -> pa.RecordBatch:
    """Build one report; `data` is any picklable object."""
    shown = {name: [value] for name, value in facts.items()}
    packed = None if data is None else [pickle.dumps(data)]
    return notes(kind, 1, data=packed, **shown)


def unpacked(data: bytes) -> Any:
    """Return the object of a report. Only our own tasks wrote it, so unpickling is safe."""
    return pickle.loads(data)  # noqa: S301


def _column(field: pa.Field, given: Any, count: int) -> pa.Array:
    if given is None:
        return pa.nulls(count, field.type)
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Array):
        return given.cast(field.type)
    if isinstance(given, Sequence) or hasattr(given, "__len__"):
        return pa.array(given, field.type)
    return pa.repeat(pa.scalar(given, field.type), count)
