"""Convert the assignments in an insert, upsert or patch statement to a row id and stored values.

This module defines how such a statement identifies its row: by the id derived from its key, or by the `id` that it
assigns. It does not check whether the row exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.engine.expressions.evaluate import resolve_constant
from omnigraph.errors import InputError, PropertyValueError
from omnigraph.ingest.load_limits import LARGE_BLOB_HINT, LoadLimits, check_limit
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.ir import SchemaIR, ordered_key_columns
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.storage.pending_blobs import accept_blob
from omnigraph.values import BlobSource, BlobUri, coerce_assigned, entity_id
from omnigraph.values.table_key import TableKey

RowWrite = plan.InsertRow | plan.UpsertRow | plan.PatchRow
_COLUMN_BY_ENDPOINT = {"from": "src", "to": "dst"}
_MAX_VALUE_BYTES = LoadLimits().value_bytes


@dataclass(frozen=True, slots=True)
class AssignedRow:
    """The values assigned to a row, by column, and the id of the row (None if an id must be generated)."""

    table_key: TableKey
    entity_type: NodeType | EdgeType
    row_id: str | None
    values: Mapping[str, Any]
    key_columns: tuple[str, ...]

    @property
    def endpoints(self) -> dict[TableKey, pa.Array]:
        """The node ids assigned to an edge's endpoints, by node table."""
        ids_by_key: dict[TableKey, list[str]] = {}
        if isinstance(self.entity_type, EdgeType):
            node_types = {"src": self.entity_type.source, "dst": self.entity_type.target}
            for column_name in node_types.keys() & self.values.keys():
                ids_by_key.setdefault(TableKey.node(node_types[column_name]), []).append(self.values[column_name])
        return {node_key: pa.array(node_ids, pa.string()) for node_key, node_ids in ids_by_key.items()}

    @property
    def changed_values(self) -> dict[str, Any]:
        """The assigned values to write to an existing row, that is, all values except the key."""
        return {name: value for name, value in self.values.items() if name not in self.key_columns}


def read_row(ir: SchemaIR, statement: RowWrite, params: Mapping[str, Any]) -> AssignedRow:
    """Return the row that a statement identifies, including its assigned values."""
    table_key = TableKey.of(statement.kind, statement.type_name)
    entity_type = type_for_key(ir.catalog, table_key)
    arguments = {assignment.name: resolve_constant(assignment.value, params) for assignment in statement.assignments}
    given_id = arguments.pop("id", None)
    values = {}
    for declared_property in entity_type.properties:
        if declared_property.name in arguments:
            value = arguments.pop(declared_property.name)
            values[declared_property.name] = coerce_value(entity_type, declared_property, value)
    for endpoint, value in arguments.items():
        values[_COLUMN_BY_ENDPOINT[endpoint]] = _endpoint_id(entity_type, endpoint, value)
    key_columns = ordered_key_columns(ir, entity_type.name, entity_type.kind)
    row_id = _row_id(statement, entity_type, key_columns, values, given_id)
    return AssignedRow(table_key, entity_type, row_id, values, key_columns)


def _row_id(
    statement: RowWrite,
    entity_type: NodeType | EdgeType,
    key_columns: tuple[str, ...],
    values: Mapping[str, Any],
    given_id: Any,
) -> str | None:
    key_id = _key_id(entity_type, key_columns, values) if set(key_columns) & values.keys() else None
    if key_id is not None and given_id not in (None, key_id):
        raise InputError(reason=f"id '{given_id}' does not match its key; expected '{key_id}'")
    if key_id is None and given_id is None and not isinstance(statement, plan.InsertRow):
        raise PropertyValueError(type_name=entity_type.name, property="id", expected="String", actual="null")
    if given_id == "":
        raise InputError(reason="id must not be empty")
    return key_id if key_id is not None else given_id


def _key_id(entity_type: NodeType | EdgeType, key_columns: tuple[str, ...], values: Mapping[str, Any]) -> str:
    member_types = [entity_type.column_type(column_name) for column_name in key_columns]
    return entity_id(member_types, [values.get(column_name) for column_name in key_columns], key_columns)


def coerce_value(entity_type: NodeType | EdgeType, declared_property: PropertyDefinition, value: Any) -> Any:
    """Convert an assigned value to the type of its property, without checking constraints."""
    coerced = coerce_assigned(
        declared_property.type, value, type_name=entity_type.name, property_name=declared_property.name
    )
    if isinstance(coerced, BlobUri | BlobSource):
        return accept_blob(coerced)
    if isinstance(coerced, str | bytes) and len(coerced) * 4 > _MAX_VALUE_BYTES:
        size = len(coerced.encode() if isinstance(coerced, str) else coerced)
        hint = LARGE_BLOB_HINT if isinstance(coerced, bytes) else None
        check_limit(f"one {entity_type.name}.{declared_property.name} value", size, _MAX_VALUE_BYTES, hint)
    return coerced


def _endpoint_id(entity_type: NodeType | EdgeType, endpoint: str, value: Any) -> str:
    if not isinstance(value, str):
        raise PropertyValueError(type_name=entity_type.name, property=endpoint, expected="String", actual="null")
    return value
