"""`@default`: the value of a property that a record leaves out."""

from functools import lru_cache
from typing import Any

from omnigraph.lang.schema import literals
from omnigraph.lang.schema.catalog import Edge, Node, Property
from omnigraph.values import ScalarType, coerce_assigned


@lru_cache(maxsize=1024)
def default_value(prop: Property) -> Any:
    """The stored value of the default, or None when the property has none."""
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
    """The defaults of a type by property; None where there is none."""
    return {prop.name: default_value(prop) for prop in one.properties}
