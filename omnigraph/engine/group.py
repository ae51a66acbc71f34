"""Grouping: rows with equal keys become one row, and aggregates are computed per group.

Keys are compared by value, and null forms a group. Without keys there is exactly one group, even
for zero rows. Row weights and row order never change a sum: integers are added exactly, floats
with a single rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan

from . import evaluate
from .aggregate import Groups, aggregate
from .codes import Codes, Numbers, dense, entity_codes, paired, ranks, value_codes
from .context import Context
from .fetch import RowSource
from .order import Key, arrange, default_keys, id_order
from .project import entities, fitted, result_schema
from .rows import Ids, Rows
from .values import Values, count_distinct, entities_of, values_of


def grouped(context: Context, rows: Rows, what: plan.ReadPlan, most: int | None) -> pa.Table:
    """Return the groups as result columns, in order; with `row_limit`, only the first groups."""
    keys = [one for one in what.columns if not isinstance(one.value, plan.Aggregate)]
    if _collects(what):
        rows = rows.take(arrange(context, rows.count, default_keys(context, rows, what.variables)))
    codes, first = key_codes(context, rows, [one.value for one in keys])
    groups = Groups(codes, len(first) if keys else 1)
    one = _Grouped(context, rows, groups, first, {})
    order = one.order(what, [key.value for key in keys], most)
    schema = result_schema(context.catalog, what.columns)
    arrays = [
        fitted(one.spelled(column), field.type)
        for column, field in zip(what.columns, schema, strict=True)
    ]
    found = pa.table(arrays, schema=schema)
    # A single group needs no ordering; most counting queries end here.
    return found if groups.count == len(order) == 1 else found.take(pa.array(order))


def key_codes(context: Context, rows: Rows, keys: Sequence[plan.Value]) -> tuple[Codes, Ids]:
    """Return a group number per row, and one row of each group."""
    codes = np.zeros(rows.count, np.int64)
    if not keys:
        return codes, codes[:1]
    for key in keys:
        codes = ranks(paired(codes, _codes(context, rows, key)))
    first = np.zeros(int(codes.max()) + 1 if rows.count else 0, np.int64)
    first[codes] = np.arange(rows.count)
    return codes, first


def _codes(context: Context, rows: Rows, key: plan.Value) -> Codes:
    if isinstance(key, plan.Entity):
        return entity_codes(rows[key.variable])
    if isinstance(key, plan.SystemValue) and key.field == "id":
        binding = rows[key.variable]
        if binding.kinds is None:
            return binding.ids
    return values_of(context, rows, key).codes()


def _collects(what: plan.ReadPlan) -> bool:
    values = [one.value for one in what.columns] + [one.value for one in what.order]
    return any(isinstance(one, plan.Aggregate) and one.function == "collect" for one in values)


@dataclass(frozen=True, slots=True, eq=False)
class _Grouped:
    """Rows with their group numbers; `first_rows` holds one row of each group."""

    context: Context
    rows: Rows
    groups: Groups
    first: Ids
    made: dict[plan.Value, pa.Array]

    def spelled(self, column: plan.Column) -> pa.Array:
        """Return a result column: one value per group."""
        if isinstance(column.value, plan.Entity):
            rows = self.rows.take(self.first)
            return entities(RowSource(self.context, rows), column.value)
        return self.value(column.value)

    def value(self, value: plan.Value) -> pa.Array:
        """Return a key or an aggregate, one value per group; an entity as its id."""
        found = self.made.get(value)
        if found is None:
            found = self.made[value] = self._make(value)
        return found

    def _make(self, value: plan.Value) -> pa.Array:
        if isinstance(value, plan.Aggregate):
            counted = _counted_entities(value)
            if self.groups.count == 1 and counted is not None:
                return pa.array([count_distinct(self.rows, counted)], pa.int64())
            argument = self._argument(value)
            return aggregate(value, argument, self.groups, self.rows.weights)
        source = RowSource(self.context, self.rows.take(self.first))
        return evaluate.column(source, value)

    def _argument(self, value: plan.Aggregate) -> Values:
        if value.function == "count" and isinstance(value.argument, plan.Entity):
            return entities_of(self.rows, value.argument.variable)
        return values_of(self.context, self.rows, value.argument)

    def order(self, what: plan.ReadPlan, keys: list[plan.Value], most: int | None) -> Ids:
        """Return the group numbers in result order."""
        if self.groups.count < 2:
            return np.arange(self.groups.count)[:most]
        if not what.order:
            return self._by_appearance(what.variables)[:most]
        wanted = [self._by_value(one.value, one.descending) for one in what.order]
        wanted += [self._by_value(key, False) for key in keys]
        wanted += [self._by_type(key) for key in keys if isinstance(key, plan.Entity)]
        return arrange(self.context, self.groups.count, wanted, most)

    def _by_value(self, value: plan.Value, descending: bool) -> Key:
        def key(positions: Ids, most: int | None) -> Numbers:
            found = Values(self.value(value).take(pa.array(positions)))
            return found.order(descending=descending, most=most)

        return key

    def _by_type(self, entity: plan.Entity) -> Key:
        """Break ties by type: nodes of several types may share an id."""
        kinds = self.rows[entity.variable].kinds

        def key(positions: Ids, _: int | None) -> Numbers:
            if kinds is None:
                return np.zeros(len(positions), np.int64)
            return kinds[self.first[positions]].astype(np.int64)

        return key

    def _by_appearance(self, variables: Sequence[str]) -> Ids:
        """Return the groups in the order of their first rows under the default row order."""
        left = np.arange(self.rows.count)
        codes = self.groups.codes
        firsts: list[Codes] = []
        for name in variables:
            binding = self.rows[name].take(left)
            place = ranks(id_order(self.context, binding))
            if binding.kinds is not None:
                place = place * len(binding.types) + binding.kinds
            lowest = np.full(self.groups.count, np.iinfo(np.int64).max)
            np.minimum.at(lowest, codes, place)
            firsts.append(lowest)
            kept = place == lowest[codes]
            # Continue even if each group has one row left: two groups may still be tied so far.
            left, codes = left[kept], codes[kept]
        return np.asarray(np.lexsort(firsts[::-1]), np.int64)


def _counted_entities(value: plan.Aggregate) -> str | None:
    """Return the variable whose distinct entities are counted, if any."""
    if value.distinct and value.function == "count" and isinstance(value.argument, plan.Entity):
        return value.argument.variable
    return None


def distinct(table: pa.Table) -> Ids:
    """Return the first position of each distinct row, in order."""
    codes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        codes, _ = dense(paired(codes, value_codes(column.combine_chunks())))
    first = dense(codes)[1]
    return np.sort(first)
