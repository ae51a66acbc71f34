"""Compare two revisions on a server. The result is a `Diff` with the same tables as on an embedded graph."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from omnigraph.api.results.diff import Diff, LazyTableChanges
from omnigraph.errors import InputError
from omnigraph.history.entities import OPS, TableChanges
from omnigraph.ingest.entity_schema import entity_schema
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.values.name_rules import require_names
from omnigraph.values.table_key import TableKey

from .answers import Document
from .handle import RemoteHandle
from .schema_changes import read_schema_change
from .wire_values import decode_properties

_ALL_CHANGES = 2**31 - 1
_ENDPOINT_NAMES = {"src": "from", "dst": "to"}


def compare_revisions(handle: RemoteHandle, old: str, new: str | None, filters: Mapping[str, Any]) -> Diff:
    """Return the changes between two revisions, optionally only for some types, kinds or operations."""
    document = handle.exchange.call(
        "GET",
        ("diff",),
        {"from": old, "to": new, "limit": _ALL_CHANGES, "images": "feed"} | filter_parameters(filters),
    )
    handles = [handle.pin(document[name]) for name in ("to_commit_id", "from_commit_id")]
    return Diff(
        LazyTableChanges(lambda: _read_tables(handles, document["feed_changes"])),
        document["from_commit_id"],
        document["to_commit_id"],
        schema_change=read_schema_change(document, document["to_commit_id"]),  # type: ignore[arg-type]
    )


def filter_parameters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's filters as URL parameters."""
    return {option[:-1]: _read_names(filters.get(option), option[:-1]) for option in ("types", "kinds", "ops")}


def _read_names(names: Any, label: str) -> list[str] | None:
    if names is None:
        return None
    required = list(require_names(names, label))
    if not required:  # an empty list cannot be sent
        raise InputError(
            f"the {label} filter is empty, so it selects nothing", reason="empty filter", hint="pass None instead"
        )
    return required


def _read_tables(handles: Sequence[RemoteHandle], changes: list[Document]) -> Iterator[TableChanges]:
    """Yield each type's changes as Arrow tables.

    The columns come from the newer schema or, if it lacks the type, from the older one.
    """
    by_key: dict[TableKey, list[Document]] = defaultdict(list)
    for change in changes:
        by_key[TableKey.of(change["kind"], change["type"]["name"])].append(change)
    catalogs = [handle.schema_ir().catalog for handle in handles] if changes else []
    for key in sorted(by_key):
        types = (_find_type(catalog, key) for catalog in catalogs)
        entity_type = next(entity_type for entity_type in types if entity_type is not None)
        arrow_schema = _table_schema(entity_type, by_key[key])
        images = {op: [_read_images(entity_type, change) for change in by_key[key] if change["op"] == op] for op in OPS}
        yield TableChanges(
            key,
            _build_table([after for _, after in images["insert"]], arrow_schema),
            _build_table([before for before, _ in images["update"]], arrow_schema),
            _build_table([after for _, after in images["update"]], arrow_schema),
            _build_table([before for before, _ in images["delete"]], arrow_schema),
        )


def _find_type(catalog: Catalog, key: TableKey) -> NodeType | EdgeType | None:
    return catalog.edge(key.type_name) if key.is_edge else catalog.node(key.type_name)


def _table_schema(entity_type: NodeType | EdgeType, changes: list[Document]) -> pa.Schema:
    """Return the columns of a type's tables, with the properties in the order in which the server sends them."""
    images = [change[side] for change in changes for side in ("before", "after") if change.get(side) is not None]
    positions = {name: position for position, name in enumerate(dict.fromkeys(chain(*map(_property_names, images))))}
    columns = {name: column for column, name in _ENDPOINT_NAMES.items()} if entity_type.kind == "edge" else {}
    fields = sorted(entity_schema(entity_type), key=lambda field: positions.get(field.name, -1))
    return pa.schema([field.with_name(columns.get(field.name, field.name)) for field in fields])


def _property_names(image: Document) -> list[str]:
    return list(image["properties"])


def _read_images(entity_type: NodeType | EdgeType, change: Document) -> tuple[dict[str, Any] | None, ...]:
    return tuple(_read_row(entity_type, change["id"], change.get(side)) for side in ("before", "after"))


def _read_row(entity_type: NodeType | EdgeType, entity_id: str, image: Document | None) -> dict[str, Any] | None:
    if image is None:
        return None
    endpoints = image.get("endpoints")
    columns = {} if endpoints is None else {column: endpoints[name] for column, name in _ENDPOINT_NAMES.items()}
    return {"id": entity_id, **columns, **(decode_properties(entity_type, image["properties"]) or {})}


def _build_table(rows: list[dict[str, Any] | None], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(sorted((row for row in rows if row), key=lambda row: row["id"]), schema=schema)
