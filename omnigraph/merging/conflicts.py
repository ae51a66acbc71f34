"""Describe conflicts: which entity, which properties, their values on each side and in the base.

Owns the step from contested entities and rule violations to the records that callers see, and the
set of entities that resolving a conflict affects: all of them take the state of the chosen side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.errors import EntityConflict
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.rules.violation import Violation

from .sides import Contested, Sides

Entity = tuple[str, str]  # table key and id
_LONGEST = 60  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Found:
    """A conflict, and the entities that resolving it for one side affects."""

    conflict: EntityConflict
    key: str
    involved: tuple[Entity, ...]

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort nodes before edges, then by type, id and kind."""
        one = self.conflict
        node = one.entity_kind != "node"
        return (node, one.type_name, one.entity_id or "", one.kind, one.message)


def contested(key: str, one: Contested, ours: str, theirs: str) -> Found:
    """Return the conflict of an entity that both sides changed differently."""
    tell = _TELL[one.kind]
    kind, _, name = key.partition(":")
    conflict = EntityConflict(
        kind,
        name,
        one.id,
        one.kind,
        tell(one, ours, theirs),
        values(one.base),
        values(one.ours),
        values(one.theirs),
        one.clashing,
    )
    return Found(conflict, key, ((key, one.id),))


def broken_rule(
    one: Violation,
    type_: Node | Edge,
    sides: Callable[[str], Sides],
    ours: str,
    theirs: str,
) -> Found:
    """Return the conflict of a rule that the merged graph would break, though neither side does."""
    involved = _involved(one, type_, sides)
    own = sides(one.type_key)
    entity = one.entity_id or ""
    counted = one.rule == "@card"  # about several edges: there is no single row to show
    rows = (own.base_row(entity), own.state("ours", entity), own.state("theirs", entity))
    base, mine, other = (None if counted else values(row) for row in rows)
    names = one.column if isinstance(one.column, tuple) else (one.column,) if one.column else ()
    kind, _, name = one.type_key.partition(":")
    message = _reason(one, sides, type_, ours, theirs)
    conflict = EntityConflict(
        kind, name, one.entity_id, one.conflict_kind, message, base, mine, other, names
    )
    return Found(conflict, one.type_key, involved)


def values(row: pa.Table | None) -> dict[str, Any] | None:
    """Return the values of a row, without its id."""
    if row is None:
        return None
    found: dict[str, Any] = row.to_pylist()[0]
    return {name: value for name, value in found.items() if name != "id"}


def _involved(
    one: Violation, type_: Node | Edge, sides: Callable[[str], Sides]
) -> tuple[Entity, ...]:
    entity = (one.type_key, one.entity_id or "")
    if one.rule == "endpoint" and isinstance(type_, Edge):
        return entity, (f"node:{_end(type_, one)}", str(one.value))
    if one.rule == "@unique" and one.other_id is not None:
        return entity, (one.type_key, one.other_id)
    if one.rule == "@card":
        return tuple((one.type_key, each) for each in sides(one.type_key).edges_from(entity[1]))
    return (entity,)


def _end(type_: Edge, one: Violation) -> str:
    return type_.source if one.column == "src" else type_.target


def _reason(
    one: Violation, sides: Callable[[str], Sides], type_: Node | Edge, ours: str, theirs: str
) -> str:
    if one.rule == "endpoint" and isinstance(type_, Edge):
        return _orphaned(one, sides, type_, ours, theirs)
    if one.rule == "@unique":
        names = one.column if isinstance(one.column, str) else ", ".join(one.column or ())
        return f"'{one.other_id}' has the same {names} ({_short(one.value)}), which must be unique"
    if one.rule == "@card":
        return f"{one.reason} after '{theirs}' is merged into '{ours}'"
    return one.reason or f"breaks {one.rule}"


def _orphaned(
    one: Violation, sides: Callable[[str], Sides], type_: Edge, ours: str, theirs: str
) -> str:
    name = _end(type_, one)
    node = sides(f"node:{name}")
    here = node.state("ours", str(one.value)) is None
    gone, used = (ours, theirs) if here else (theirs, ours)
    return f"its {one.column} is {name} '{one.value}', deleted on '{gone}' and used on '{used}'"


def _update(one: Contested, ours: str, theirs: str) -> str:
    return f"both branches changed it: {_each(one, ours, theirs)}"


def _insert(one: Contested, ours: str, theirs: str) -> str:
    return f"both branches added it: {_each(one, ours, theirs)}"


def _delete(one: Contested, ours: str, theirs: str) -> str:
    here = one.ours is None
    gone, kept = (ours, theirs) if here else (theirs, ours)
    was, now = values(one.base) or {}, values(one.theirs if here else one.ours) or {}
    told = [f"{n} {_short(was.get(n))} -> {_short(now.get(n))}" for n in one.clashing]
    return f"deleted on '{gone}', changed on '{kept}'{': ' if told else ''}{', '.join(told)}"


def _each(one: Contested, ours: str, theirs: str) -> str:
    """Describe each differing property with its value on both sides and in the base."""
    was, mine, other = values(one.base), values(one.ours) or {}, values(one.theirs) or {}
    told = []
    for name in one.clashing:
        pair = f"{_short(mine.get(name))} on '{ours}', {_short(other.get(name))} on '{theirs}'"
        told.append(f"{name} is {pair}{'' if was is None else f', was {_short(was.get(name))}'}")
    return "; ".join(told)


def _short(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = "null" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_TELL = {"divergent_update": _update, "divergent_insert": _insert, "delete_vs_update": _delete}
