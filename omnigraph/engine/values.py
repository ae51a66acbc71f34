"""Values of rows before they are spelled out: distinct values, and which of them each row has.

A property is looked at once per entity, however many rows the entity stands in.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.lang.query.free import variables_of

from . import evaluate
from .codes import Codes, Numbers, dense, entity_codes, order_codes, value_codes
from .columns import hot_columns
from .context import Context
from .fetch import RowSource
from .rows import Ids, Mask, Rows

_DENSE = 16  # a mark for each number is quicker than sorting up to so many times the numbers


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """`values[index[i]]` is the value of row i; without an index, `values[i]` is."""

    values: pa.Array
    index: Ids | None = None

    def spelled(self) -> pa.Array:
        """One value per row."""
        return self.values if self.index is None else self.values.take(pa.array(self.index))

    def valid(self) -> Mask:
        """Where the value is not null."""
        return self._gather(self.values.is_valid().to_numpy(zero_copy_only=False))

    def chosen(self) -> Ids | None:
        """The rows whose value is not null; None for all."""
        if self.values.null_count == 0:
            return None
        valid = self.valid()
        return None if bool(valid.all()) else np.flatnonzero(valid)

    def codes(self) -> Codes:
        """A code per row, equal for equal values."""
        return self._gather(value_codes(self.values))

    def order(self, *, descending: bool = False, most: int | None = None) -> Numbers:
        """A number per row, in the order of the values."""
        if self.index is not None:
            most = None  # the best values may stand in no row, or in many
        return self._gather(order_codes(self.values, descending=descending, most=most))

    def numbers(self) -> npt.NDArray[Any]:
        """The numbers per row; anything where the value is null."""
        plain = self.values.fill_null(0) if self.values.null_count else self.values
        return self._gather(plain.to_numpy(zero_copy_only=False))

    def take(self, positions: Ids) -> "Values":
        """The values of some rows."""
        if self.index is not None:
            return Values(self.values, self.index[positions])
        return Values(self.values.take(pa.array(positions)))

    def _gather(self, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return found if self.index is None else found[self.index]


def count_distinct(rows: Rows, variable: str) -> int:
    """How many entities a variable is; null is none."""
    codes = entity_codes(rows[variable])
    codes = codes[codes >= 0] if len(codes) and int(codes.min()) < 0 else codes
    if len(codes) == 0 or int(codes.max()) > _DENSE * len(codes):
        return len(np.unique(codes))
    seen = np.zeros(int(codes.max()) + 1, np.bool_)
    seen[codes] = True
    return int(np.count_nonzero(seen))


def entities_of(rows: Rows, variable: str) -> Values:
    """The entities of a variable as numbers: enough to count them, and nothing is read."""
    codes = entity_codes(rows[variable])
    missing = codes < 0
    return Values(pa.array(codes, mask=missing if bool(missing.any()) else None))


def values_of(context: Context, rows: Rows, value: plan.Value) -> Values:
    """A value in every row: constants once, properties once per entity."""
    if evaluate.is_constant(value):
        one = evaluate.column(RowSource(context, Rows.one()), value)
        return Values(one, np.zeros(rows.count, np.int64))
    names = tuple(variables_of(value))
    if len(names) != 1:
        return Values(evaluate.column(RowSource(context, rows), value))
    hot = _hot(context, rows, value)
    if hot is not None:
        return hot
    entities = entity_codes(rows[names[0]])
    if bool((entities[1:] > entities[:-1]).all()):  # as a scan gives them: each once
        return Values(evaluate.column(RowSource(context, rows), value))
    codes, first = dense(entities)
    if len(first) == rows.count:
        return Values(evaluate.column(RowSource(context, rows), value))
    each = Rows.of({names[0]: rows[names[0]].take(first)})
    return Values(evaluate.column(RowSource(context, each), value), codes)


def _hot(context: Context, rows: Rows, value: plan.Value) -> Values | None:
    """A property from memory: its codes, when it has some; nothing is spelled out then."""
    if not isinstance(value, plan.PropertyValue):
        return None
    binding = rows[value.variable]
    if len(binding.types) != 1:
        return None
    hot = hot_columns(context, binding.types[0], [value.name], rows.count)
    if hot is None or hot[0].codes is None:
        return None
    return Values(hot[0].values, hot[0].index(binding.ids))
