"""Describe conflicts: the entity, its properties, and their values on each side and in the base.

This module converts rule violations and conflicting entities to the records that callers see. It also determines which
entities a conflict involves. When a side is chosen, all of these entities take that side's state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.errors import EntityConflict
from omnigraph.errors.counts import format_count
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.rules.violation import Violation
from omnigraph.storage.blob_placeholders import shown_value
from omnigraph.values.blobs import BlobDigest
from omnigraph.values.table_key import TableKey

from .table_merge import ContestedEntity, TableSides

EntityKey = tuple[TableKey, str]  # (table key, entity id)
_MAX_VALUE_LENGTH = 60  # messages truncate values to this number of characters


@dataclass(frozen=True, slots=True)
class DetectedConflict:
    """A conflict, and the entities that are affected when it is resolved in favor of one side.

    `columns` are the conflicting columns in the conflict's own table.
    """

    conflict: EntityConflict
    table_key: TableKey
    involved_entities: tuple[EntityKey, ...]
    columns: tuple[str, ...] = ()

    def columns_of(self, entity_key: EntityKey) -> tuple[str, ...]:
        """Return an involved entity's conflicting columns, or an empty result if the whole entity is in conflict."""
        return self.columns if entity_key[0] == self.table_key else ()

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """A sort key that places nodes before edges and then orders by type, id and kind."""
        conflict = self.conflict
        is_edge = conflict.entity_kind != "node"
        return (is_edge, conflict.type_name, conflict.entity_id or "", conflict.kind, conflict.message)


def schema_conflict(conflict: EntityConflict) -> DetectedConflict:
    """Wrap a conflict between schema changes, which involves no entity."""
    table_key = TableKey.of("edge" if conflict.entity_kind == "edge" else "node", conflict.type_name)
    return DetectedConflict(conflict, table_key, ())


def conflict_of_entity(
    table_key: TableKey, entity: ContestedEntity, our_branch: str, their_branch: str
) -> DetectedConflict:
    """Return the conflict for an entity that both sides changed differently."""
    describe = _MESSAGE_BY_KIND[entity.kind]
    kind, type_name = table_key.kind, table_key.type_name
    conflict = EntityConflict(
        kind,
        type_name,
        entity.id,
        entity.kind,
        describe(entity, our_branch, their_branch),
        property_values(entity.base),
        property_values(entity.ours),
        property_values(entity.theirs),
        entity.differing_columns,
    )
    return DetectedConflict(conflict, table_key, ((table_key, entity.id),), entity.differing_columns)


def conflict_of_violation(
    violation: Violation,
    entity_type: NodeType | EdgeType,
    sides_of: Callable[[TableKey], TableSides],
    our_branch: str,
    their_branch: str,
) -> DetectedConflict:
    """Return the conflict for a rule that the merged graph would violate even though neither side violates it."""
    involved_entities = involved_entities_of(violation, entity_type, sides_of)
    table_sides = sides_of(violation.type_key)
    entity_id = violation.entity_id or ""
    is_count_rule = violation.rule == "@card"  # the violation involves several edges, so there is no single row to show
    version_rows = (
        table_sides.base_row(entity_id),
        table_sides.row_on("ours", entity_id),
        table_sides.row_on("theirs", entity_id),
    )
    base_values, our_values, their_values = (None if is_count_rule else property_values(row) for row in version_rows)
    columns = (
        violation.column if isinstance(violation.column, tuple) else (violation.column,) if violation.column else ()
    )
    kind, type_name = violation.type_key.kind, violation.type_key.type_name
    message = _violation_message(violation, sides_of, entity_type, our_branch, their_branch)
    conflict = EntityConflict(
        kind,
        type_name,
        violation.entity_id,
        violation.conflict_kind,
        message,
        base_values,
        our_values,
        their_values,
        columns,
    )
    return DetectedConflict(conflict, violation.type_key, involved_entities, ("src",) if is_count_rule else columns)


def property_values(row: pa.Table | None) -> dict[str, Any] | None:
    """Return a row's values without its id, or None if there is no row."""
    if row is None:
        return None
    row_values: dict[str, Any] = row.to_pylist()[0]
    return {column: shown_value(value) for column, value in row_values.items() if column != "id"}


def involved_entities_of(
    violation: Violation, entity_type: NodeType | EdgeType, sides_of: Callable[[TableKey], TableSides]
) -> tuple[EntityKey, ...]:
    """Return the entities that take the chosen side's state when a violation is resolved."""
    entity_key = (violation.type_key, violation.entity_id or "")
    if violation.rule == "endpoint" and isinstance(entity_type, EdgeType):
        return entity_key, (TableKey.node(_endpoint_type(entity_type, violation)), str(violation.value))
    if violation.rule == "@unique" and violation.conflicting_id is not None:
        return entity_key, (violation.type_key, violation.conflicting_id)
    if violation.rule == "@card":
        return tuple(
            (violation.type_key, edge_id) for edge_id in sides_of(violation.type_key).changed_edges_from(entity_key[1])
        )
    return (entity_key,)


def _endpoint_type(edge_type: EdgeType, violation: Violation) -> str:
    return edge_type.source if violation.column == "src" else edge_type.target


def _violation_message(
    violation: Violation,
    sides_of: Callable[[TableKey], TableSides],
    entity_type: NodeType | EdgeType,
    our_branch: str,
    their_branch: str,
) -> str:
    if violation.rule == "endpoint" and isinstance(entity_type, EdgeType):
        return _orphan_message(violation, sides_of, entity_type, our_branch, their_branch)
    if violation.rule == "@unique":
        columns = violation.column if isinstance(violation.column, str) else ", ".join(violation.column or ())
        same_value = f"{columns} ({_shorten_value(violation.value)})"
        return f"'{violation.conflicting_id}' has the same {same_value}, which must be unique"
    if violation.rule == "@card":
        return f"{violation.reason} after '{their_branch}' is merged into '{our_branch}'"
    return violation.reason or f"violates {violation.rule}"


def _orphan_message(
    violation: Violation,
    sides_of: Callable[[TableKey], TableSides],
    edge_type: EdgeType,
    our_branch: str,
    their_branch: str,
) -> str:
    node_type = _endpoint_type(edge_type, violation)
    node_sides = sides_of(TableKey.node(node_type))
    deleted_by_us = node_sides.row_on("ours", str(violation.value)) is None
    deleting_branch, using_branch = (our_branch, their_branch) if deleted_by_us else (their_branch, our_branch)
    return (
        f"{violation.column} refers to {node_type} '{violation.value}',"
        f" which was deleted on '{deleting_branch}' and is used on '{using_branch}'"
    )


def _update_message(entity: ContestedEntity, our_branch: str, their_branch: str) -> str:
    return f"changed on both branches: {_describe_differences(entity, our_branch, their_branch)}"


def _insert_message(entity: ContestedEntity, our_branch: str, their_branch: str) -> str:
    return f"added on both branches: {_describe_differences(entity, our_branch, their_branch)}"


def _delete_message(entity: ContestedEntity, our_branch: str, their_branch: str) -> str:
    deleted_by_us = entity.ours is None
    deleting_branch, changing_branch = (our_branch, their_branch) if deleted_by_us else (their_branch, our_branch)
    before = property_values(entity.base) or {}
    after = property_values(entity.theirs if deleted_by_us else entity.ours) or {}
    changes = ", ".join(
        f"{column} {_shorten_value(before.get(column))} -> {_shorten_value(after.get(column))}"
        for column in entity.differing_columns
    )
    message = f"deleted on '{deleting_branch}', changed on '{changing_branch}'"
    return f"{message}: {changes}" if changes else message


def _describe_differences(entity: ContestedEntity, our_branch: str, their_branch: str) -> str:
    """Describe each differing property with its value on both sides and in the base."""
    base_values = property_values(entity.base)
    our_values = property_values(entity.ours) or {}
    their_values = property_values(entity.theirs) or {}
    differences = []
    for column in entity.differing_columns:
        our_value = _shorten_value(our_values.get(column))
        their_value = _shorten_value(their_values.get(column))
        difference = f"{column} is {our_value} on '{our_branch}', {their_value} on '{their_branch}'"
        if base_values is not None:
            difference += f", was {_shorten_value(base_values.get(column))}"
        differences.append(difference)
    return "; ".join(differences)


def _shorten_value(value: Any) -> str:
    if isinstance(value, bytes | BlobDigest):
        return format_count(value.size if isinstance(value, BlobDigest) else len(value), "byte")
    rendered = "null" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
    return rendered if len(rendered) <= _MAX_VALUE_LENGTH else f"{rendered[: _MAX_VALUE_LENGTH - 1]}…"


_MESSAGE_BY_KIND = {
    "divergent_update": _update_message,
    "divergent_insert": _insert_message,
    "delete_vs_update": _delete_message,
}
