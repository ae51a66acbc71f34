"""Determine from an entity's rows whether a merge made a decision about a property.

A merge made a decision about a property if one side changed it and the merge result does not contain this change, or if
both sides changed it differently. All rows must have the same columns. A row is None if the entity does not exist. This
module does not read tables.
"""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from omnigraph.storage.value_equality import same_values

Row: TypeAlias = pa.Table | None


def is_decided(property_name: str, merged_row: Row, parent_rows: Sequence[Row], base_rows: Sequence[Row]) -> bool:
    """Return whether a merge made a decision about a property. `parent_rows` are the rows from the two merged sides."""
    our_row, their_row = parent_rows
    return _is_contested(property_name, our_row, their_row, merged_row, base_rows) or _is_contested(
        property_name, their_row, our_row, merged_row, base_rows
    )


def same_property(property_name: str, row: Row, other_row: Row) -> bool:
    """Return whether two rows have the same value for a property. A missing row equals only another missing row."""
    if row is None or other_row is None:
        return row is other_row
    return bool(same_values(row[property_name], other_row[property_name])[0])


def _is_contested(property_name: str, side_row: Row, other_row: Row, merged_row: Row, base_rows: Sequence[Row]) -> bool:
    """Return whether a side's change to a property is not in the result or differs from the other side's change."""
    if side_row is None or not _is_changed(property_name, side_row, base_rows):
        return False
    if not same_property(property_name, side_row, merged_row):
        return True
    return _is_changed(property_name, other_row, base_rows) and not same_property(property_name, side_row, other_row)


def _is_changed(property_name: str, side_row: Row, base_rows: Sequence[Row]) -> bool:
    """Return whether a side's value for a property differs from the value in every merge base."""
    return all(not same_property(property_name, side_row, base_row) for base_row in base_rows)
