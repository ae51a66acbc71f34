"""Fast path for NDJSON: convert a block of ordinary records into columns without Python objects.

Owns what is ordinary: input that Arrow's JSON reader interprets exactly as the strict line reader
does. Rejects every other block as a whole; must never report or hide a problem.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.errors import ClientError
from omnigraph.lang.schema.catalog import Edge, Node, Property
from omnigraph.rules.delta import Positions
from omnigraph.storage.arrow import arrow_type, table_key
from omnigraph.values import PropertyType, ScalarType

from .columns import column, within_limits
from .intake import Faults, Intake, Shelf, adding

_HEAD = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\]+)"')
_NEWLINE, _OPEN, _CLOSE, _RETURN = b"\n{}\r"
_MOMENTS = (ScalarType.DATE, ScalarType.DATETIME)
# Integers beyond these may not be exact floats any more; the strict reader decides.
_EXACT = {ScalarType.F32: 2.0**24, ScalarType.F64: 2.0**53}
Part = tuple[bytes, bytes, bytes, Positions]  # "type" or "edge", type name, lines, line numbers


class UnusualError(Exception):
    """A block must be read line by line."""


def take_block(intake: Intake, block: bytes, first: int) -> bool:
    """Take all records of a block, numbered from `first_number`, or none; return whether taken."""
    try:
        taken = [_columns(intake, part) for part in _parts(intake, block, first)]
        # An edge type may have two names; its lines would then be in two groups, out of order.
        _demand(len({table_key(shelf.type) for shelf, _, _ in taken}) == len(taken))
    except (UnusualError, UnicodeDecodeError, pa.ArrowException, ClientError):
        return False
    for shelf, columns, lines in taken:
        shelf.flush()
        intake.shelves.setdefault(table_key(shelf.type), shelf)
        shelf.take_columns(columns, {}, lines)
    return True


def _demand(fact: Any) -> None:
    if not fact:
        raise UnusualError


def _parts(intake: Intake, block: bytes, first: int) -> list[Part]:
    """Group the lines of a block by the type named at the beginning of each line."""
    if not block.isascii():
        block.decode()
    data = np.frombuffer(block, np.uint8)
    ends = np.append(np.flatnonzero(data == _NEWLINE), len(data))
    starts = np.append(0, ends[:-1] + 1)
    longest = int((ends - starts).max())
    limits = intake.limits
    _demand(starts[-1] < len(data) and longest <= min(limits.slots, limits.line_bytes))
    last = data[ends - 1]
    closed = (last == _CLOSE) | ((last == _RETURN) & (data[ends - 2] == _CLOSE))
    _demand((data[starts] == _OPEN).all() and closed.all())
    numbers = np.arange(first, first + len(starts), dtype=np.int64)
    head = _HEAD.match(block)
    if head is not None and block.count(b"\n" + head[0]) == len(starts) - 1:
        return [(head[1], head[2], block, numbers)]
    return _sorted(block, numbers)


def _sorted(block: bytes, numbers: Positions) -> list[Part]:
    lines = block.split(b"\n")
    found: dict[tuple[bytes, bytes], list[int]] = {}
    for at, line in enumerate(lines):
        head = _HEAD.match(line)
        if head is None:
            raise UnusualError
        found.setdefault((head[1], head[2]), []).append(at)
    return [
        (kind, name, b"\n".join([lines[at] for at in places]), numbers[places])
        for (kind, name), places in found.items()
    ]


def _columns(intake: Intake, part: Part) -> tuple[Shelf, dict[str, pa.Array], Positions]:
    kind, name, text, lines = part
    shelf = _shelf(intake, kind, name.decode())
    limit = shelf.limits.rows
    _demand(limit is None or shelf.count + len(lines) <= limit)
    records = _read(shelf, kind.decode(), text)
    _demand(records.num_rows == len(lines))
    nulls = b"null" in text
    columns: dict[str, pa.Array] = {}
    if isinstance(shelf.type, Edge):
        columns["src"], columns["dst"] = _whole(records, "from"), _whole(records, "to")
    data = records["data"].combine_chunks()
    _demand(not (data.null_count and nulls))
    values = dict(zip([field.name for field in data.type], data.flatten(), strict=True))
    for prop in shelf.type.properties:
        columns[prop.name] = _column(shelf, prop, values[prop.name], nulls=nulls)
    given = values.get("id")
    _demand(given is None or not (given.null_count and nulls))
    faults: Faults = {}
    rows = pa.table({p.name: columns[p.name] for p in shelf.type.properties})
    columns["id"] = shelf.identify(rows, given, faults, len(lines))
    _demand(not faults)
    return shelf, columns, lines


def _shelf(intake: Intake, kind: bytes, name: str) -> Shelf:
    """Return the buffer of a type; a new one joins the intake only when its records are taken."""
    catalog = intake.ir.catalog
    one: Node | Edge | None = catalog.node(name) if kind == b"type" else catalog.edge_by_word(name)
    if one is None:
        raise UnusualError
    known = intake.shelves.get(table_key(one))
    return known or Shelf(intake.ir, one, intake.problems, intake.limits)


def _read(shelf: Shelf, kind: str, text: bytes) -> pa.Table:
    data = [(prop.name, _written(prop, text)) for prop in shelf.type.properties]
    if b'"id"' in text:
        data.append(("id", pa.string()))
    _demand(data)
    names = [kind, "from", "to"] if kind == "edge" else [kind]
    fields = [(name, pa.string()) for name in names]
    schema = pa.schema([*fields, ("data", pa.struct(data))])
    return pj.read_json(
        pa.BufferReader(text),
        pj.ReadOptions(use_threads=False, block_size=max(len(text) + 1, 1 << 16)),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _written(prop: Property, text: bytes) -> pa.DataType:
    """Return the Arrow type in which a property's values appear in the JSON text."""
    kind = prop.type
    if kind.is_list or kind.is_vector:
        return pa.list_(_item(kind.element(), prop.name, text))
    return _item(kind, prop.name, text)


def _item(kind: PropertyType, name: str, text: bytes) -> pa.DataType:
    if kind.scalar.is_float:
        return pa.float64()
    if kind.scalar is ScalarType.BLOB:
        return pa.string()
    if kind.scalar in _MOMENTS:
        quoted = re.search(rb'"' + name.encode() + rb'"\s*:\s*\[?\s*"', text)
        return pa.string() if quoted else pa.int64()
    return arrow_type(kind)


def _whole(records: pa.Table, name: str) -> pa.Array:
    found = records[name].combine_chunks()
    _demand(not found.null_count)
    return found


def _column(shelf: Shelf, prop: Property, given: pa.Array, *, nulls: bool) -> pa.Array:
    """Return the column of a property as the strict reader would build it."""
    kind, default = prop.type, shelf.defaults[prop.name]
    if given.null_count and default is not None:
        _demand(not nulls)  # Arrow does not distinguish an explicit null from an absent member
        return _one_by_one(shelf, prop, [default if v is None else v for v in given.to_pylist()])
    _demand(kind.nullable or not given.null_count)
    if kind.scalar in _MOMENTS or kind.scalar is ScalarType.BLOB:
        return _each(shelf, prop, given)
    if kind.is_list or kind.is_vector:
        made = _lists(kind, given)
    else:
        made = _floats(kind.scalar, given) if kind.scalar.is_float else given
    within_limits(made, f"{shelf.type.name}.{prop.name}", shelf.limits)
    return made


def _each(shelf: Shelf, prop: Property, given: pa.Array) -> pa.Array:
    """Convert every distinct value once."""
    if pa.types.is_list(given.type):
        return _one_by_one(shelf, prop, given.to_pylist())
    coded = given.dictionary_encode()
    made = _one_by_one(shelf, prop, coded.dictionary.to_pylist())
    return made.take(coded.indices)


def _one_by_one(shelf: Shelf, prop: Property, values: list[Any]) -> pa.Array:
    faults: Faults = {}
    made = column(prop, values, shelf.type.name, adding(faults), shelf.limits)
    _demand(not faults)
    return made


def _floats(scalar: ScalarType, given: pa.Array) -> pa.Array:
    """Return float values whose text has only one interpretation."""
    held = given.drop_null().to_numpy(zero_copy_only=False)
    _demand((np.abs(held) < _EXACT[scalar]).all())  # also rejects infinities and NaN
    _demand(not (np.signbit(held) & (held == 0)).any())  # "-0" is an integer, without a sign
    return given.cast(pa.float32(), safe=False) if scalar is ScalarType.F32 else given


def _lists(kind: PropertyType, given: pa.Array) -> pa.Array:
    items = given.flatten()
    _demand(not items.null_count)
    element = kind.element()
    if element.scalar.is_float:
        items = _floats(element.scalar, items)
    if kind.vector_dim is None:
        if not element.scalar.is_float:
            return given.cast(arrow_type(kind))
        return _relisted(given, items).cast(arrow_type(kind))
    _demand((given.drop_null().value_lengths().to_numpy() == kind.vector_dim).all())
    made = pa.FixedSizeListArray.from_arrays(items, kind.vector_dim).cast(arrow_type(kind))
    return made.take(_places(given)) if given.null_count else made


def _places(given: pa.Array) -> pa.Array:
    """Return each value's position among the non-null values; null for null."""
    absent = pc.is_null(given).to_numpy(zero_copy_only=False)
    return pa.array(np.cumsum(~absent) - 1, pa.int64(), mask=absent)


def _relisted(given: pa.Array, items: pa.Array) -> pa.Array:
    """Return lists of the same lengths with other items."""
    lengths = pc.fill_null(given.value_lengths(), 0).to_numpy(zero_copy_only=False)
    ends = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    absent = pc.is_null(given) if given.null_count else None
    return pa.ListArray.from_arrays(ends, items, mask=absent)
