"""Errors for rows that cannot be converted to another state's schema.

Each error identifies the responsible schema change. This module only defines how the errors are worded. `matched_types`
determines which rows can be converted.
"""

import pyarrow as pa

from omnigraph.errors import ChangeSchemaBoundary
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values.table_key import TableKey

from .matched_types import TypeTransition
from .schema_changes import locate_change
from .snapshot import Snapshot

BOUNDARY_HINT = (
    "compare revisions that are both before or both after the schema change: list the commits with"
    " `omnigraph log --type {type_name}`, or read each revision separately with `--at`; to continue a feed, take a new"
    " baseline"
)


def check_expressible(
    old_snapshot: Snapshot, new_snapshot: Snapshot, transition: TypeTransition, old_rows: pa.Table
) -> None:
    """Raise `ChangeSchemaBoundary` if rows in the old state cannot be converted to the new state's type."""
    property_name = transition.find_obstacle(old_rows)
    if property_name is None:
        return
    type_name = transition.new_type.name
    raise ChangeSchemaBoundary(
        f"cannot list the changes in commit '{new_snapshot.commit_id}' for type '{type_name}':"
        f" {describe_obstacle(old_snapshot, new_snapshot, transition, property_name)}",
        graph_commit_id=new_snapshot.commit_id,
        type_name=type_name,
        hint=BOUNDARY_HINT.format(type_name=type_name),
    )


def replaced_type_error(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> ChangeSchemaBoundary:
    """Return an error for two states that have different types with the same name."""
    change = describe_type_change(new_snapshot, old_snapshot, table_key)
    type_name = table_key.type_name
    return ChangeSchemaBoundary(
        f"cannot list the changes in commit '{new_snapshot.commit_id}' for type '{type_name}':"
        f" in commit {old_snapshot.commit_id}, '{type_name}' is a different type{change}",
        graph_commit_id=new_snapshot.commit_id,
        type_name=type_name,
        hint=BOUNDARY_HINT.format(type_name=type_name),
    )


def describe_obstacle(
    old_snapshot: Snapshot, new_snapshot: Snapshot, transition: TypeTransition, property_name: str
) -> str:
    """Describe why rows cannot be converted: the property, the responsible schema change, and its commit."""
    old_name = transition.old_property_names[property_name]
    kind, new_type, old_type = transition.new_type.kind, transition.new_type.name, transition.old_type.name
    type_id = transition.new_ir.type_id(kind, new_type)
    property_id = transition.new_ir.property_id(kind, new_type, property_name)
    new_property = transition.new_type.property(property_name)
    shown_type = "" if new_property is None else f": {new_property.type.display()}"
    problem = f"values of '{old_name}' in commit {old_snapshot.commit_id} do not fit '{property_name}{shown_type}'"
    located = locate_change(new_snapshot, old_snapshot, lambda ir: _property_type(ir, type_id, property_id))
    if located is None:
        return problem
    change = located.describe({property_name, old_name}, {new_type, old_type})
    return f"{problem} (commit {located.commit.id}: {change})"


def describe_type_change(snapshot: Snapshot, other_snapshot: Snapshot, table_key: TableKey) -> str:
    """Return a note in parentheses about the commit that dropped or replaced a type, or "" if it is unknown."""
    located = locate_change(snapshot, other_snapshot, lambda ir: _type_id_by_name(ir, table_key))
    if located is None:
        return ""
    return f" (commit {located.commit.id}: {located.describe(None, {table_key.type_name})})"


def _type_id_by_name(ir: SchemaIR, table_key: TableKey) -> int | None:
    identities = (identity for identity in ir.type_identities if identity.kind == table_key.kind)
    return next((identity.type_id for identity in identities if identity.name == table_key.type_name), None)


def _property_type(ir: SchemaIR, type_id: int, property_id: int) -> str | None:
    """Return a property's type in a schema, without its name or nullability, or None if there is no such property."""
    for identity in ir.type_identities:
        if identity.type_id != type_id:
            continue
        name = next((name for name, number in identity.property_ids if number == property_id), None)
        types = ir.catalog.nodes if identity.kind == "node" else ir.catalog.edges
        for declared in types:
            prop = declared.property(name) if declared.name == identity.name and name is not None else None
            if prop is not None:
                return prop.type.display()
    return None
