"""Records that are not text: dicts, dataclasses, Arrow tables, pandas and polars frames.

Frames are read through their Arrow interface; never imports pandas or polars. A mapping assigns a
type name to each input; without it, every record names its own type.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_text

from .casts import cast_column
from .envelope import as_text, placed, take
from .intake import Faults, Intake, Shelf, adding, unknown_properties

_ENDS = {"from": "src", "to": "dst"}


def is_text(data: Any) -> bool:
    """Return whether an input is a path, a file or bytes, whose content is NDJSON."""
    return isinstance(data, str | os.PathLike | bytes) or hasattr(data, "read")


def take_table(intake: Intake, one: Node | Edge, table: pa.Table, first: int = 1) -> None:
    """Take a table whose rows are numbered from `first_row_number`."""
    _take_table(intake.shelf(one), table, first)


def take_records(intake: Intake, data: Any, *, truncating: bool) -> None:
    """Take tables by type name, or an iterable of records that name their types."""
    if isinstance(data, Mapping):
        for name, part in data.items():
            _take_part(intake, type_named(intake, name), part)
    elif _is_frame(data):
        raise InputError("a table needs the name of its type", reason='pass {"Type": table}')
    elif isinstance(data, Iterable):
        for number, record in enumerate(data, 1):
            take(intake, number, _enveloped(intake, record), truncating=truncating)
    else:
        kind = type(data).__name__
        raise InputError(f"cannot load {kind}", reason="expected a path, a file, records or tables")


def type_named(intake: Intake, name: str) -> Node | Edge:
    """Return the type with a name; a node type takes precedence over an edge type."""
    require_text(name, "type")
    catalog = intake.ir.catalog
    found: Node | Edge | None = catalog.node(name) or catalog.edge_by_word(name)
    if found is None:
        known = [one.name for one in catalog.nodes] + [one.name for one in catalog.edges]
        hint = did_you_mean(name, known, "pass a CSV or Parquet file as Type=file")
        raise InputError(reason=f"there is no type {quote_name(name)}", hint=hint)
    return found


def _take_part(intake: Intake, one: Node | Edge, part: Any) -> None:
    shelf = intake.shelf(one)
    if _is_frame(part):
        _take_table(shelf, _table(part))
        return
    for number, record in enumerate(part, 1):
        try:
            _take_record(shelf, number, _fields(record))
        except ClientError as error:
            intake.problems.add(placed(error, number), number, one.name)


def _take_record(shelf: Shelf, number: int, record: dict[str, Any]) -> None:
    if not isinstance(shelf.type, Edge):
        ends = None
    else:
        record = {_ENDS.get(name, name): value for name, value in record.items()}
        ends = (_end(record.pop("src", None), "from"), _end(record.pop("dst", None), "to"))
    shelf.add(number, record, ends, unknown_properties(shelf.type, record, shelf.known))


def _end(value: Any, name: str) -> str:
    if not isinstance(value, str):
        got = "nothing" if value is None else type(value).__name__
        reason = f"'{name}' must be a string, got {got}"
        raise InputError(reason=reason, member=name, hint=as_text(value))
    return value


def _fields(record: Any) -> dict[str, Any]:
    if isinstance(record, Mapping):
        return dict(record)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    raise InputError(reason=f"expected a dict or a dataclass, got {type(record).__name__}")


def _enveloped(intake: Intake, record: Any) -> Any:
    """Wrap a dataclass instance in an envelope named after its class; return dicts unchanged."""
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    fields, name = _fields(record), type(record).__name__
    if intake.ir.catalog.node(name) is not None:
        return {"type": name, "data": fields}
    renamed = {_ENDS.get(each, each): value for each, value in fields.items()}
    ends = {"from": renamed.pop("src", None), "to": renamed.pop("dst", None)}
    return {"edge": name, **ends, "data": renamed}


def _is_frame(data: Any) -> bool:
    marks = ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow")
    return any(hasattr(data, one) for one in marks) and not isinstance(data, pa.Array)


def _table(part: Any) -> pa.Table:
    if isinstance(part, pa.Table):
        return part
    if hasattr(part, "__arrow_c_stream__") or hasattr(part, "__arrow_c_array__"):
        return pa.table(part)
    return part.to_arrow()


def _take_table(shelf: Shelf, table: pa.Table, first: int = 1) -> None:
    """Take columns unchanged where they fit, and cast them where nothing is lost."""
    table = _ours(shelf, table)
    faults: Faults = {}
    fault = adding(faults)
    columns: dict[str, pa.Array] = {}
    for prop in shelf.type.properties:
        given = _given(table, prop.name, shelf.defaults[prop.name])
        columns[prop.name] = cast_column(prop, given, shelf.type.name, fault, shelf.limits)
    if isinstance(shelf.type, Edge):
        for name, column in _ENDS.items():
            columns[column] = _end_column(table, column, name, faults)
    count = table.num_rows
    ids = _given(table, "id", None)
    given = None if ids.null_count == count else ids
    columns["id"] = shelf.identify(_rows(columns, count), given, faults, count)
    shelf.take_columns(columns, faults, np.arange(first, first + count, dtype=np.int64))


def _ours(shelf: Shelf, table: pa.Table) -> pa.Table:
    """Rename the columns to their stored names; raise for unknown names."""
    edge = isinstance(shelf.type, Edge)
    names = [_ENDS.get(name, name) if edge else name for name in table.column_names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(reason=f"column '{twice}' is given twice")
    known = shelf.known | ({"src", "dst"} if edge else set())
    for error in unknown_properties(shelf.type, names, known):
        raise error
    return table.rename_columns(names)


def _given(table: pa.Table, name: str, default: Any) -> pa.Array:
    if name in table.column_names:
        return table[name].combine_chunks()
    if default is None:
        return pa.nulls(table.num_rows)
    return pa.array([default] * table.num_rows)


def _end_column(table: pa.Table, column: str, name: str, faults: Faults) -> pa.Array:
    given = _given(table, column, None)
    if pa.types.is_string(given.type) and not given.null_count:
        return given
    made: list[str | None] = []
    for at, value in enumerate(given.to_pylist()):
        try:
            made.append(_end(value, name))
        except InputError as error:
            faults.setdefault(at, []).append(error)
            made.append(None)
    return pa.array(made, pa.string())


def _rows(columns: dict[str, pa.Array], count: int) -> pa.Table:
    return pa.table(columns) if columns else pa.table({"": pa.nulls(count)})
