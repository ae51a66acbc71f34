"""Find rows by the values of their columns, a whole batch of values at a time.

Owns the choice between an index lookup and a scan: for a long list of values, reading the columns
is faster than looking up each value. Returns blobs as bytes, row ids and addresses on request.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.values import sha256_hex

from .blobs import is_blob, row_schema
from .failures import reported, storage_failure, unpanicked
from .lost_index import FAILURES, ask, ask_batches
from .scan import ROW_ADDRESS, ROW_ID
from .substrait import constants
from .table import Table

_ASKED = 256  # up to this many values are always looked up
_PIECE = 1 << 20  # rows that are filtered together
_SHARE = 50  # rows that can be scanned in the time that looking up one more value takes


def find(
    table: Table,
    where: Mapping[str, pa.Array | Sequence[Any]],
    columns: Sequence[str],
    *,
    places: bool = False,
) -> pa.Table:
    """Return rows whose every named column has one of its values.

    `with_row_ids` adds `_rowid` and `_rowaddr`. Nulls never match.
    """
    where = {name: _typed(table, name, values) for name, values in where.items()}
    fewest = min(len(values) for values in where.values())
    if fewest <= max(_ASKED, table.dataset.count_rows() // _SHARE):
        tests = [pc.field(name).isin(constants(values)) for name, values in where.items()]
        return read(table, columns, reduce(and_, tests), places=places)
    return _sieve(table, where, columns, places)


def read(
    table: Table,
    columns: Sequence[str],
    where: pc.Expression | None = None,
    *,
    places: bool = False,
) -> pa.Table:
    """Return all rows, or those that pass a filter, with blobs as bytes."""
    return ask(table, where, lambda use: _scanner(table, columns, where, places, use).to_table())


def read_indexed(table: Table, columns: Sequence[str], where: pc.Expression) -> pa.Table:
    """Return the rows that pass a filter, with row ids; raises if an index cannot be read."""
    try:
        with unpanicked():
            found: pa.Table = _scanner(table, columns, where, True, True).to_table()
    except (*FAILURES, ValueError, RuntimeError) as error:
        raise storage_failure(error, effect="none") from error
    return found


def read_unindexed(table: Table, columns: Sequence[str], *, places: bool = False) -> pa.Table:
    """Return all rows without using any index, to compare an index with."""
    with reported("none"):
        found: pa.Table = table.dataset.scanner(
            columns=list(columns),
            with_row_id=places,
            with_row_address=places,
            use_scalar_index=False,
        ).to_table()
    return found


def batches(
    table: Table,
    columns: Sequence[str],
    where: pc.Expression | None = None,
    *,
    places: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read_rows` batch by batch."""
    return ask_batches(
        table, where, lambda use: _scanner(table, columns, where, places, use).to_batches()
    )


def take_bytes(table: Table, row_ids: pa.Array, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all or some columns of rows by row id, in that order, with blobs as bytes."""
    names = list(columns) if columns is not None else table.schema.names
    blobs = [name for name in names if is_blob(table.schema.field(name))]
    plain = [name for name in names if name not in blobs]
    if not len(row_ids):  # else Lance would first build the row ids of the whole version
        return row_schema(table.schema).empty_table().select(names)
    with reported("none"):
        found = table.dataset._take_rows(row_ids, columns=[*plain, ROW_ID])
    place = pc.index_in(row_ids, value_set=found[ROW_ID].combine_chunks())
    rows = found.take(place).select(plain)
    for name in blobs:
        rows = rows.append_column(name, _blobs(table, name, row_ids))
    return rows.select(names)


def _blobs(table: Table, name: str, row_ids: pa.Array) -> pa.Array:
    with reported("none"):
        found = table.dataset.take_blobs(name, ids=row_ids.to_pylist())
        values = [None if one is None else one.read() for one in found]
    return pa.array(values, pa.large_binary())


def plain_values(values: pa.Array | Sequence[Any]) -> list[Any]:
    """Return values as JSON can hold them; `find` accepts them."""
    if not isinstance(values, pa.Array):
        return list(values)
    counted = {"date32[day]": pa.int32(), "timestamp[ms, tz=UTC]": pa.int64()}
    plain: list[Any] = values.cast(counted.get(str(values.type), values.type)).to_pylist()
    return plain


def digest(rows: pa.Table | str) -> str:
    """Return a digest of rows that does not depend on their order."""
    if isinstance(rows, str):
        return rows
    plain = [one.name for one in rows.schema if not pa.types.is_nested(one.type)]
    ordered = rows.sort_by([(name, "ascending") for name in plain])
    sink = pa.BufferOutputStream()
    bare = pa.schema([pa.field(one.name, one.type) for one in rows.schema])
    with pa.ipc.new_stream(sink, bare) as writer:
        writer.write_table(ordered.cast(bare).combine_chunks())
    return sha256_hex(sink.getvalue().to_pybytes())


def _typed(table: Table, name: str, values: pa.Array | Sequence[Any]) -> pa.Array:
    kind = table.schema.field(name).type
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


def _scanner(
    table: Table, columns: Sequence[str], where: pc.Expression | None, places: bool, indexed: bool
) -> "pa.dataset.Scanner":
    return table.dataset.scanner(
        columns=list(columns),
        filter=where,
        with_row_id=places,
        with_row_address=places,
        blob_handling="all_binary",
        use_scalar_index=indexed,
    )


def _sieve(
    table: Table, where: Mapping[str, pa.Array], columns: Sequence[str], places: bool
) -> pa.Table:
    """Scan and filter; memory holds one chunk and the rows found so far."""
    wanted = list(dict.fromkeys([*columns, *where]))
    kept, piece, held = [read(table, wanted, pc.scalar(False), places=places)], [], 0
    for one in batches(table, wanted, places=places):
        piece.append(one)
        held += one.num_rows
        if held > _PIECE:
            kept.append(_matching(piece, where))
            piece, held = [], 0
    if piece:
        kept.append(_matching(piece, where))
    return pa.concat_tables(kept).select([*columns, *((ROW_ID, ROW_ADDRESS) if places else ())])


def _matching(piece: list[pa.RecordBatch], where: Mapping[str, pa.Array]) -> pa.Table:
    """Return matching rows of a chunk; each filter builds a hash table of values, hence chunks."""
    rows = pa.Table.from_batches(piece)
    for name, values in where.items():
        rows = rows.filter(pc.is_in(rows[name], value_set=values, skip_nulls=True))
    return rows
