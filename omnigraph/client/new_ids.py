"""Choose the ids of new entities whose type has no key, before the entities are sent.

A transaction sends its steps several times, and the ids must be the same each time.
"""

import json
from typing import Any

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.values import clock_and_ids


def add_record_ids(entity_type: NodeType | EdgeType | None, records: list[Any]) -> list[Any]:
    """Return the records; if their type has no key, add a new id to each record without an id."""
    if entity_type is None or entity_type.key is not None:
        return records
    return [_add_id(record) if isinstance(record, dict) else record for record in records]


def add_edge_ids(edge_type: EdgeType | None, edges: list[Any]) -> list[Any]:
    """Return edges, given as `[from, to]` or `[from, to, properties]`, with ids among their properties."""
    if edge_type is None or edge_type.key is not None:
        return edges
    return [
        [source, target, _add_id(dict(properties[0] or {}) if properties else {})]
        for source, target, *properties in edges
    ]


def add_line_id(line: bytes, catalog: Catalog) -> bytes:
    """Return an NDJSON line, with an id for its record if the type has no key. Unreadable lines are not changed."""
    try:
        record = json.loads(line)
        entity_type = catalog.edge(record["edge"]) if "edge" in record else catalog.node(record["type"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return line
    if entity_type is None or entity_type.key is not None or not isinstance(record.get("data", {}), dict):
        return line
    return json.dumps({**record, "data": _add_id(record.get("data", {}))}, ensure_ascii=False).encode() + b"\n"


def _add_id(record: dict[str, Any]) -> dict[str, Any]:
    return record if record.get("id") is not None else {**record, "id": clock_and_ids.new_ulid()}
