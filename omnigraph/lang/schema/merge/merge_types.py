"""Merge whole schemas type by type: first decide which types exist, then merge each slot of each type.

Types and properties that one side dropped are absent from the result. Conflicts between such a drop and a change are
resolved earlier (see `drop_conflicts`), so they do not occur in this module.
"""

from collections.abc import Mapping
from dataclasses import replace

from .conflicts import ConflictKind, ConflictLog, SchemaConflict
from .merge_constraints import merge_constraints
from .merge_properties import (
    describe_property,
    merge_allowed_findings,
    merge_annotations,
    merge_name,
    merge_property,
)
from .print_slots import print_cardinality
from .slots import PropertySlots, SchemaSlots, TypeSlots
from .three_way import choose_state, merge_sets, merge_slot

_NO_PROPERTIES: Mapping[int, PropertySlots] = {}
_UNDECLARED: tuple[int, int | None] = (-1, None)  # the base cardinality for an edge type that is not in the base


def merge_types(log: ConflictLog, base: SchemaSlots, ours: SchemaSlots, theirs: SchemaSlots) -> SchemaSlots:
    """Merge two sides that use the same ids, and return the merged schema."""
    merged: SchemaSlots = {}
    for type_id in sorted({*ours, *theirs}):
        our_type, their_type = ours.get(type_id), theirs.get(type_id)
        added_type = our_type or their_type
        if our_type is not None and their_type is not None:
            merged[type_id] = _TypeMerger(log, (base, ours, theirs), type_id).merge()
        elif type_id not in base and added_type is not None:
            merged[type_id] = added_type
    return merged


class _TypeMerger:
    """Merges one type that both sides have."""

    def __init__(self, log: ConflictLog, schemas: tuple[SchemaSlots, SchemaSlots, SchemaSlots], type_id: int) -> None:
        self._log = log
        self._schemas = schemas
        self._base = schemas[0].get(type_id)
        self._ours = schemas[1][type_id]
        self._theirs = schemas[2][type_id]

    def merge(self) -> TypeSlots:
        log, ours, theirs = self._log, self._ours, self._theirs
        base = self._base or replace(ours, annotations={}, implements=frozenset(), allowed_findings=())
        subject = ours.label
        base_cardinality = _UNDECLARED if self._base is None else self._base.cardinality
        return replace(
            ours,
            name=merge_name(log, subject, None if self._base is None else base.name, ours.name, theirs.name),
            properties=self._merge_properties(),
            constraints=merge_constraints(log, self._base, ours, theirs),
            annotations=merge_annotations(log, subject, base.annotations, ours.annotations, theirs.annotations),
            implements=merge_sets(base.implements, ours.implements, theirs.implements),
            source_id=self._merge_endpoint("source_id", "from"),
            target_id=self._merge_endpoint("target_id", "to"),
            cardinality=merge_slot(
                log,
                self._change_kind(),
                subject,
                (base_cardinality, ours.cardinality, theirs.cardinality),
                _describe_cardinality,
            ),
            allowed_findings=merge_allowed_findings(
                base.allowed_findings, ours.allowed_findings, theirs.allowed_findings
            ),
        )

    def _change_kind(self) -> ConflictKind:
        return "added_differently" if self._base is None else "changed_differently"

    def _merge_endpoint(self, attribute: str, preposition: str) -> int | None:
        """Merge one endpoint. A conflict describes each side's endpoint with that side's type name."""
        base_id: int | None = None if self._base is None else getattr(self._base, attribute)
        our_id: int | None = getattr(self._ours, attribute)
        their_id: int | None = getattr(self._theirs, attribute)
        states = (base_id, our_id, their_id)
        if our_id == their_id or (their_id == base_id and self._base is not None):
            return our_id
        if our_id == base_id and self._base is not None:
            return their_id
        described = (
            None if type_id is None else f"{preposition} {schema[type_id].name}"
            for type_id, schema in zip(states, self._schemas, strict=True)
        )
        conflict = SchemaConflict(self._change_kind(), self._ours.label, *described)
        chosen_id = choose_state(self._log.choose(conflict), states)
        return our_id if chosen_id is None else chosen_id  # an edge type that both sides add has no base endpoint

    def _merge_properties(self) -> dict[int, PropertySlots]:
        base_properties = _NO_PROPERTIES if self._base is None else self._base.properties
        our_properties, their_properties = self._ours.properties, self._theirs.properties
        merged: dict[int, PropertySlots] = {}
        for property_id in sorted({*our_properties, *their_properties}):
            ours, theirs = our_properties.get(property_id), their_properties.get(property_id)
            added = ours or theirs
            if ours is not None and theirs is not None:
                subject = self._ours.property_label(property_id)
                merged[property_id] = merge_property(self._log, subject, base_properties.get(property_id), ours, theirs)
            elif (
                added is not None and property_id not in base_properties and self._is_wanted(property_id, ours, theirs)
            ):
                merged[property_id] = added
        return merged

    def _is_wanted(self, property_id: int, ours: PropertySlots | None, theirs: PropertySlots | None) -> bool:
        """Return whether to keep a property that one side added.

        If the property requires a value and entities on the other side have none, the sides conflict.
        """
        added, other_side = (ours, self._theirs) if ours is not None else (theirs, self._ours)
        if added is None or self._base is not None or self._ours.kind == "interface":
            return True
        if added.type.nullable or added.default is not None or property_id in other_side.property_ids.values():
            return True
        described = (None if side is None else describe_property(side) for side in (ours, theirs))
        conflict = SchemaConflict("added_differently", f"{self._ours.label}.{added.name}", None, *described)
        return choose_state(self._log.choose(conflict), (None, ours, theirs)) is not None


def _describe_cardinality(bounds: tuple[int, int | None]) -> str | None:
    return None if bounds == _UNDECLARED else print_cardinality(bounds)
