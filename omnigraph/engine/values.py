"""Values of rows in encoded form: the values, and an index that says which one each row has.

A property is read once per entity, no matter in how many rows the entity occurs.
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

_DENSE = 16  # a mark array up to this many times the input is faster than sorting


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """`values[value_index[i]]` is the value of row i; without an index it is `values[i]`."""

    values: pa.Array
    index: Ids | None = None

    def spelled(self) -> pa.Array:
        """Return one value per row."""
        return self.values if self.index is None else self.values.take(pa.array(self.index))

    def valid(self) -> Mask:
        """Return where the value is not null."""
        return self._gather(self.values.is_valid().to_numpy(zero_copy_only=False))

    def chosen(self) -> Ids | None:
        """Return the rows whose value is not null; None for all."""
        if self.values.null_count == 0:
            return None
        valid = self.valid()
        return None if bool(valid.all()) else np.flatnonzero(valid)

    def codes(self) -> Codes:
        """Return a code per row, equal for equal values."""
        return self._gather(value_codes(self.values))

    def order(self, *, descending: bool = False, most: int | None = None) -> Numbers:
        """Return a number per row, in the order of the values."""
        if self.index is not None:
            most = None  # the best values may occur in no row, or in many
        return self._gather(order_codes(self.values, descending=descending, most=most))

    def numbers(self) -> npt.NDArray[Any]:
        """Return the number per row; arbitrary where the value is null."""
        plain = self.values.fill_null(0) if self.values.null_count else self.values
        return self._gather(plain.to_numpy(zero_copy_only=False))

    def take(self, positions: Ids) -> "Values":
        """Return the values of some rows."""
        if self.index is not None:
            return Values(self.values, self.index[positions])
        return Values(self.values.take(pa.array(positions)))

    def _gather(self, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return found if self.index is None else found[self.index]


def count_distinct(rows: Rows, variable: str) -> int:
    """Return the number of distinct entities of a variable; null does not count."""
    codes = entity_codes(rows[variable])
    codes = codes[codes >= 0] if len(codes) and int(codes.min()) < 0 else codes
    if len(codes) == 0 or int(codes.max()) > _DENSE * len(codes):
        return len(np.unique(codes))
    seen = np.zeros(int(codes.max()) + 1, np.bool_)
    seen[codes] = True
    return int(np.count_nonzero(seen))


def entities_of(rows: Rows, variable: str) -> Values:
    """Return entities as numbers, which is enough to count them without reading anything."""
    codes = entity_codes(rows[variable])
    missing = codes < 0
    return Values(pa.array(codes, mask=missing if bool(missing.any()) else None))


def values_of(context: Context, rows: Rows, value: plan.Value) -> Values:
    """Evaluate a value in every row: constants once, properties once per entity."""
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
    if bool((entities[1:] > entities[:-1]).all()):  # scan order: each entity occurs once
        return Values(evaluate.column(RowSource(context, rows), value))
    codes, first = dense(entities)
    if len(first) == rows.count:
        return Values(evaluate.column(RowSource(context, rows), value))
    each = Rows.of({names[0]: rows[names[0]].take(first)})
    return Values(evaluate.column(RowSource(context, each), value), codes)


def _hot(context: Context, rows: Rows, value: plan.Value) -> Values | None:
    """Return a property from cached columns as codes, without materializing the values."""
    if not isinstance(value, plan.PropertyValue):
        return None
    binding = rows[value.variable]
    if len(binding.types) != 1:
        return None
    hot = hot_columns(context, binding.types[0], [value.name], rows.count)
    if hot is None or hot[0].codes is None:
        return None
    return Values(hot[0].values, hot[0].index(binding.ids))
