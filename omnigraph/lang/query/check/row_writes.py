"""Check statements that write one row: insert, upsert and patch.

This module checks how a statement identifies its row (by key or by `id`) and which properties it must assign (codes
T10, T12 and T16). When the statement runs, the engine checks whether the row exists.
"""

from typing import Literal as OneOf

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType

from .assignments import check_assignments, check_endpoints_unchanged, key_names
from .scope import Scope

RowWrite = plan.InsertRow | plan.UpsertRow | plan.PatchRow
_VERB_NAMES = {m.Insert: "an insert", m.Upsert: "an upsert", m.Patch: "a patch"}


def check_row_write(
    scope: Scope, statement: m.Insert | m.Upsert | m.Patch, target_type: NodeType | EdgeType | None
) -> RowWrite | None:
    """Check an insert, upsert or patch. If its type is unknown (None), check only the values."""
    names_row_by_id = isinstance(statement, m.Patch) or (isinstance(statement, m.Upsert) and not _has_key(target_type))
    assignments = check_assignments(scope, target_type, statement.assignments, allows_id=names_row_by_id)
    if target_type is None:
        return None
    if not statement.assignments:
        verb = _VERB_NAMES[type(statement)]
        scope.report.error(statement.type_name.span, f"{verb} must have at least one assignment", "T10")
        return None
    kind, assigned_names = entity_kind(target_type), {assignment.name.text for assignment in statement.assignments}
    match statement:
        case m.Insert():
            _check_required(scope, statement.type_name, target_type, assigned_names)
            return plan.InsertRow(kind, target_type.name, assignments)
        case m.Upsert():
            required_id = [] if _has_key(target_type) else ["id"]
            _check_required(scope, statement.type_name, target_type, assigned_names, required_id)
            return plan.UpsertRow(kind, target_type.name, assignments)
        case m.Patch():
            _check_patch(scope, statement, target_type, assigned_names)
            return plan.PatchRow(kind, target_type.name, assignments)


def entity_kind(target_type: NodeType | EdgeType) -> OneOf["node", "edge"]:
    """Return whether a type is a node type or an edge type."""
    return "node" if isinstance(target_type, NodeType) else "edge"


def _has_key(target_type: NodeType | EdgeType | None) -> bool:
    return target_type is not None and bool(key_names(target_type))


def _check_required(
    scope: Scope,
    type_name: m.Name,
    target_type: NodeType | EdgeType,
    assigned_names: set[str],
    required_id: list[str] | None = None,
) -> None:
    required_names = [*(required_id or ()), *_required_names(target_type, assigned_names)]
    missing_names = [name for name in required_names if name not in assigned_names]
    if missing_names:
        hint = "assign `id`, because the type has no key" if "id" in missing_names else None
        scope.report.error(
            type_name.span, f"{target_type.name} requires {_join_names(missing_names)}", "T12", hint=hint
        )


def _required_names(target_type: NodeType | EdgeType, assigned_names: set[str]) -> list[str]:
    required_names = ["from", "to"] if isinstance(target_type, EdgeType) else []
    for declared_property in target_type.properties:
        is_embedded = declared_property.embed is not None and declared_property.embed.source in assigned_names
        if not declared_property.type.nullable and declared_property.default is None and not is_embedded:
            required_names.append(declared_property.name)
    return required_names


def _check_patch(scope: Scope, patch: m.Patch, target_type: NodeType | EdgeType, assigned_names: set[str]) -> None:
    """Report a patch that does not identify its row, or that assigns no property besides the key."""
    names_of_key = key_names(target_type)
    missing_names = [name for name in names_of_key if name not in assigned_names]
    is_named_by_key = bool(names_of_key) and not missing_names
    if missing_names and len(missing_names) < len(names_of_key):
        message = f"the patch assigns only part of the {target_type.name} key, without {_join_names(missing_names)}"
        scope.report.error(patch.type_name.span, message, "T12", hint="identify the row by its complete key or by `id`")
    elif not is_named_by_key and "id" not in assigned_names:
        row_names = f"{_join_names(list(names_of_key))} or `id`" if names_of_key else "`id`"
        message = f"patching {target_type.name} requires {row_names} to identify the row"
        scope.report.error(patch.type_name.span, message, "T12")
    elif not assigned_names - {"id", *names_of_key}:
        scope.report.error(patch.type_name.span, "a patch must assign at least one property", "T10")
    check_endpoints_unchanged(scope, target_type, patch.assignments)


def _join_names(names: list[str]) -> str:
    quoted_names = [f"`{name}`" for name in names]
    return quoted_names[0] if len(quoted_names) == 1 else f"{', '.join(quoted_names[:-1])} and {quoted_names[-1]}"
