"""Merge the constraints of one type, group by group.

A group is identified by the kind of constraint and its columns. Additions from both sides are combined unless they
contradict each other. The following contradict each other: two keys, two ranges on a property, two indexes of the same
kind with different options, and two different replacements of the same constraint. There is no conflict if one side
writes a constraint after the property and the other side writes the same constraint in the body.
"""

from collections.abc import Iterable

from .conflicts import ConflictKind, ConflictLog, SchemaConflict
from .print_slots import print_constraint
from .slots import BODY, INLINE, ColumnReference, ConstraintDetail, ConstraintGroup, GroupContent, TypeSlots
from .three_way import choose_state, merge_sets

_SINGLE_CONTENT_KINDS = frozenset({"key", "range"})
_Details = frozenset[ConstraintDetail]


def merge_constraints(
    log: ConflictLog, base: TypeSlots | None, ours: TypeSlots, theirs: TypeSlots
) -> dict[ConstraintGroup, GroupContent]:
    """Return the merged constraints for a type that both sides have."""
    base_groups = {} if base is None else base.constraints
    merged: dict[ConstraintGroup, GroupContent] = {}
    for group in sorted({*base_groups, *ours.constraints, *theirs.constraints}, key=str):
        contents = (base_groups.get(group, {}), ours.constraints.get(group, {}), theirs.constraints.get(group, {}))
        details = _merge_details(log, group, (base, ours, theirs), contents)
        content = {detail: _merge_forms(detail, *contents) for detail in sorted(details, key=str)}
        if content:
            merged[group] = content
    return merged


def _merge_details(
    log: ConflictLog,
    group: ConstraintGroup,
    types: tuple[TypeSlots | None, TypeSlots, TypeSlots],
    contents: tuple[GroupContent, GroupContent, GroupContent],
) -> _Details:
    base, ours, theirs = (frozenset(content) for content in contents)
    if not _contradict(group[0], base, ours, theirs, is_new_type=types[0] is None):
        return merge_sets(base, ours, theirs)
    kind: ConflictKind = "constraint_changed_differently" if base else "constraint_added_differently"
    if base and not (ours and theirs):
        kind = "constraint_dropped_and_changed"
    described = (describe_details(group, *side) for side in zip((base, ours, theirs), types, strict=True))
    first_column = next(iter(group[1]), "")
    subject = types[1].property_label(first_column) if isinstance(first_column, int) else types[1].label
    conflict = SchemaConflict(kind, subject, *described)
    return choose_state(log.choose(conflict), (base, ours, theirs))


def _contradict(kind: str, base: _Details, ours: _Details, theirs: _Details, *, is_new_type: bool) -> bool:
    if kind == "key" and is_new_type:
        return ours != theirs  # the ids of entities depend on the key
    our_additions, their_additions = ours - base, theirs - base
    if base in (ours, theirs) or our_additions == their_additions:
        return False
    if (base - ours) & (base - theirs):
        return True  # both sides replaced the same constraint, or one side dropped a constraint that the other replaced
    if kind in _SINGLE_CONTENT_KINDS:
        return bool(our_additions and their_additions)
    if kind == "index":
        our_kinds = {detail[0] for detail in our_additions - their_additions}
        return any(detail[0] in our_kinds for detail in their_additions - our_additions)
    return False


def _merge_forms(
    detail: ConstraintDetail, base: GroupContent, ours: GroupContent, theirs: GroupContent
) -> frozenset[str]:
    none: frozenset[str] = frozenset()
    states = base.get(detail, none), ours.get(detail, none), theirs.get(detail, none)
    if not states[1] or not states[2]:
        return states[1] or states[2]  # one side added the constraint, or a decision kept it
    forms = merge_sets(*states)
    if forms == {INLINE, BODY} and forms not in states:
        return frozenset({INLINE})
    return forms or frozenset({BODY})


def describe_details(
    group: ConstraintGroup, details: Iterable[ConstraintDetail], owner: TypeSlots | None
) -> str | None:
    """Describe the constraints in a group that have the given details, or return None if there are no details."""

    def column_name(reference: ColumnReference) -> str:
        known_name = owner.property_name(reference) if owner is not None and isinstance(reference, int) else None
        return known_name or str(reference)

    return " ".join(sorted(print_constraint(group, detail, column_name) for detail in details)) or None
