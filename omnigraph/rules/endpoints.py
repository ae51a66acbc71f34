"""The rule that both endpoints of every edge must exist after an operation.

The rule checks written edges, and stored edges whose endpoints were removed. It needs only one lookup per node type, no
matter how many edge types refer to the node type.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ClientError
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.values import PropertyType, ScalarType, coerce_loaded, entity_id
from omnigraph.values.table_key import TableKey

from .delta import NO_IDS, Delta, TableDelta, as_single_array
from .lookup import Lookup
from .violation import Violation

EndpointColumn = tuple[EdgeType, str, TableKey]  # (edge type, `src` or `dst`, table key of the node type)
_FIELD_BY_COLUMN = {"src": "from", "dst": "to"}


def endpoint_columns(edge_type: EdgeType) -> tuple[EndpointColumn, EndpointColumn]:
    """Return the two endpoint columns of an edge type."""
    return (edge_type, "src", TableKey.node(edge_type.source)), (edge_type, "dst", TableKey.node(edge_type.target))


def endpoint_violations(catalog: Catalog, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Yield violations for written edges with a missing endpoint and for stored edges that would lose an endpoint."""
    removed_by_key = {
        node_key: _removed_node_ids(delta.get(node_key), lookup) for node_key in _endpoint_node_keys(catalog, delta)
    }
    yield from _find_dangling(catalog, delta, lookup, removed_by_key)
    if delta.edges_cascaded:
        return
    for edge_type in catalog.edges:
        for _, column, node_key in endpoint_columns(edge_type):
            if len(removed_by_key.get(node_key, NO_IDS)):
                yield from _find_orphaned(edge_type, column, node_key, delta, lookup, removed_by_key[node_key])


def _endpoint_node_keys(catalog: Catalog, delta: Delta) -> list[TableKey]:
    endpoint_keys = {node_key for edge_type in catalog.edges for _, _, node_key in endpoint_columns(edge_type)}
    return [node_key for node_key in delta.tables if node_key in endpoint_keys]


def _removed_node_ids(node_delta: TableDelta | None, lookup: Lookup) -> pa.Array:
    """Return the ids of stored nodes that the operation removes."""
    if node_delta is None:
        return NO_IDS
    stored_ids = (
        as_single_array(lookup.scan(node_delta.table_key, ["id"])["id"])
        if node_delta.replaces_table
        else node_delta.removed_ids
    )
    if not len(stored_ids):
        return stored_ids
    return stored_ids.filter(pc.invert(pc.is_in(stored_ids, value_set=node_delta.ids)))


def _find_dangling(
    catalog: Catalog, delta: Delta, lookup: Lookup, removed_by_key: dict[TableKey, pa.Array]
) -> Iterator[Violation]:
    endpoints = [
        endpoint
        for edge_type in catalog.edges
        for endpoint in endpoint_columns(edge_type)
        if TableKey.edge(edge_type.name) in delta.tables
    ]
    existing_by_key = {
        node_key: _existing_endpoint_ids(node_key, endpoints, delta, lookup, removed_by_key)
        for node_key in {node_key for _, _, node_key in endpoints}
    }
    for edge_type, column, node_key in endpoints:
        edge_delta = delta.tables[TableKey.edge(edge_type.name)]
        if not edge_delta.rows.num_rows:
            continue
        endpoint_ids = as_single_array(edge_delta.rows[column])
        is_missing = pc.invert(pc.is_in(endpoint_ids, value_set=existing_by_key[node_key]))
        for row_index in pc.indices_nonzero(is_missing).to_pylist():
            column_names = ("id", "src", "dst")
            edge_row = {column_name: edge_delta.rows[column_name][row_index].as_py() for column_name in column_names}
            input_line = edge_delta.input_line(int(edge_delta.latest_positions[row_index]))
            yield dangling_violation(catalog, (edge_type, column, node_key), edge_row, input_line)


def dangling_violation(
    catalog: Catalog, endpoint: EndpointColumn, edge_row: Mapping[str, Any], input_line: int | None
) -> Violation:
    """Return the violation for an edge with a missing endpoint. `edge_row` must contain `id`, `src` and `dst`."""
    edge_type, column, node_key = endpoint
    endpoint_id, type_name = edge_row[column], node_key.type_name
    return Violation(
        "endpoint",
        TableKey.edge(edge_type.name),
        edge_row["id"],
        column,
        f"{column} '{endpoint_id}' not found in {type_name}",
        input_line,
        endpoint_id,
        required_id=endpoint_id,
        edge_text=f"'{edge_row['src']}' -> '{edge_row['dst']}'",
        hint=_endpoint_hint(catalog, type_name, column, endpoint_id),
    )


def _endpoint_hint(catalog: Catalog, type_name: str, column: str, endpoint_id: str) -> str:
    """Return a hint that explains how to write the endpoint or, if it is well-formed, how else to resolve the error."""
    node_type, field_name = catalog.node(type_name), _FIELD_BY_COLUMN[column]
    rule = f"`{field_name}` must be the id of a node of type {type_name}"
    if node_type is None or node_type.key is None:
        return f"{rule}; {type_name} has no key, so use the id that was loaded or generated"
    if len(node_type.key) > 1:
        members = ", ".join(node_type.key)
        return f'{rule}: write its key ({members}) as a string such as ["a","b"]'
    key_property = node_type.property(node_type.key[0])
    canonical_id = None if key_property is None else _canonical_id(node_type, key_property.type, endpoint_id)
    if canonical_id is not None and canonical_id != endpoint_id:
        return f"{rule}: for this `{node_type.key[0]}` value, write '{canonical_id}'"
    return f"add the {type_name} with {node_type.key[0]} '{endpoint_id}', or correct `{field_name}`"


def _canonical_id(node_type: NodeType, key_type: PropertyType, endpoint_text: str) -> str | None:
    """Return the id for a key written in a readable form, such as a date, or None if the text is not a valid key."""
    try:
        is_number = key_type.scalar.is_float or key_type.scalar in _INTEGER_SCALARS
        parsed = (
            float(endpoint_text) if key_type.scalar.is_float else int(endpoint_text) if is_number else endpoint_text
        )
        key_value = coerce_loaded(key_type, parsed, type_name=node_type.name, property_name="key")
        return entity_id([key_type], [key_value])
    except (ClientError, ValueError):
        return None


_INTEGER_SCALARS = (ScalarType.I32, ScalarType.I64, ScalarType.U32, ScalarType.U64)


def _existing_endpoint_ids(
    node_key: TableKey,
    endpoints: list[EndpointColumn],
    delta: Delta,
    lookup: Lookup,
    removed_by_key: dict[TableKey, pa.Array],
) -> pa.Array:
    """Return the ids of all written nodes, and of the remaining stored nodes that written edges refer to."""
    written_columns = [
        (delta.tables[TableKey.edge(edge_type.name)], column)
        for edge_type, column, target_key in endpoints
        if target_key == node_key
    ]
    used_ids = pa.chunked_array(
        chain.from_iterable(edge_delta.rows[column].chunks for edge_delta, column in written_columns), pa.string()
    ).unique()
    node_delta = delta.get(node_key)
    written_ids = node_delta.ids if node_delta is not None else NO_IDS
    unwritten_ids = used_ids.filter(pc.invert(pc.is_in(used_ids, value_set=written_ids)))
    if node_delta is not None and node_delta.replaces_table:
        return written_ids
    removed_ids = removed_by_key.get(node_key, NO_IDS)
    lookup_ids = (
        unwritten_ids.filter(pc.invert(pc.is_in(unwritten_ids, value_set=removed_ids)))
        if len(removed_ids)
        else unwritten_ids
    )
    if not len(lookup_ids):
        return written_ids
    stored_ids = as_single_array(lookup.find(node_key, {"id": lookup_ids}, ["id"])["id"])
    return pa.concat_arrays([written_ids, stored_ids])


def _find_orphaned(
    edge_type: EdgeType, column: str, node_key: TableKey, delta: Delta, lookup: Lookup, removed_ids: pa.Array
) -> Iterator[Violation]:
    """Yield violations for unchanged stored edges with a removed endpoint."""
    edge_delta = delta.get(TableKey.edge(edge_type.name))
    if edge_delta is not None and edge_delta.replaces_table:
        return
    stored_edges = lookup.find(TableKey.edge(edge_type.name), {column: removed_ids}, ["id", column])
    if edge_delta is not None:
        for excluded_ids in (edge_delta.ids, edge_delta.removed_ids):
            stored_edges = stored_edges.filter(pc.invert(pc.is_in(stored_edges["id"], value_set=excluded_ids)))
    for edge_id, endpoint_id in zip(stored_edges["id"].to_pylist(), stored_edges[column].to_pylist(), strict=True):
        reason = f"{column} '{endpoint_id}' not found in {node_key.type_name}"
        yield Violation("endpoint", TableKey.edge(edge_type.name), edge_id, column, reason, value=endpoint_id)
