"""Encode `@unique` tuples as strings that are equal if and only if all values are equal.

The encoding lets Spark group by several columns as if they were one. A key needs no tuple, because it determines the
id.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ingest.assign_ids import spell_column
from omnigraph.lang.schema.catalog import EdgeType, Key, NodeType, Unique
from omnigraph.rules.delta import as_single_array
from omnigraph.values import PropertyType, ScalarType

_STRING_TYPE = PropertyType(ScalarType.STRING)
_SEPARATOR, _ESCAPE = "\x1f", "\x1e"


def unique_groups(entity_type: NodeType | EdgeType) -> list[tuple[str, ...]]:
    """Return the columns in each `@unique` constraint that must be checked by value."""
    column_groups = [
        constraint.columns for constraint in entity_type.constraints if isinstance(constraint, Key | Unique)
    ]
    return [columns for columns in column_groups if columns != entity_type.key]


def encode_tuples(entity_type: NodeType | EdgeType, rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return one string per row, or null if any value is null; strings are equal only if all values are equal."""
    encoded_columns = []
    for column_name in columns:
        prop = entity_type.property(column_name)
        column = as_single_array(rows[column_name])
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # 0.0 and -0.0 are equal
        encoded = spell_column(prop.type if prop is not None else _STRING_TYPE, column)
        if len(columns) > 1:
            encoded = pc.replace_substring(encoded, _ESCAPE, _ESCAPE * 2)
            encoded = pc.replace_substring(encoded, _SEPARATOR, _ESCAPE + "|")
        encoded_columns.append(encoded)
    return (
        encoded_columns[0] if len(encoded_columns) == 1 else pc.binary_join_element_wise(*encoded_columns, _SEPARATOR)
    )


def format_tuple(encoded_tuple: str, columns: Sequence[str]) -> str:
    r"""Format a tuple for an error message.

    >>> format_tuple("a\x1fb", ["x", "y"])
    'a, b'
    """
    if len(columns) == 1:
        return encoded_tuple
    encoded_values = [
        encoded_value.replace(_ESCAPE + "|", _SEPARATOR) for encoded_value in encoded_tuple.split(_SEPARATOR)
    ]
    return ", ".join(encoded_value.replace(_ESCAPE * 2, _ESCAPE) for encoded_value in encoded_values)
