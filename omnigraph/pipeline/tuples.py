"""The tuples of `@unique` constraints as texts that are equal if and only if all values are.

Owns their encoding. The key of a node needs none: it is the id.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ingest.ids import spelled
from omnigraph.lang.schema.catalog import Edge, Key, Node, Unique
from omnigraph.rules.delta import flat
from omnigraph.values import PropertyType, ScalarType

_TEXT = PropertyType(ScalarType.STRING)
_PART, _ESCAPE = "\x1f", "\x1e"


def groups(one: Node | Edge) -> list[tuple[str, ...]]:
    """Return the columns of each constraint that is checked by value."""
    key = one.key if isinstance(one, Node) else None
    found = [rule.columns for rule in one.constraints if isinstance(rule, Key | Unique)]
    return [columns for columns in found if columns != key]


def tuples(one: Node | Edge, rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return one text per row that is equal if all values are; null if any value is null."""
    parts = []
    for name in columns:
        prop = one.property(name)
        column = flat(rows[name])
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # 0.0 and -0.0 are equal
        text = spelled(prop.type if prop is not None else _TEXT, column)
        if len(columns) > 1:
            text = pc.replace_substring(text, _ESCAPE, _ESCAPE * 2)
            text = pc.replace_substring(text, _PART, _ESCAPE + "|")
        parts.append(text)
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _PART)


def shown_tuple(value: str, columns: Sequence[str]) -> str:
    r"""Format a tuple for an error message.

    >>> shown_tuple("a\x1fb", ["x", "y"])
    'a, b'
    """
    if len(columns) == 1:
        return value
    parts = [part.replace(_ESCAPE + "|", _PART) for part in value.split(_PART)]
    return ", ".join(part.replace(_ESCAPE * 2, _ESCAPE) for part in parts)
