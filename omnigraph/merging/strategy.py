"""Conflict resolution by strategy: one side for all conflicts, a side per conflict kind or type, or a function.

Choosing a side for a conflict chooses that side for every entity involved. For example, if one side deleted a node and
the other side added an edge to it, the merge either deletes or keeps both the node and the edge. If two entities have
the same unique value, the chosen side's entity is kept. If the result still violates a rule, the violation remains a
conflict.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.errors import EntityConflict, InputError
from omnigraph.ingest.columns import stored_column
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.storage.blob_placeholders import placeholder_of_digest
from omnigraph.storage.pending_blobs import accept_blob
from omnigraph.storage.value_equality import same_rows
from omnigraph.values import BlobSource, BlobUri, coerce_parameter
from omnigraph.values.blobs import BlobDigest

from .conflicts import DetectedConflict, EntityKey
from .decisions import Decision, PropertyChoices, extend_decision
from .merged_schema import SCHEMA_CONFLICT
from .planner import MergePlan, MergePlanner
from .table_merge import Choice

ConflictAnswer = str | Mapping[str, Any] | None
Strategy: TypeAlias = str | Mapping[str, str] | Callable[[EntityConflict], ConflictAnswer] | None
CONFLICT_KINDS = (
    SCHEMA_CONFLICT,
    "divergent_insert",
    "divergent_update",
    "delete_vs_update",
    "orphan_edge",
    "unique_violation",
    "cardinality_violation",
    "value_constraint_violation",
)
DEFAULT_NAME = "*"  # the name that stands for all other conflicts in a strategy
_SIDES = ("ours", "theirs")
_MAX_ROUNDS = 16  # maximum number of rounds; resolving a conflict may reveal another one


def check_strategy(strategy: Strategy, type_names: Iterable[str]) -> Strategy:
    """Check the names in a strategy and return the strategy. `type_names` must contain all types in the schema."""
    if strategy is None or callable(strategy):
        return strategy
    if isinstance(strategy, str):
        check_side(strategy)
        return strategy
    known_names = {DEFAULT_NAME, *CONFLICT_KINDS, *type_names}
    for name, side in strategy.items():
        if name not in known_names:
            raise InputError(
                f"unknown conflict kind or type '{name}' in the strategy",
                reason="unknown name",
                hint=f"conflict kinds are {', '.join(CONFLICT_KINDS)}; '{DEFAULT_NAME}' means all other conflicts",
            )
        check_side(side)
    return strategy


def describe_strategy(strategy: Strategy) -> Any:
    """Return a strategy in the form that the merge commit records."""
    if callable(strategy):
        return "function"
    return dict(strategy) if isinstance(strategy, Mapping) else strategy


def answer_conflict(strategy: Strategy, conflict: EntityConflict) -> ConflictAnswer:
    """Return a strategy's decision about a conflict, or None if it remains open.

    A conflict kind takes precedence over a type, and a type over the default.
    """
    if strategy is None or isinstance(strategy, str):
        return strategy
    if callable(strategy):
        return strategy(conflict)
    return strategy.get(conflict.kind) or strategy.get(conflict.type_name) or strategy.get(DEFAULT_NAME)


def resolve_conflicts(
    planner: MergePlanner, strategy: Strategy, decisions: Mapping[EntityKey, Decision] | None = None
) -> tuple[MergePlan, int]:
    """Plan the merge and apply the strategy repeatedly until it resolves no further conflict.

    Return the plan and the number of resolutions.
    """
    all_decisions = dict(decisions or {})
    plan, decided_count = planner.make_plan(all_decisions), 0
    for _ in range(_MAX_ROUNDS):
        answers = [(detected, answer_conflict(strategy, detected.conflict)) for detected in plan.conflicts]
        new_decisions = record_answers(planner, all_decisions, answers)
        if not new_decisions:
            break
        plan, decided_count = planner.make_plan(all_decisions), decided_count + new_decisions
    return plan, decided_count


def record_answers(
    planner: MergePlanner,
    decisions: dict[EntityKey, Decision],
    answers: Sequence[tuple[DetectedConflict, ConflictAnswer]],
) -> int:
    """Record decisions, keeping earlier ones, and return how many conflicts the new decisions resolve."""
    new_decisions = 0
    for detected, conflict_answer in answers:
        if isinstance(conflict_answer, Mapping):
            new_decisions += _record_values(planner, decisions, detected, conflict_answer)
        elif conflict_answer is not None:
            new_decisions += _record_side(planner, decisions, detected, check_side(conflict_answer))
    return new_decisions


def _record_values(
    planner: MergePlanner,
    decisions: dict[EntityKey, Decision],
    detected: DetectedConflict,
    values: Mapping[str, Any],
) -> bool:
    """Record the values chosen for a conflict's entity; return False if a decision already covers the whole entity."""
    entity_key = detected.involved_entities[0]
    earlier = decisions.get(entity_key)
    if earlier is not None and not isinstance(earlier, PropertyChoices):
        return False
    decisions[entity_key] = _row_with_values(planner, detected, earlier, values)
    return True


def _record_side(
    planner: MergePlanner, decisions: dict[EntityKey, Decision], detected: DetectedConflict, side: Choice
) -> bool:
    """Record the side chosen for a conflict's entities; return whether any decision changed."""
    decides_more = False
    for entity_key in detected.involved_entities:
        table_key, entity_id = entity_key
        earlier, columns = decisions.get(entity_key), detected.columns_of(entity_key)
        decision = extend_decision(planner.table_sides(table_key), entity_id, earlier, side, columns)
        decides_more |= decision is not earlier and decision != earlier
        decisions[entity_key] = decision
    return decides_more


def withdraw_answer(decisions: dict[EntityKey, Decision], detected: DetectedConflict) -> None:
    """Remove the decisions about a conflict, but keep those about other properties of the entities involved."""
    for entity_key in detected.involved_entities:
        decision, columns = decisions.pop(entity_key, None), detected.columns_of(entity_key)
        remaining = decision.without_columns(columns) if isinstance(decision, PropertyChoices) else None
        if columns and remaining is not None:
            decisions[entity_key] = remaining


def check_schema_answer(answer: ConflictAnswer) -> str:
    """Return the side chosen for a schema conflict; raise `InputError` for any other answer."""
    if isinstance(answer, Mapping):
        message = f"a {SCHEMA_CONFLICT} cannot be resolved with values"
        raise InputError(message, reason="use 'ours' or 'theirs'")
    return str(check_side(answer))


def check_side(choice: Any) -> Any:
    """Return `choice` if it is a side; otherwise, raise `InputError`."""
    if choice not in _SIDES:
        raise InputError(
            f"unknown conflict resolution '{choice}'",
            reason="expected 'ours' (the target), 'theirs' (the source), or a dict of values",
        )
    return choice


def _row_with_values(
    planner: MergePlanner,
    detected: DetectedConflict,
    earlier: PropertyChoices | None,
    property_values: Mapping[str, Any],
) -> pa.Table:
    """Return the merged row for a conflict's entity, with the given values assigned."""
    table_key, entity_id = detected.involved_entities[0]
    entity_type = type_for_key(planner.catalog, table_key)
    row = planner.table_sides(table_key).merged_row(entity_id, earlier.side_by_column if earlier is not None else None)
    if row is None or detected.conflict.kind == "cardinality_violation":
        raise InputError(
            f"conflicts of kind {detected.conflict.kind} cannot be resolved with values",
            reason="use 'ours' or 'theirs'",
        )
    for property_name, value in property_values.items():
        row = _set_value(row, entity_type, property_name, value)
    return row


def _set_value(row: pa.Table, entity_type: NodeType | EdgeType, property_name: str, value: Any) -> pa.Table:
    prop = entity_type.property(property_name)
    column_index = row.schema.get_field_index(property_name)
    if prop is not None:
        column = stored_column(prop.type, [_stored_value(entity_type, prop, value)])
    elif isinstance(entity_type, EdgeType) and property_name in ("src", "dst"):
        column = pa.array([str(value)], pa.string())
    else:
        raise InputError(f"{entity_type.name} has no property '{property_name}'", reason="unknown property")
    changed_row = row.set_column(
        column_index, row.schema.field(column_index), column.cast(row.schema.field(column_index).type)
    )
    if property_name in (entity_type.key or ()) and not same_rows(row, changed_row)[0]:
        raise InputError(
            f"{entity_type.name}.{property_name} is part of the key and cannot be changed", reason="keys are immutable"
        )
    return changed_row


def _stored_value(entity_type: NodeType | EdgeType, prop: PropertyDefinition, value: Any) -> Any:
    if isinstance(value, BlobDigest):
        return placeholder_of_digest(value)
    parameter_name = f"{entity_type.name}.{prop.name}"
    stored_value = coerce_parameter(prop.type, value, parameter_name=parameter_name, mode="python")
    return accept_blob(stored_value) if isinstance(stored_value, BlobUri | BlobSource) else stored_value
