"""Execute a mutation's statements on an overlay, one at a time.

This module counts affected entities. Statements never read the store directly and never publish.
"""

from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.engine.expressions.evaluate import TableSource, evaluate_value, is_constant, resolve_constant
from omnigraph.errors import InternalError
from omnigraph.ingest.columns import stored_column
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.delta import as_single_array
from omnigraph.values.table_key import TableKey

from .assigned_rows import coerce_value, read_row
from .generated_ids import IdGenerator
from .matched_writes import matched_ids, matched_values, stored_values
from .overlay import Overlay, ParamValues
from .row_writes import insert_row, patch_row, upsert_row
from .touched_rows import AffectedRows


@dataclass(slots=True)
class WriteStats:
    """The number of affected entities of each type, and the ids of those that were inserted, upserted or loaded."""

    node_counts: dict[str, int] = field(default_factory=dict)
    edge_counts: dict[str, int] = field(default_factory=dict)
    inserted_ids: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, type_name: str, affected: int) -> None:
        """Add to the number of affected entities of a type."""
        if affected:
            counts = self.node_counts if kind == "node" else self.edge_counts
            counts[type_name] = counts.get(type_name, 0) + affected


def run_statement(
    overlay: Overlay, statement: plan.WriteStatement, params: ParamValues, stats: WriteStats, id_generator: IdGenerator
) -> tuple[AffectedRows, ...]:
    """Run one statement on an overlay, count the affected entities, and return the affected rows."""
    affected: tuple[AffectedRows, ...]
    match statement:
        case plan.InsertRow() | plan.UpsertRow() | plan.PatchRow():
            affected = (_write_row(overlay, statement, params, stats, id_generator),)
        case plan.UpdateRows() | plan.MatchedUpdate():
            affected = (_update_rows(overlay, statement, params),)
        case plan.DeleteRows() | plan.MatchedDelete():
            affected = _delete_rows(overlay, statement, params)
    for rows in affected:
        stats.add(rows.table_key.kind, rows.table_key.type_name, len(rows.ids))
    return affected


def _write_row(
    overlay: Overlay,
    statement: plan.InsertRow | plan.UpsertRow | plan.PatchRow,
    params: ParamValues,
    stats: WriteStats,
    id_generator: IdGenerator,
) -> AffectedRows:
    row = read_row(overlay.ir, statement, params)
    match statement:
        case plan.InsertRow():
            row_id = insert_row(overlay, row, id_generator)
        case plan.UpsertRow():
            row_id = upsert_row(overlay, row)
        case plan.PatchRow():
            row_id = patch_row(overlay, row)
    if not isinstance(statement, plan.PatchRow):
        stats.inserted_ids.setdefault(statement.type_name, []).append(row_id)
    return AffectedRows(row.table_key, pa.array([row_id], pa.string()), endpoints=row.endpoints)


def _update_rows(
    overlay: Overlay, statement: plan.UpdateRows | plan.MatchedUpdate, params: ParamValues
) -> AffectedRows:
    table_key = TableKey.of(statement.kind, statement.type_name)
    if isinstance(statement, plan.MatchedUpdate):
        assigned_columns = matched_values(overlay, statement, params, coerce_value)
        return AffectedRows(table_key, overlay.update_by_id(table_key, *assigned_columns))
    entity_type = type_for_key(overlay.catalog, table_key)

    def assigned_columns_of(rows: pa.Table) -> dict[str, pa.Array]:
        return {
            assignment.name: _assigned_column(entity_type, assignment, rows, params)
            for assignment in statement.assignments
        }

    return AffectedRows(table_key, overlay.update(table_key, statement.where, params, assigned_columns_of))


def _delete_rows(
    overlay: Overlay, statement: plan.DeleteRows | plan.MatchedDelete, params: ParamValues
) -> tuple[AffectedRows, ...]:
    """Delete the selected entities and, for nodes, their edges. Return the affected rows."""
    table_key = TableKey.of(statement.kind, statement.type_name)
    if isinstance(statement, plan.DeleteRows):
        deleted_ids = overlay.delete(table_key, statement.where, params)
    else:
        deleted_ids = overlay.delete_by_id(table_key, matched_ids(overlay, statement.matched, params))
    affected = [AffectedRows(table_key, deleted_ids, is_deleted=True)]
    for edge_name in statement.cascades if len(deleted_ids) else ():
        edge_type = overlay.catalog.edge(edge_name)
        if edge_type is not None:
            edge_ids = overlay.delete_edges_of(edge_type, statement.type_name, deleted_ids)
            affected.append(AffectedRows(TableKey.edge(edge_name), edge_ids, is_deleted=True))
    return tuple(affected)


def _assigned_column(
    entity_type: NodeType | EdgeType, assignment: plan.Assign, rows: pa.Table, params: ParamValues
) -> pa.Array:
    """Return the new values of a property, which may be computed from the previous values in the rows."""
    declared_property = entity_type.property(assignment.name)
    if declared_property is None:
        raise InternalError(reason=f"{entity_type.name} has no property {assignment.name}")
    if not is_constant(assignment.value):
        values = evaluate_value(TableSource(rows, params), assignment.value)
        return stored_values(entity_type, declared_property, as_single_array(rows["id"]), values, coerce_value)
    value = coerce_value(entity_type, declared_property, resolve_constant(assignment.value, params))
    return pa.repeat(stored_column(declared_property.type, [value])[0], rows.num_rows)
