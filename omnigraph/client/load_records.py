"""Write the records of a load as lines of NDJSON: records of one type, and records that name their type.

The schema is read only if a record contains a value that JSON cannot express, or if the record is a dataclass instance,
whose class names its type.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from .property_values import (
    encode_property,
    encode_record,
    encode_typed_records,
    is_exact_json,
    read_members,
    record_types,
)

if TYPE_CHECKING:
    from omnigraph.lang.schema.catalog import Catalog

FindCatalog = Callable[[], "Catalog"]


def write_typed_lines(rows: Any, type_name: str | None, find_catalog: FindCatalog) -> Iterator[bytes]:
    """Yield the lines for records of one type."""

    @cache
    def find_types() -> Any:
        catalog = find_catalog()
        return {} if type_name is None else record_types(catalog.node(type_name) or catalog.edge(type_name))

    yield from map(_write_line, encode_typed_records(find_types, rows))


def write_envelope(record: Any, find_catalog: FindCatalog) -> bytes:
    """Return the line for a record that names its type. The name of a dataclass is the type of its instances."""
    members = read_members(record)
    if members is None:
        return _write_line(encode_property(None, record))
    if not isinstance(record, Mapping):
        members = _wrap_members(type(record).__name__, dict(members), find_catalog())
    if not is_exact_json(members):
        members = _encode_envelope(members, find_catalog())
    return _write_line(dict(members))


def _write_line(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _wrap_members(type_name: str, properties: dict[str, Any], catalog: "Catalog") -> dict[str, Any]:
    """Return the fields of a dataclass as a record that names its type."""
    if catalog.node(type_name) is not None:
        return {"type": type_name, "data": properties}
    from omnigraph.ingest.edge_endpoints import with_endpoint_members

    renamed = with_endpoint_members(properties)
    endpoints = {"from": renamed.pop("from", None), "to": renamed.pop("to", None)}
    return {"edge": type_name, **endpoints, "data": renamed}


def _encode_envelope(members: Mapping[str, Any], catalog: "Catalog") -> dict[str, Any]:
    node_name, edge_name = members.get("type"), members.get("edge")
    node_type = catalog.node(node_name) if isinstance(node_name, str) else None
    edge_type = catalog.edge_ignoring_case(edge_name) if isinstance(edge_name, str) else None
    types = record_types(node_type or edge_type)
    return {
        str(name): encode_record(lambda: types, value) if name == "data" else encode_property(types.get(name), value)
        for name, value in members.items()
    }
