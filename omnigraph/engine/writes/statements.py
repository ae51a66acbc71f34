"""Execution of insert, update and delete statements on an overlay, one at a time.

This module converts statement values to row values, generates ids, and counts affected entities.
The statements never read the store directly and never publish.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.engine.expressions.evaluate import resolve_constant
from omnigraph.errors import ExternalBlobPolicyError, InternalError, PropertyValueError
from omnigraph.ingest.columns import stored_column
from omnigraph.ingest.defaults import default_value
from omnigraph.ingest.load_limits import LoadLimits, check_limit
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.ir import ordered_key_columns
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.delta import NEW_ROW, UNRESOLVED_ROW
from omnigraph.values import BlobUri, clock_and_ids, coerce_assigned, entity_id
from omnigraph.values.table_key import TableKey

from .matched_writes import matched_ids, matched_values
from .overlay import Overlay, ParamValues

_MAX_VALUE_BYTES = LoadLimits().value_bytes


@dataclass(slots=True)
class WriteStats:
    """The entities that the statements of an operation affected."""

    node_counts: dict[str, int] = field(default_factory=dict)
    edge_counts: dict[str, int] = field(default_factory=dict)
    inserted_ids: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, type_name: str, affected: int) -> None:
        """Add to the number of affected entities of a type."""
        if affected:
            counts = self.node_counts if kind == "node" else self.edge_counts
            counts[type_name] = counts.get(type_name, 0) + affected


class IdGenerator:
    """Generates ids, and returns the same ids again when an operation is retried."""

    def __init__(self) -> None:
        self._issued_ids: list[str] = []
        self._next_index = 0

    def restart(self) -> None:
        """Start over from the first id."""
        self._next_index = 0

    def __call__(self) -> str:
        """Return the next id."""
        if self._next_index == len(self._issued_ids):
            self._issued_ids.append(clock_and_ids.new_ulid())
        self._next_index += 1
        return self._issued_ids[self._next_index - 1]


def run_statement(
    overlay: Overlay, statement: plan.WriteStatement, params: ParamValues, stats: WriteStats, id_generator: IdGenerator
) -> None:
    """Run one statement on an overlay."""
    match statement:
        case plan.InsertRow():
            _run_insert(overlay, statement, params, stats, id_generator)
        case plan.UpdateRows():
            node_type = type_for_key(overlay.catalog, TableKey.node(statement.type_name))
            assigned = {
                assignment.name: _assigned_scalar(node_type, assignment, params) for assignment in statement.assignments
            }
            updated_count = overlay.update(TableKey.node(node_type.name), statement.where, params, assigned)
            stats.add("node", node_type.name, updated_count)
        case plan.DeleteRows():
            table_key = TableKey.of(statement.kind, statement.type_name)
            _delete_edges(overlay, statement, overlay.delete(table_key, statement.where, params), stats)
        case plan.MatchedUpdate():
            node_type = type_for_key(overlay.catalog, TableKey.node(statement.type_name))
            assigned_columns = matched_values(overlay, statement, params, _coerce_value)
            updated_count = overlay.update_by_id(TableKey.node(node_type.name), *assigned_columns)
            stats.add("node", node_type.name, updated_count)
        case plan.MatchedDelete():
            table_key = TableKey.of(statement.kind, statement.type_name)
            deleted_ids = overlay.delete_by_id(table_key, matched_ids(overlay, statement.matched, params))
            _delete_edges(overlay, statement, deleted_ids, stats)


def _delete_edges(
    overlay: Overlay, statement: plan.DeleteRows | plan.MatchedDelete, deleted_ids: pa.Array, stats: WriteStats
) -> None:
    """Count the deleted entities, and delete the edges of deleted nodes."""
    stats.add(statement.kind, statement.type_name, len(deleted_ids))
    for edge_name in statement.cascades if len(deleted_ids) else ():
        edge_type = overlay.catalog.edge(edge_name)
        if edge_type is not None:
            stats.add("edge", edge_name, overlay.delete_edges_of(edge_type, statement.type_name, deleted_ids))


def _run_insert(
    overlay: Overlay, statement: plan.InsertRow, params: ParamValues, stats: WriteStats, id_generator: IdGenerator
) -> None:
    table_key = TableKey.of(statement.kind, statement.type_name)
    entity_type = type_for_key(overlay.catalog, table_key)
    arguments = {assignment.name: _argument_value(assignment, params) for assignment in statement.assignments}
    row_values = {
        declared_property.name: _property_value(entity_type, declared_property, arguments)
        for declared_property in entity_type.properties
    }
    if isinstance(entity_type, EdgeType):
        row_values |= {
            "src": _endpoint_id(entity_type, arguments, "from"),
            "dst": _endpoint_id(entity_type, arguments, "to"),
        }
    key_members = ordered_key_columns(overlay.ir, entity_type.name) if isinstance(entity_type, NodeType) else ()
    row_values["id"] = _key_id(entity_type, key_members, row_values) if key_members else id_generator()
    row_schema = overlay.row_schema_of(table_key)
    rows = pa.table(
        [pa.array([row_values[row_field.name]], row_field.type) for row_field in row_schema], schema=row_schema
    )
    overlay.write(table_key, rows, UNRESOLVED_ROW if key_members else NEW_ROW)
    stats.add(statement.kind, entity_type.name, 1)
    stats.inserted_ids.setdefault(entity_type.name, []).append(row_values["id"])


def _property_value(
    entity_type: NodeType | EdgeType, declared_property: PropertyDefinition, arguments: Mapping[str, Any]
) -> Any:
    """Return a property's value in a new row; constraints are checked later."""
    if declared_property.name not in arguments:
        return default_value(declared_property)
    return _coerce_value(entity_type, declared_property, arguments[declared_property.name])


def _assigned_scalar(node_type: NodeType | EdgeType, assignment: plan.Assign, params: ParamValues) -> pa.Scalar:
    declared_property = node_type.property(assignment.name)
    if declared_property is None:
        raise InternalError(reason=f"{node_type.name} has no property {assignment.name}")
    return stored_column(
        declared_property.type, [_coerce_value(node_type, declared_property, _argument_value(assignment, params))]
    )[0]


def _coerce_value(entity_type: NodeType | EdgeType, declared_property: PropertyDefinition, value: Any) -> Any:
    coerced = coerce_assigned(
        declared_property.type, value, type_name=entity_type.name, property_name=declared_property.name
    )
    if isinstance(coerced, BlobUri):
        raise ExternalBlobPolicyError(uri=coerced.uri, reason="this graph does not allow external blobs")
    if isinstance(coerced, str | bytes) and len(coerced) * 4 > _MAX_VALUE_BYTES:
        size = len(coerced.encode() if isinstance(coerced, str) else coerced)
        check_limit(f"one value of {entity_type.name}.{declared_property.name}", size, _MAX_VALUE_BYTES)
    return coerced


def _argument_value(assignment: plan.Assign, params: ParamValues) -> Any:
    return resolve_constant(assignment.value, params)


def _endpoint_id(edge_type: EdgeType, arguments: Mapping[str, Any], endpoint: str) -> str:
    value = arguments[endpoint]
    if not isinstance(value, str):
        raise PropertyValueError(type_name=edge_type.name, property=endpoint, expected="String", actual="null")
    return value


def _key_id(node_type: NodeType | EdgeType, key_members: tuple[str, ...], row_values: Mapping[str, Any]) -> str:
    member_types = [
        declared_property.type
        for member in key_members
        if (declared_property := node_type.property(member)) is not None
    ]
    return entity_id(member_types, [row_values[member] for member in key_members], key_members)
