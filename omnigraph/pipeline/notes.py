"""What tasks of a load tell: one small table of notes, of several kinds, in the order of the input.

`key`: an id and the ends of an edge. `unique`: the tuple of a constraint. `old`: the source that a
replaced edge had. `unread`, `broken`, `taken`, `held`: problems. `fragment`, `removed`: what was
written, and which stored rows it replaces. `noted`: a type has records that only notes tell of.
`count`, `lines`, `failure`: about a piece as a whole.
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
BULK = ("key", "unique", "old")  # as many as there are records; all others are few


def notes(kind: str, count: int, **columns: Any) -> pa.RecordBatch:
    """Notes of one kind; what is not given is null, one value stands for all."""
    arrays = [_column(one, columns.get(one.name), count) for one in SCHEMA]
    arrays[0] = pa.repeat(pa.scalar(kind, pa.string()), count)
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def note(kind: str, *, data: Any = None, **facts: Any) -> pa.RecordBatch:
    """One note; `data` is any object."""
    shown = {name: [value] for name, value in facts.items()}
    packed = None if data is None else [pickle.dumps(data)]
    return notes(kind, 1, data=packed, **shown)


def unpacked(data: bytes) -> Any:
    """The object of a note; our own tasks wrote it."""
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
