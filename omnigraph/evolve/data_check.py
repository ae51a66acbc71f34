"""Check whether existing entities satisfy the constraints that a new schema adds.

The check runs before anything is written and scans only the tables and columns that new constraints affect. Rows are
converted to their new form and then checked against the same rules as any write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import SchemaViolation
from omnigraph.history.matched_types import TypeTransition, type_transitions
from omnigraph.lang.schema.canonical_shape import constraint_columns
from omnigraph.lang.schema.catalog import Check, Constraint, EdgeType, NodeType, Range, Unique
from omnigraph.lang.schema.migrate.steps import (
    AddConstraint,
    ChangeCardinality,
    ChangeEndpoints,
    MigrationStep,
    NarrowEnum,
    PropertyStep,
    TightenProperty,
)
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.cardinality import cardinality_violation
from omnigraph.rules.delta import build_table_delta
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.unique import repeated_records
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_key
from omnigraph.storage.find_rows import read_batches
from omnigraph.storage.table import Table
from omnigraph.values.table_key import TableKey

from .proposal import SchemaPlan

MAX_REPORTED = 10  # maximum number of entities that an error lists


def checked_table_keys(schema_plan: SchemaPlan) -> set[TableKey]:
    """Return the pre-migration keys of the tables whose rows must be checked."""
    transitions = list(_plan_transitions(schema_plan))
    type_keys = {transition.old_key for transition in checked_types(schema_plan)}
    if any(isinstance(step, ChangeEndpoints) for step in schema_plan.steps):
        type_keys |= {transition.old_key for transition in transitions if transition.old_type.kind == "node"}
    return type_keys


def checked_types(schema_plan: SchemaPlan) -> list[TypeTransition]:
    """Return the types with existing rows that may violate a new rule."""
    return [transition for transition in _plan_transitions(schema_plan) if _validated_steps(schema_plan, transition)]


def check_data(schema_plan: SchemaPlan, txn: WriteTxn) -> None:
    """Raise `SchemaViolation` with the first offending entities if any entity violates a new constraint."""
    violations = list(islice(_find_violations(schema_plan, txn), MAX_REPORTED + 1))
    if violations:
        reported = [_violation_to_json(violation) for violation in violations[:MAX_REPORTED]]
        raise SchemaViolation(violations=reported, more=len(violations) > MAX_REPORTED)


def _find_violations(schema_plan: SchemaPlan, txn: WriteTxn) -> Iterator[Violation]:
    old_key_by_new_key = {transition.new_key: transition.old_key for transition in _plan_transitions(schema_plan)}
    for type_transition in _plan_transitions(schema_plan):
        entry = txn.table_entry(type_transition.old_key)
        validated_steps = _validated_steps(schema_plan, type_transition)
        if validated_steps and entry is not None and entry.row_count:
            yield from _check_type(type_transition, validated_steps, txn.table(type_transition.old_key))
            if any(isinstance(step, ChangeEndpoints) for step in validated_steps):
                yield from _check_endpoints(type_transition.new_type, txn, type_transition.old_key, old_key_by_new_key)


def _plan_transitions(schema_plan: SchemaPlan) -> Iterator[TypeTransition]:
    return type_transitions(schema_plan.before.ir, schema_plan.after)


def _validated_steps(schema_plan: SchemaPlan, type_transition: TypeTransition) -> list[MigrationStep]:
    """Return the steps in a type's migration that require a check of existing rows."""
    return [
        step
        for step in schema_plan.steps
        if step.tier == "validated" and _concerns_type(step, type_transition.new_type)
    ]


def _concerns_type(step: MigrationStep, entity_type: NodeType | EdgeType) -> bool:
    if not isinstance(step, PropertyStep | AddConstraint | ChangeCardinality | ChangeEndpoints):
        return False
    return (step.type_kind, step.type_name) == (entity_type.kind, entity_type.name)


def _check_type(type_transition: TypeTransition, steps: Sequence[MigrationStep], table: Table) -> Iterator[Violation]:
    yield from _check_rows(type_transition, steps, table)
    for rule in _added_constraints(steps, Unique):
        yield from _check_unique(type_transition, rule, table)
    if isinstance(type_transition.new_type, EdgeType) and any(isinstance(step, ChangeCardinality) for step in steps):
        yield from _check_cardinality(type_transition.new_type, table)


def _added_constraints(steps: Sequence[MigrationStep], *constraint_classes: type[Any]) -> tuple[Constraint, ...]:
    constraints = (step.constraint for step in steps if isinstance(step, AddConstraint))
    return tuple(constraint for constraint in constraints if isinstance(constraint, constraint_classes))


def _check_rows(type_transition: TypeTransition, steps: Sequence[MigrationStep], table: Table) -> Iterator[Violation]:
    """Yield violations of rules that apply to a single row: required values, enums, ranges and patterns."""
    row_constraints = _added_constraints(steps, Range, Check)
    tightened_names = {step.property_name for step in steps if isinstance(step, TightenProperty | NarrowEnum)}
    if not tightened_names and not row_constraints:
        return
    constrained_names = {
        property_name for constraint in row_constraints for property_name in constraint_columns(constraint)
    }
    tightened_properties = tuple(
        declared_property
        for declared_property in type_transition.new_type.properties
        if declared_property.name in tightened_names
    )
    trimmed_type = replace(type_transition.new_type, properties=tightened_properties, constraints=row_constraints)
    if isinstance(trimmed_type, NodeType | EdgeType):
        trimmed_type = _add_constrained_properties(trimmed_type, type_transition.new_type, constrained_names)
    for batch in _read_in_new_form(type_transition, sorted(tightened_names | constrained_names), table):
        yield from row_violations(trimmed_type, batch)


def _add_constrained_properties(trimmed_type: Any, new_type: NodeType | EdgeType, constrained_names: set[str]) -> Any:
    """Add missing constrained properties to a type. They are nullable, because only their data types matter here."""
    present_names = {present.name for present in trimmed_type.properties}
    missing_properties = [
        declared_property
        for declared_property in new_type.properties
        if declared_property.name in constrained_names - present_names
    ]
    nullable_properties = [
        replace(declared_property, type=replace(declared_property.type, nullable=True, enum_values=None))
        for declared_property in missing_properties
    ]
    return replace(trimmed_type, properties=(*trimmed_type.properties, *nullable_properties))


def _check_unique(type_transition: TypeTransition, constraint: Constraint, table: Table) -> Iterator[Violation]:
    """Yield a violation for each entity that has the same values as another in the columns of a unique constraint."""
    trimmed_type = replace(type_transition.new_type, constraints=(constraint,))
    all_rows = pa.Table.from_batches(list(_read_in_new_form(type_transition, constraint_columns(constraint), table)))
    yield from repeated_records(
        trimmed_type, build_table_delta(type_transition.new_key, all_rows, "fresh", from_records=True)
    )


def _check_cardinality(edge_type: EdgeType, table: Table) -> Iterator[Violation]:
    """Yield a violation for each source node with too few or too many edges. Nodes without edges are not checked."""
    source_columns = [batch.column("src") for batch in read_batches(table, ["src"])]
    value_counts = pa.chunked_array(source_columns, pa.string()).value_counts()
    counts = np.asarray(value_counts.field("counts"))
    out_of_bounds = counts < edge_type.min_cardinality
    if edge_type.max_cardinality is not None:
        out_of_bounds |= counts > edge_type.max_cardinality
    wrong_counts = value_counts.filter(pa.array(out_of_bounds))
    sorted_indexes = pc.sort_indices(wrong_counts.field("values"))
    for index in sorted_indexes.to_pylist():
        source = wrong_counts.field("values")[index].as_py()
        edge_count = wrong_counts.field("counts")[index].as_py()
        yield cardinality_violation(edge_type, source, edge_count, None)


def _check_endpoints(
    edge_type: NodeType | EdgeType, txn: WriteTxn, type_key: TableKey, old_key_by_new_key: Mapping[TableKey, TableKey]
) -> Iterator[Violation]:
    """Yield a violation for each edge endpoint that is missing from the node type that the edge type now requires."""
    assert isinstance(edge_type, EdgeType)  # noqa: S101 - only edges have endpoints
    existing_ids = {
        node_type: _read_node_ids(txn, old_key_by_new_key.get(TableKey.node(node_type)))
        for node_type in {edge_type.source, edge_type.target}
    }
    for batch in read_batches(txn.table(type_key), ["id", "src", "dst"]):
        for endpoint_column, node_type in (("src", edge_type.source), ("dst", edge_type.target)):
            dangling_edges = batch.filter(
                pc.invert(pc.is_in(batch.column(endpoint_column), value_set=existing_ids[node_type]))
            )
            for edge_row in dangling_edges.select(["id", endpoint_column]).to_pylist():
                reason = f"there is no {node_type} '{edge_row[endpoint_column]}'"
                yield Violation("endpoint", table_key(edge_type), edge_row["id"], endpoint_column, reason)


def _read_node_ids(txn: WriteTxn, type_key: TableKey | None) -> pa.Array:
    """Return the ids of all nodes of a type, or an empty array if the type is new."""
    id_columns = [] if type_key is None else [batch.column("id") for batch in read_batches(txn.table(type_key), ["id"])]
    return pa.chunked_array(id_columns, pa.string()).combine_chunks()


def _read_in_new_form(
    type_transition: TypeTransition, column_names: Sequence[str], table: Table
) -> Iterator[pa.RecordBatch]:
    """Read the id and the given columns, converted to their new types and renamed."""
    column_by_name = {target_column.field.name: target_column for target_column in type_transition.target_columns}
    requested_columns = [column_by_name[column_name] for column_name in dict.fromkeys(["id", *column_names])]
    source_names = [target_column.source for target_column in requested_columns if target_column.source is not None]
    for batch in read_batches(table, list(dict.fromkeys(source_names))):
        arrays = [target_column.values_for(batch) for target_column in requested_columns]
        yield pa.record_batch(arrays, [target_column.field.name for target_column in requested_columns])


def _violation_to_json(violation: Violation) -> dict[str, Any]:
    property_text = (
        violation.column if violation.column is None or isinstance(violation.column, str) else _join_columns(violation)
    )
    members = {
        "type": violation.type_key,
        "id": violation.entity_id,
        "rule": violation.rule,
        "property": property_text,
        "reason": violation.reason or _describe_holder(violation),
    }
    return {member: value for member, value in members.items() if value is not None}


def _join_columns(violation: Violation) -> str:
    return f"({', '.join(violation.column or ())})"


def _describe_holder(violation: Violation) -> str | None:
    if violation.conflicting_id is None:
        return None
    return f"value '{violation.value}' is also used by '{violation.conflicting_id}'"
