"""The values that existing entities get when a property is added.

This module defines what `@default` means for stored entities. `ingest` fills in the values that new records omit.
"""

from functools import lru_cache
from typing import Any

import pyarrow as pa

from omnigraph.lang.schema import literals
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.values import ScalarType, coerce_assigned

from .arrow import arrow_type


@lru_cache(maxsize=1024)
def default_value(prop: PropertyDefinition) -> Any:
    """Return the default of a property as a stored value, or None if the property has no default."""
    if prop.default is None:
        return None
    property_type, literal = prop.type, prop.default
    literal_value: Any = literal.text
    if property_type.scalar is ScalarType.BOOL:
        literal_value = literal.text == "true"
    elif property_type.is_integer:
        literal_value = literals.parse_integer(literal)
    elif property_type.is_numeric:
        literal_value = literals.parse_number(literal)
    return coerce_assigned(property_type, literal_value, type_name="", property_name=prop.name)


def backfill_value(prop: PropertyDefinition) -> pa.Scalar | None:
    """Return the value that existing entities get when a property is added, or None if they get null."""
    if prop.type.nullable or prop.default is None:
        return None
    is_blob = prop.type.scalar is ScalarType.BLOB
    return pa.array([default_value(prop)], pa.large_binary() if is_blob else arrow_type(prop.type))[0]


def backfill_values(entity_type: NodeType | EdgeType) -> dict[str, pa.Scalar]:
    """Return the non-null values that existing entities get for new properties."""
    backfills = {prop.name: backfill_value(prop) for prop in entity_type.properties}
    return {property_name: value for property_name, value in backfills.items() if value is not None}
