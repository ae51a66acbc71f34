"""Reconcile the values that existing rows got when both sides added the same property with different defaults.

Such a value is not an edit: each side filled it in when it added the property. In rows that the base already contains,
the merge therefore replaces a side's fill value with that of the merged schema. This module does not read tables.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.matched_types import TypeTransition
from omnigraph.storage.initial_values import backfill_value
from omnigraph.storage.value_equality import same_values


class FillChange(NamedTuple):
    """The value that a side filled in and the value that the merged schema fills in, both in the merged type."""

    side_value: pa.Scalar
    merged_value: pa.Scalar


FillChanges = Mapping[str, FillChange]  # keyed by the property's merged name


def find_fill_changes(base: TypeTransition, side: TypeTransition, other_side: TypeTransition) -> FillChanges:
    """Return the properties that both sides added and whose fill value on `side` differs from the merged schema's."""
    added_names = (
        side.old_property_names.keys() & other_side.old_property_names.keys()
    ) - base.old_property_names.keys()
    changes: dict[str, FillChange] = {}
    for name in sorted(added_names):
        side_property, merged_property = (
            side.old_type.property(side.old_property_names[name]),
            side.new_type.property(name),
        )
        if side_property is None or merged_property is None:
            continue
        value_type = side.row_schema.field(name).type
        values = (_scalar(backfill_value(prop), value_type) for prop in (side_property, merged_property))
        fill_change = FillChange(*values)
        if not fill_change.side_value.equals(fill_change.merged_value):
            changes[name] = fill_change
    return changes


def _scalar(value: pa.Scalar | None, value_type: pa.DataType) -> pa.Scalar:
    """Cast a fill value to the merged type. A value that does not fit becomes null, because no row can contain it."""
    if value is None:
        return pa.scalar(None, value_type)
    try:
        return value.cast(value_type)
    except pa.ArrowInvalid:
        return pa.scalar(None, value_type)


def align_filled_values(rows: pa.Table, existing_ids: pa.Array, fill_changes: FillChanges) -> pa.Table:
    """Replace a side's fill values in the rows whose ids the base contains."""
    if not fill_changes:
        return rows
    is_existing = pc.is_in(rows["id"], value_set=existing_ids).to_numpy()
    for name, (side_value, merged_value) in fill_changes.items():
        values = rows[name].combine_chunks()
        is_filled = same_values(values, pa.repeat(side_value, len(values))) & is_existing
        positions = np.where(is_filled, len(values), np.arange(len(values)))
        replaced = pa.concat_arrays([values, pa.repeat(merged_value, 1)]).take(pa.array(positions))
        column_index = rows.schema.get_field_index(name)
        rows = rows.set_column(column_index, rows.schema.field(column_index), replaced)
    return rows
