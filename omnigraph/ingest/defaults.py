"""`@default`: the value of a property that a record omits."""

from functools import lru_cache
from typing import Any

import pyarrow as pa

from omnigraph.lang.schema import literals
from omnigraph.lang.schema.catalog import Edge, Node, Property
from omnigraph.values import ScalarType, coerce_assigned

from .columns import stored_column


@lru_cache(maxsize=1024)
def default_value(prop: Property) -> Any:
    """Return the stored value of the default; None if the property has none."""
    if prop.default is None:
        return None
    kind, literal = prop.type, prop.default
    given: Any = literal.text
    if kind.scalar is ScalarType.BOOL:
        given = literal.text == "true"
    elif kind.is_integer:
        given = literals.integer(literal)
    elif kind.is_numeric:
        given = literals.number(literal)
    return coerce_assigned(kind, given, type_name="", property=prop.name)


def defaults_of(one: Node | Edge) -> dict[str, Any]:
    """Return the defaults of a type by property; None where there is none."""
    return {prop.name: default_value(prop) for prop in one.properties}


def first_value(prop: Property) -> pa.Scalar | None:
    """Return the value of a new property in existing entities; None (null) unless required."""
    if prop.type.nullable or prop.default is None:
        return None
    return stored_column(prop.type, [default_value(prop)])[0]


def first_values(one: Node | Edge) -> dict[str, pa.Scalar]:
    """Return the values of a type's properties in entities that predate them; nulls omitted."""
    found = {prop.name: first_value(prop) for prop in one.properties}
    return {name: value for name, value in found.items() if value is not None}
