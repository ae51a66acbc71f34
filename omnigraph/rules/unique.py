"""`@key` and `@unique`: no two entities share a tuple in the final state of an operation.

A null member exempts a row. A value that the same operation frees may be reused. The key of a node
is its id, so a stored row with the same key is the same row and is not looked up.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Edge, Key, Node, Unique
from omnigraph.values import PropertyType, ScalarType, canonical_spelling

from .delta import Positions, TableDelta, flat
from .lookup import Lookup
from .violation import Violation

_TEXT = PropertyType(ScalarType.STRING)
# Temporary columns; `#` cannot occur in a schema's column names.
_AT, _HOLDER = "#at", "#holder"
_FIRST, _MANY = f"{_AT}_min", f"{_AT}_count"


def repeated_records(one: Node | Edge, delta: TableDelta) -> Iterator[Violation]:
    """Yield records of one input that repeat a tuple, even for the same id."""
    if delta.records and delta.versions.num_rows > 1:
        for columns in _groups(one):
            yield from _repeated(one, delta, delta.versions, columns, delta.lines)


def unique_violations(one: Node | Edge, delta: TableDelta, lookup: Lookup) -> Iterator[Violation]:
    """Yield rows of the final state that share a tuple: both written, or one of them stored."""
    for columns in _groups(one):
        if delta.rows.num_rows > 1 and not delta.records:
            lines = None if delta.lines is None else delta.lines[delta.latest]
            yield from _repeated(one, delta, delta.rows, columns, lines)
        if not delta.whole and not _is_key(one, columns):
            yield from _held(one, delta, columns, lookup)


def judged_columns(one: Node | Edge) -> list[str]:
    """Return the columns that rules across rows read: ids, endpoints, keys, `@unique` members."""
    ends = ["src", "dst"] if isinstance(one, Edge) else []
    return list(dict.fromkeys(["id", *ends, *(name for some in _groups(one) for name in some)]))


def _groups(one: Node | Edge) -> list[tuple[str, ...]]:
    return [rule.columns for rule in one.constraints if isinstance(rule, Key | Unique)]


def _is_key(one: Node | Edge, columns: Sequence[str]) -> bool:
    return isinstance(one, Node) and one.key == tuple(columns)


def _repeated(
    one: Node | Edge,
    delta: TableDelta,
    rows: pa.Table,
    columns: Sequence[str],
    lines: Positions | None,
) -> Iterator[Violation]:
    tuples = _tuples(rows, columns)
    grouped = tuples.group_by(list(columns), use_threads=False)
    counted = grouped.aggregate([(_AT, "min"), (_AT, "count")])
    if counted.num_rows == tuples.num_rows:
        return
    many = counted.filter(pc.greater(counted[_MANY], 1))
    first = tuples.join(many, list(columns), join_type="inner", use_threads=False)
    pairs = first.select([_AT, _FIRST]).sort_by(_AT)
    for at, before in zip(pairs[_AT].to_pylist(), pairs[_FIRST].to_pylist(), strict=True):
        if at != before:
            yield Violation(
                "@unique",
                delta.key,
                rows["id"][at].as_py(),
                _named(columns),
                line=None if lines is None else int(lines[at]),
                value=_spelled(one, rows, columns, at),
                other_id=rows["id"][before].as_py(),
                other_line=None if lines is None else int(lines[before]),
            )


def _held(
    one: Node | Edge, delta: TableDelta, columns: Sequence[str], lookup: Lookup
) -> Iterator[Violation]:
    tuples = _tuples(delta.rows, columns)
    if not tuples.num_rows:
        return
    where = {name: _asked(flat(tuples[name])) for name in columns}
    found = lookup.find(delta.key, where, list(dict.fromkeys(["id", *columns])))
    found = found.filter(pc.invert(pc.is_in(found["id"], value_set=delta.ids)))
    found = found.filter(pc.invert(pc.is_in(found["id"], value_set=delta.removed_ids)))
    if not found.num_rows:
        return
    holders = _tuples(found, columns).append_column(_HOLDER, found["id"].take(_ats(found, columns)))
    both = tuples.join(holders.drop_columns([_AT]), list(columns), join_type="inner")
    for at, holder in sorted(zip(both[_AT].to_pylist(), both[_HOLDER].to_pylist(), strict=True)):
        yield Violation(
            "@unique",
            delta.key,
            delta.ids[at].as_py(),
            _named(columns),
            line=delta.line(int(delta.latest[at])),
            value=_spelled(one, delta.rows, columns, at),
            other_id=holder,
        )


def _tuples(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the tuples without nulls, with their positions; both float zeros are one value."""
    found = {name: _even(flat(rows[name])) for name in columns}
    made = pa.table({**found, _AT: np.arange(rows.num_rows, dtype=np.int64)})
    for name in columns:
        if made[name].null_count:
            made = made.filter(pc.is_valid(made[name]))
    return made


def _ats(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    return flat(_tuples(rows, columns)[_AT])


def _even(column: pa.Array) -> pa.Array:
    floating = pa.types.is_floating(column.type)
    return pc.add(column, pa.scalar(0.0, column.type)) if floating else column


def _asked(values: pa.Array) -> pa.Array:
    """Return the values to look up; a zero may be stored with either sign."""
    distinct = values.unique()
    if not pa.types.is_floating(values.type):
        return distinct
    zeros = pc.is_in(distinct, value_set=pa.array([0.0], values.type))
    signed = [distinct, pa.array([-0.0], values.type)] if pc.any(zeros).as_py() else [distinct]
    return pa.concat_arrays(signed)


def _named(columns: Sequence[str]) -> str | tuple[str, ...]:
    return columns[0] if len(columns) == 1 else tuple(columns)


def _spelled(one: Node | Edge, rows: pa.Table, columns: Sequence[str], at: int) -> str:
    return ", ".join(_spelling(one, rows, name, at) for name in columns)


def _spelling(one: Node | Edge, rows: pa.Table, name: str, at: int) -> str:
    prop = one.property(name)
    kind = prop.type if prop is not None else _TEXT
    scalar = rows[name][at]
    counted = kind.scalar in (ScalarType.DATE, ScalarType.DATETIME)
    return canonical_spelling(kind, scalar.value if counted else scalar.as_py())
