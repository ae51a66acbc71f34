"""Fetching properties: the only module that turns row ids into values.

A variable may be null, may have several types, and may repeat the same id in many rows; fetched
columns are always aligned with the rows. Each column is read once per set of rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.lang.query.free import parts_of
from omnigraph.storage.scan import aligned, take

from .columns import hot_columns
from .context import Context
from .rows import NULL, Binding, Ids, Rows

Column = tuple[str, str]  # a variable and the name of a column of its table

SYSTEM = {"id": "id", "from": "src", "to": "dst"}


def needs(*pieces: plan.Value | plan.Predicate | plan.Ranking | None) -> set[Column]:
    """Return the columns that values, predicates and rankings read.

    >>> from omnigraph.values import PropertyType, ScalarType
    >>> age = plan.PropertyValue("p", "age", PropertyType(ScalarType.I32))
    >>> needs(plan.IsNull(age), plan.Entity("q", "Person")) == {("p", "age"), ("q", "id")}
    True
    """
    found: set[Column] = set()
    for piece in pieces:
        found |= _needs(piece)
    return found


def _needs(piece: plan.Value | plan.Predicate | plan.Ranking | None) -> set[Column]:
    match piece:
        case plan.PropertyValue():
            return {(piece.variable, piece.name)}
        case plan.SystemValue():
            return {(piece.variable, SYSTEM[piece.field])}
        case plan.Entity():
            return {(piece.variable, "id")}
        case plan.TextSearch() | plan.Bm25() | plan.Nearest():
            return _needs(piece.field)
        case None | plan.OfType():
            return set()
    return needs(*parts_of(piece))


@dataclass(slots=True, eq=False)
class RowSource:
    """The columns of some rows, read on first use."""

    context: Context
    rows: Rows
    _held: dict[Column, pa.Array] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.rows.count

    def prefetch(self, columns: Iterable[Column]) -> "RowSource":
        """Read these columns, one request per variable."""
        wanted: dict[str, list[str]] = {}
        for variable, name in sorted(columns):
            if (variable, name) not in self._held:
                wanted.setdefault(variable, []).append(name)
        for variable, names in wanted.items():
            found = fetch(self.context, self.rows[variable], names)
            for name, column in zip(names, found, strict=True):
                self._held[variable, name] = column
        return self

    def column(self, variable: str, name: str) -> pa.Array:
        """Return one column of a variable, aligned with the rows."""
        if (variable, name) not in self._held:
            self.prefetch([(variable, name)])
        return self._held[variable, name]

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Return a boolean column: whether the node is of this type."""
        return pa.array(self.rows[variable].of_type(f"node:{type_name}"))

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        return self.context.constant(value)


def fetch(context: Context, binding: Binding, names: Sequence[str]) -> list[pa.Array]:
    """Return columns of a variable, aligned with its rows; null where the variable is null."""
    context.meter.charge(len(binding.ids) * 16 * len(names))
    try:
        if len(binding.types) == 1:
            return _of_table(context, binding.types[0], binding.ids, names)
        return _of_tables(context, binding, names)
    finally:
        context.meter.release(len(binding.ids) * 16 * len(names))


def _of_table(context: Context, key: str, ids: Ids, names: Sequence[str]) -> list[pa.Array]:
    known = context.known.get(key)
    if known is not None and known.covers(ids, names):
        found = aligned(known.table.select(list(names)), known.ids, ids)
        return [found.column(name).combine_chunks() for name in names]
    hot = hot_columns(context, key, names, len(ids))
    if hot is not None:
        return [one.take(ids) for one in hot]
    found = take(context.table(key), ids, names)
    return [found.column(name).combine_chunks() for name in names]


def _of_tables(context: Context, binding: Binding, names: Sequence[str]) -> list[pa.Array]:
    """Fetch rows of several tables table by table, then restore the original row order."""
    kinds = binding.kinds if binding.kinds is not None else np.zeros(len(binding.ids), np.int16)
    kinds = np.where(binding.ids == NULL, -1, kinds)
    parts: list[list[pa.Array]] = []
    places: list[Ids] = []
    for number, key in enumerate(binding.types):
        place = np.flatnonzero(kinds == number)
        if len(place):
            places.append(place)
            parts.append(_of_table(context, key, binding.ids[place], names))
    if not parts:
        return _nothing(context, binding, names)
    back = np.full(len(binding.ids), -1, np.int64)
    back[np.concatenate(places)] = np.arange(sum(map(len, places)))
    index = pa.array(back, mask=back < 0)
    return [pa.concat_arrays([part[at] for part in parts]).take(index) for at in range(len(names))]


def _nothing(context: Context, binding: Binding, names: Sequence[str]) -> list[pa.Array]:
    if not binding.types:  # an interface without implementing types
        return [pa.nulls(len(binding.ids)) for _ in names]
    schema = context.table(binding.types[0]).schema
    return [pa.nulls(len(binding.ids), schema.field(name).type) for name in names]
