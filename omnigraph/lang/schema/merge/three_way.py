"""Merge a single slot: take the value from the side that changed it, or report a conflict.

If only one side changed a slot, or both sides made the same change, the changed value wins. Otherwise, the conflict is
recorded in the conflict log, which returns the winning side.
"""

from collections.abc import Callable
from typing import TypeVar

from .conflicts import ConflictKind, ConflictLog, SchemaConflict, Winner

Value = TypeVar("Value")
Describe = Callable[[Value], str | None]


def merge_slot(
    log: ConflictLog, kind: ConflictKind, subject: str, states: tuple[Value, Value, Value], describe: Describe[Value]
) -> Value:
    """Return a slot's merged value. `states` contains its values in the base, on our side and on theirs."""
    base, ours, theirs = states
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    conflict = SchemaConflict(kind, subject, describe(base), describe(ours), describe(theirs))
    return choose_state(log.choose(conflict), states)


def choose_state(winner: Winner, states: tuple[Value, Value, Value]) -> Value:
    """Return the winner's value. `states` contains the values in the base, on our side and on theirs."""
    base, ours, theirs = states
    return {"base": base, "ours": ours, "theirs": theirs}[winner]


def merge_sets(base: frozenset[Value], ours: frozenset[Value], theirs: frozenset[Value]) -> frozenset[Value]:
    """Return the base set with both sides' additions and removals applied.

    >>> sorted(merge_sets(frozenset("ab"), frozenset("abc"), frozenset("bd")))
    ['b', 'c', 'd']
    """
    return (base & ours & theirs) | (ours - base) | (theirs - base)
