"""A snapshot as NDJSON: nodes before edges, types by name, each table in id order.

The same snapshot always exports the same bytes, and loading them into an empty graph with the same
schema yields a graph that exports the same bytes again. Memory holds the ids of one table and the
rows of one piece.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_names
from omnigraph.storage.arrow import table_key
from omnigraph.storage.find import read, take_bytes
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.values import PropertyType, ScalarType, encode_export
from omnigraph.values.dates import format_date, format_datetime

_PIECE = 8192
_COUNTED = {ScalarType.DATE: pa.int32(), ScalarType.DATETIME: pa.int64()}


def export_lines(
    snapshot: Snapshot,
    types: Sequence[str] | None = None,
    *,
    iso_dates: bool = False,
    kinds: Collection[str] | None = None,
) -> Iterator[bytes]:
    """Yield the lines of an export, with newlines; `type_names` restricts the types.

    Dates are numbers, or ISO 8601 strings with `iso_dates`; both load back. `kinds` restricts the
    export to `node` or `edge`.
    """
    for one in chosen_types(snapshot, types):
        kept = kinds is None or table_key(one).partition(":")[0] in kinds
        if kept and snapshot.tables[table_key(one)].rows:
            yield from _of_type(one, snapshot.table(table_key(one)), iso_dates)


def chosen_types(snapshot: Snapshot, types: Sequence[str] | None) -> list[Node | Edge]:
    """Return the types with these names, nodes first; all by default. Raise for unknown names."""
    catalog = snapshot.schema.ir.catalog
    every: list[Node | Edge] = [*catalog.nodes, *catalog.edges]
    if types is None:
        return every
    types = require_names(types)
    known = {one.name for one in every}
    for name in types:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(reason=f"there is no type {quote_name(name)}", hint=hint)
    return [one for one in every if one.name in types]


def _of_type(one: Node | Edge, table: Table, iso_dates: bool) -> Iterator[bytes]:
    found = read(table, ["id"], places=True).select(["id", ROW_ID])
    ordered = found[ROW_ID].take(pc.sort_indices(found["id"])).combine_chunks()
    del found
    for start in range(0, len(ordered), _PIECE):
        rows = take_bytes(table, ordered.slice(start, _PIECE))
        yield from lines_of_rows(one, rows, iso_dates=iso_dates)


def lines_of_rows(one: Node | Edge, rows: pa.Table, *, iso_dates: bool = False) -> Iterator[bytes]:
    """Yield the lines of some rows of a type, in row order, with newlines."""
    columns = {prop.name: _values(prop.type, rows[prop.name], iso_dates) for prop in one.properties}
    columns["id"] = rows["id"].to_pylist()
    names = list(columns)
    ends = [rows[name].to_pylist() for name in ("src", "dst")] if isinstance(one, Edge) else None
    for at, values in enumerate(zip(*columns.values(), strict=True)):
        record: dict[str, Any] = {"data": dict(zip(names, values, strict=True))}
        if ends is None:
            record["type"] = one.name
        else:
            record |= {"edge": one.name, "from": ends[0][at], "to": ends[1][at]}
        yield orjson.dumps(record, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _values(kind: PropertyType, column: pa.ChunkedArray, iso_dates: bool) -> list[Any]:
    """Return the values of a column in their JSON form for exports."""
    if kind.scalar in _COUNTED:
        counted = _COUNTED[kind.scalar]
        column = column.cast(pa.list_(counted) if kind.is_list else counted)
        if iso_dates:
            spell = format_date if kind.scalar is ScalarType.DATE else format_datetime
            return [_spelled(spell, one) for one in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    if kind.scalar is ScalarType.BLOB:
        return [encode_export(kind, value) for value in values]
    return values


def _spelled(spell: Callable[[int], str], value: Any) -> Any:
    if isinstance(value, list):
        return [_spelled(spell, one) for one in value]
    return None if value is None else spell(value)
