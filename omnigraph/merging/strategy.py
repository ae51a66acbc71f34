"""Resolve conflicts: one side for all, for some kinds or types, or what a function answers.

Choosing a side for a conflict chooses it for every entity involved. So an edge whose node was
deleted is either deleted too, or restores the node; of two entities with the same unique value, the
one of the chosen side stays. What still breaks a rule remains a conflict.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.errors import EntityConflict, InputError
from omnigraph.ingest.columns import stored_column
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.rules.check import type_named
from omnigraph.storage.equality import same_rows
from omnigraph.values import coerce_parameter

from .conflicts import Entity, Found
from .work import Decision, Judged, Work

Answer = str | Mapping[str, Any] | None
Strategy: TypeAlias = str | Mapping[str, str] | Callable[[EntityConflict], Answer] | None
KINDS = (
    "divergent_insert",
    "divergent_update",
    "delete_vs_update",
    "orphan_edge",
    "unique_violation",
    "cardinality_violation",
    "value_constraint_violation",
)
_SIDES = ("ours", "theirs")
_ROUNDS = 16  # resolving a conflict may uncover another one


def checked(strategy: Strategy, names: Iterable[str]) -> Strategy:
    """Return a strategy after checking its names; `type_names` are the types of the schema."""
    if strategy is None or callable(strategy):
        return strategy
    if isinstance(strategy, str):
        _side(strategy)
        return strategy
    known = {*KINDS, *names}
    for name, side in strategy.items():
        if name not in known:
            raise InputError(
                f"unknown conflict kind or type '{name}' in the strategy",
                reason="unknown name",
                hint=f"conflict kinds are {', '.join(KINDS)}",
            )
        _side(side)
    return strategy


def spelled(strategy: Strategy) -> Any:
    """Return a strategy in the form that the merge commit records."""
    if callable(strategy):
        return "function"
    return dict(strategy) if isinstance(strategy, Mapping) else strategy


def answer(strategy: Strategy, conflict: EntityConflict) -> Answer:
    """Return a strategy's answer to a conflict; None leaves it. A kind wins over a type."""
    if strategy is None or isinstance(strategy, str):
        return strategy
    if callable(strategy):
        return strategy(conflict)
    return strategy.get(conflict.kind) or strategy.get(conflict.type_name)


def settle(
    work: Work, strategy: Strategy, decisions: Mapping[Entity, Decision] | None = None
) -> tuple[Judged, int]:
    """Plan, resolve and plan again until no more is resolved; also return how many were."""
    taken = dict(decisions or {})
    judged, count = work.judge(taken), 0
    for _ in range(_ROUNDS):
        more = [(one, answer(strategy, one.conflict)) for one in judged.found]
        decided = add(work, taken, more)
        if not decided:
            break
        judged, count = work.judge(taken), count + decided
    return judged, count


def add(work: Work, decisions: dict[Entity, Decision], more: Sequence[tuple[Found, Answer]]) -> int:
    """Record answers; return how many resolve something new. Earlier decisions stay."""
    count = 0
    for found, said in more:
        before = len(decisions)
        if isinstance(said, Mapping):
            entity = found.involved[0]
            if entity not in decisions:
                decisions[entity] = _row(work, found, said)
        elif said is not None:
            for entity in found.involved:
                decisions.setdefault(entity, _side(said))
        count += len(decisions) > before
    return count


def _side(text: Any) -> Any:
    if text not in _SIDES:
        raise InputError(
            f"unknown conflict resolution '{text}'",
            reason="expected 'ours' (the target), 'theirs' (the source), or a dict of values",
        )
    return text


def _row(work: Work, found: Found, given: Mapping[str, Any]) -> pa.Table:
    """Return the entity with the given values; others are the target's, if it has the entity."""
    key, entity = found.involved[0]
    sides, type_ = work.sides(key), type_named(work.catalog, key)
    clash = sides.contested.get(entity)
    rows = [clash.mixed["ours"] if clash is not None else None]
    rows += [sides.state("ours", entity), sides.state("theirs", entity)]
    row = next((one for one in rows if one is not None), None)
    if row is None or found.conflict.kind == "cardinality_violation":
        raise InputError(
            f"a {found.conflict.kind} cannot be resolved by values", reason="use 'ours' or 'theirs'"
        )
    for name, value in given.items():
        row = _with_value(row, type_, name, value)
    return row


def _with_value(row: pa.Table, type_: Node | Edge, name: str, value: Any) -> pa.Table:
    prop, at = type_.property(name), row.schema.get_field_index(name)
    if prop is not None:
        stored = coerce_parameter(prop.type, value, name=f"{type_.name}.{name}", mode="python")
        column = stored_column(prop.type, [stored])
    elif isinstance(type_, Edge) and name in ("src", "dst"):
        column = pa.array([str(value)], pa.string())
    else:
        raise InputError(f"{type_.name} has no property '{name}'", reason="unknown property")
    made = row.set_column(at, row.schema.field(at), column.cast(row.schema.field(at).type))
    if isinstance(type_, Node) and name in (type_.key or ()) and not same_rows(row, made)[0]:
        raise InputError(f"{type_.name}.{name} is part of the key", reason="keys are immutable")
    return made
