"""`@default`: the value for a property that a record omits."""

from typing import Any

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.storage.initial_values import backfill_value, backfill_values, default_value

__all__ = ["backfill_value", "backfill_values", "default_value", "defaults_of"]


def defaults_of(entity_type: NodeType | EdgeType) -> dict[str, Any]:
    """Return the default for each property of a type, or None for a property without a default."""
    return {prop.name: default_value(prop) for prop in entity_type.properties}
