"""Inputs of the rules that need all records: ids, endpoints and unique tuples.

Owns their columns. Rows that were written are read back from their fragments, all other rows are
sent as task reports; both have the same columns.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.rules.delta import Positions

from .notes import notes
from .place import type_of
from .staged import Fragment, Make
from .tuples import groups, tuples

KEYS = "type int, id string, src string, dst string, spot bigint"
TUPLES = "type int, grp int, value string, id string, spot bigint"
Notes = Iterator[pa.RecordBatch]
_SYSTEM = ("id", "src", "dst")


def key_notes(
    one: Node | Edge, number: int, rows: pa.Table, spots: Positions, *, made: bool
) -> Notes:
    """Report ids and edge endpoints; a generated id is omitted, no other record can refer to it."""
    if not rows.num_rows or (made and isinstance(one, Node)):
        return
    ends = {"src": rows["src"], "dst": rows["dst"]} if isinstance(one, Edge) else {}
    ids = None if made else rows["id"]
    yield notes("key", rows.num_rows, type=number, id=ids, spot=spots, **ends)


def unique_notes(one: Node | Edge, number: int, rows: pa.Table, spots: Positions) -> Notes:
    """Report the `@unique` tuples; the key of a node needs none, it is the id."""
    for at, columns in enumerate(groups(one)):
        values = tuples(one, rows, columns)
        there = pc.is_valid(values).to_numpy(zero_copy_only=False)
        kept = pa.array(there)
        if there.any():
            yield notes(
                "unique",
                int(there.sum()),
                type=number,
                grp=at,
                id=rows["id"].filter(kept),
                value=values.filter(kept),
                spot=spots[there],
            )


def key_columns(one: Fragment) -> list[str]:
    """The columns of a fragment that hold ids and endpoints."""
    names = [] if one.made else ["id"]
    return names + (["src", "dst"] if one.key.startswith("edge:") else [])


def keyed(keys: Sequence[str]) -> Make:
    """Make the function that turns rows of fragments into `KEY_DDL` rows."""

    def make(one: Fragment, batch: pa.RecordBatch, spots: Positions) -> Notes:
        none = pa.nulls(batch.num_rows, pa.string())
        shown = [batch.column(n) if n in batch.schema.names else none for n in _SYSTEM]
        yield _batch(KEYS, [_number(keys, one, batch), *shown, pa.array(spots)])

    return make


def tuple_columns(ir: SchemaIR) -> Callable[[Fragment], list[str]]:
    """The columns of a fragment that hold unique values."""
    return lambda one: sorted({"id", *(n for g in groups(type_of(ir, one.key)) for n in g)})


def tupled(ir: SchemaIR, keys: Sequence[str]) -> Make:
    """Make the function that turns rows of fragments into `TUPLE_DDL` rows."""

    def make(one: Fragment, batch: pa.RecordBatch, spots: Positions) -> Notes:
        of, number = type_of(ir, one.key), keys.index(one.key)
        for note in unique_notes(of, number, pa.Table.from_batches([batch]), spots):
            yield note.select([field.partition(" ")[0] for field in TUPLES.split(", ")])

    return make


def _number(keys: Sequence[str], one: Fragment, batch: pa.RecordBatch) -> pa.Array:
    return pa.repeat(pa.scalar(keys.index(one.key), pa.int32()), batch.num_rows)


def _batch(ddl: str, columns: list[Any]) -> pa.RecordBatch:
    names = [field.partition(" ")[0] for field in ddl.split(", ")]
    return pa.RecordBatch.from_arrays(columns, names)
