"""Merge one property slot by slot: name, type, default, embedding and annotations.

A property's type consists of three slots: the stored type, the nullability, and the enum values.
"""

from dataclasses import replace

from omnigraph.lang.schema.catalog import AllowedFinding, StoredAnnotation
from omnigraph.values import PropertyType

from .conflicts import ConflictLog, SchemaConflict
from .print_slots import print_annotation, print_default, print_embed
from .slots import Annotations, EmbedSlot, PropertySlots
from .three_way import choose_state, merge_sets, merge_slot


def merge_property(
    log: ConflictLog, subject: str, base: PropertySlots | None, ours: PropertySlots, theirs: PropertySlots
) -> PropertySlots:
    """Merge a property that both sides have. `base` is None if both sides added it."""
    if base is None:
        return _merge_added_property(log, subject, ours, theirs)
    states = (base, ours, theirs)
    embeds: tuple[EmbedSlot | None, EmbedSlot | None, EmbedSlot | None] = (base.embed, ours.embed, theirs.embed)
    default_holder = _merge_default(log, subject, *states)
    return replace(
        ours,
        name=merge_name(log, subject, base.name, ours.name, theirs.name),
        type=_merge_type(log, subject, base.type, ours.type, theirs.type),
        annotations=merge_annotations(log, subject, base.annotations, ours.annotations, theirs.annotations),
        default=default_holder.default,
        embed=merge_slot(log, "changed_differently", subject, embeds, _describe_embed),
        allowed_findings=merge_allowed_findings(base.allowed_findings, ours.allowed_findings, theirs.allowed_findings),
    )


def merge_name(log: ConflictLog, subject: str, base: str | None, ours: str, theirs: str) -> str:
    """Return the merged name of a type or property. `base` is None if both sides added it."""
    states: tuple[str | None, str | None, str | None] = (base, ours, theirs)
    return merge_slot(log, "renamed_differently", subject, states, lambda name: name) or ours


def _merge_added_property(log: ConflictLog, subject: str, ours: PropertySlots, theirs: PropertySlots) -> PropertySlots:
    """Merge a property that both sides added with the same type, default and embedding."""
    return replace(
        ours,
        name=merge_name(log, subject, None, ours.name, theirs.name),
        annotations=merge_annotations(log, subject, {}, ours.annotations, theirs.annotations),
        allowed_findings=merge_allowed_findings((), ours.allowed_findings, theirs.allowed_findings),
    )


def have_same_definition(first: PropertySlots, second: PropertySlots) -> bool:
    """Return whether two properties have the same type, default and embedding."""
    return (first.type, first.default, first.embed) == (second.type, second.default, second.embed)


def describe_property(slots: PropertySlots) -> str:
    """Return a property's definition without its name and annotations, such as `I32? @default(3)`."""
    words = [slots.type.display()]
    if slots.default is not None:
        words.append(print_default(slots))
    if slots.embed is not None:
        words.append(print_embed(slots.embed, slots.embed.source_name))
    return " ".join(words)


def _describe_embed(embed: EmbedSlot | None) -> str | None:
    return None if embed is None else print_embed(embed, embed.source_name)


def _merge_default(
    log: ConflictLog, subject: str, base: PropertySlots, ours: PropertySlots, theirs: PropertySlots
) -> PropertySlots:
    """Return the property state whose default wins. Defaults with the same text are equal, whatever their types."""
    if theirs.default in (ours.default, base.default):
        return ours
    if ours.default == base.default:
        return theirs
    described = (None if state.default is None else print_default(state) for state in (base, ours, theirs))
    conflict = SchemaConflict("changed_differently", subject, *described)
    return choose_state(log.choose(conflict), (base, ours, theirs))


def _merge_type(
    log: ConflictLog, subject: str, base: PropertyType, ours: PropertyType, theirs: PropertyType
) -> PropertyType:
    nullable = ours.nullable if theirs.nullable == base.nullable else theirs.nullable
    cores = (base.as_nullable(False), ours.as_nullable(False), theirs.as_nullable(False))
    if all(core.is_enum for core in cores):
        values = merge_sets(*(frozenset(core.enum_values or ()) for core in cores))
        if values:
            return replace(ours, nullable=nullable, enum_values=tuple(values))
    return merge_slot(log, "changed_differently", subject, cores, PropertyType.display).as_nullable(nullable)


def merge_annotations(
    log: ConflictLog, subject: str, base: Annotations, ours: Annotations, theirs: Annotations
) -> Annotations:
    """Merge the annotations. All annotations with the same name form one slot."""
    merged: dict[str, tuple[StoredAnnotation, ...]] = {}
    for name in sorted({*base, *ours, *theirs}):
        states = (base.get(name, ()), ours.get(name, ()), theirs.get(name, ()))
        both_have_it = bool(states[1] and states[2])
        kind = "changed_differently" if states[0] and both_have_it else "added_differently"
        if states[0] and not both_have_it:
            kind = "dropped_and_changed"
        annotations = merge_slot(log, kind, subject, states, _describe_annotations)  # type: ignore[arg-type]
        if annotations:
            merged[name] = annotations
    return merged


def _describe_annotations(annotations: tuple[StoredAnnotation, ...]) -> str | None:
    return " ".join(map(print_annotation, annotations)) or None


def merge_allowed_findings(
    base: tuple[AllowedFinding, ...], ours: tuple[AllowedFinding, ...], theirs: tuple[AllowedFinding, ...]
) -> tuple[AllowedFinding, ...]:
    """Merge the findings that `@allow` suppresses. These findings never conflict, because they do not affect data."""
    merged = merge_sets(frozenset(base), frozenset(ours), frozenset(theirs))
    by_code = {allowed.code: allowed for allowed in sorted(merged, key=lambda allowed: (allowed.code, allowed.reason))}
    return tuple(by_code.values())
