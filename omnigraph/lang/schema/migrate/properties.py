"""Compare a type's properties before and after a migration.

The steps for one property have a fixed order: rename, type (widen, relax, extend, narrow, tighten), embedding, default,
inline constraints, origin, annotations. Dropped properties come last.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from omnigraph.lang.schema.catalog import EmbeddingDefinition, PropertyDefinition
from omnigraph.values import PropertyType, ScalarType

from .annotation_changes import reader_texts_differ, refuse_annotation_changes
from .constraints import dropped_column_steps, inline_constraint_steps, key_columns, restate_steps
from .interfaces import origin_steps
from .steps import (
    AddProperty,
    ChangeDefault,
    ConvertProperty,
    DropProperty,
    ExtendEnum,
    MigrationStep,
    NarrowEnum,
    RelaxProperty,
    RenameProperty,
    TightenProperty,
    UpdatePropertyMetadata,
    WidenProperty,
    make_unsupported_change,
    rating_members,
)
from .stored_types import can_convert_values, can_hold_values
from .type_pair import TypePair


def property_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    """Yield the steps for all properties: remaining and new properties by name, then dropped properties."""
    inline_steps = inline_constraint_steps(type_pair)
    for definition in type_pair.new_type.properties:
        old_definition = type_pair.surviving_properties.get(definition.name)
        if old_definition is None:
            yield from _add_property_steps(type_pair, definition)
            yield from inline_steps.get(definition.name, ())
        else:
            yield from _change_property_steps(type_pair, old_definition, definition)
            yield from inline_steps.get(definition.name, ())
            yield from _origin_and_annotation_steps(type_pair, old_definition, definition)
    steps_by_column = dropped_column_steps(type_pair)
    for definition in type_pair.dropped_properties:
        yield from steps_by_column.get(definition.name, ())
        yield _drop_property_step(type_pair, definition)


def _add_property_steps(type_pair: TypePair, definition: PropertyDefinition) -> Iterator[MigrationStep]:
    default_text = None if definition.default is None else definition.default.text
    if type_pair.has_rows and not definition.type.nullable and default_text is None:
        reason = f"a required {definition.type.display()} property has no value in existing entities"
        advice = f"make the property nullable or give it a @default{_suggest_rename(type_pair, definition)}"
        yield make_unsupported_change("OG-MF-103", type_pair.entity_label(definition.name), f"{reason}; {advice}")
        return
    # A new nullable property is null in existing entities, and its default applies only to new entities.
    fill_value = default_text if type_pair.has_rows and not definition.type.nullable else None
    yield AddProperty(
        **type_pair.step_members, property_name=definition.name, property_type=definition.type, default=fill_value
    )


def _suggest_rename(type_pair: TypePair, definition: PropertyDefinition) -> str:
    """Suggest `@rename_from` if exactly one dropped property has the same type as the added property."""
    candidates = [dropped.name for dropped in type_pair.dropped_properties if dropped.type == definition.type]
    if len(candidates) != 1:
        return ""
    return f'; if it was renamed from {candidates[0]}, add @rename_from("{candidates[0]}")'


def _drop_property_step(type_pair: TypePair, definition: PropertyDefinition) -> MigrationStep:
    code = "OG-DS-105" if definition.type.is_vector else "OG-DS-104"
    rating = rating_members(code if type_pair.has_rows else None)
    if type_pair.has_rows and type_pair.drop_mode == "hard":
        rating["severity"] = "error"
    return DropProperty(**type_pair.step_members, property_name=definition.name, mode=type_pair.drop_mode, **rating)


def _change_property_steps(
    type_pair: TypePair, old_definition: PropertyDefinition, new_definition: PropertyDefinition
) -> Iterator[MigrationStep]:
    if old_definition.name != new_definition.name:
        yield RenameProperty(**type_pair.step_members, old=old_definition.name, new=new_definition.name)
    yield from _type_change_steps(type_pair, old_definition.type, new_definition)
    yield from _embedding_steps(type_pair, old_definition, new_definition)
    old_default, new_default = (
        definition.default.text if definition.default else None for definition in (old_definition, new_definition)
    )
    if old_default != new_default:
        yield ChangeDefault(
            **type_pair.step_members, property_name=new_definition.name, old=old_default, new=new_default
        )
    yield from restate_steps(type_pair, new_definition.name)


def _origin_and_annotation_steps(
    type_pair: TypePair, old_definition: PropertyDefinition, new_definition: PropertyDefinition
) -> Iterator[MigrationStep]:
    yield from origin_steps(type_pair, old_definition, new_definition)
    yield from refuse_annotation_changes(
        type_pair.entity_label(new_definition.name), old_definition.annotations, new_definition.annotations
    )
    if reader_texts_differ(old_definition.annotations, new_definition.annotations):
        yield UpdatePropertyMetadata(
            **type_pair.step_members, property_name=new_definition.name, annotations=new_definition.annotations
        )


def _type_change_steps(
    type_pair: TypePair, old_type: PropertyType, new_definition: PropertyDefinition
) -> Iterator[MigrationStep]:
    new_type, property_name = new_definition.type, new_definition.name
    step_members = type_pair.step_members | {"property_name": property_name}
    is_converted = not _can_become(type_pair, old_type, new_definition)
    if is_converted and not (type_pair.is_accepted and can_convert_values(new_type, old_type)):
        refusal_suffix = _refusal_suffix(type_pair, old_type, new_definition)
        reason = f"{old_type.display()} cannot become {new_type.display()}{refusal_suffix}"
        yield make_unsupported_change("OG-MF-106", type_pair.entity_label(property_name), reason)
        return
    if old_type.scalar is not new_type.scalar:
        # Relaxing and tightening are separate steps; widening keeps the nullability.
        retype_step = ConvertProperty if is_converted else WidenProperty
        yield retype_step(**step_members, old=old_type, new=new_type.as_nullable(old_type.nullable))
    if new_type.nullable and not old_type.nullable:
        yield RelaxProperty(**step_members)
    old_values, new_values = old_type.enum_values or (), new_type.enum_values or ()
    if added_values := tuple(sorted(set(new_values) - set(old_values))):
        yield ExtendEnum(**step_members, added_values=added_values)
    if removed_values := tuple(sorted(set(old_values) - set(new_values))):
        yield NarrowEnum(**step_members, removed_values=removed_values, **_rate_if_stored(type_pair, "OG-MF-110"))
    if old_type.nullable and not new_type.nullable:
        yield TightenProperty(**step_members, **_rate_if_stored(type_pair, "OG-MF-104"))


def _rate_if_stored(type_pair: TypePair, code: str) -> dict[str, Any]:
    return rating_members(code if type_pair.has_rows else None)


def _can_become(type_pair: TypePair, old_type: PropertyType, new_definition: PropertyDefinition) -> bool:
    """Return whether the type stays the same, or can be widened without changing any ids."""
    new_type = new_definition.type
    if not can_hold_values(new_type, old_type):
        return False
    return old_type.scalar is new_type.scalar or not _changes_key_spelling(type_pair, old_type, new_definition)


def _changes_key_spelling(type_pair: TypePair, old_type: PropertyType, new_definition: PropertyDefinition) -> bool:
    """Return whether widening would change ids. Equal F32 and F64 keys are formatted differently in ids."""
    return old_type.scalar is ScalarType.F32 and new_definition.name in key_columns(type_pair)


def _refusal_suffix(type_pair: TypePair, old_type: PropertyType, new_definition: PropertyDefinition) -> str:
    if old_type.scalar is not new_definition.type.scalar and _changes_key_spelling(type_pair, old_type, new_definition):
        return " in a key, because existing ids would change"
    return ""


def _embedding_steps(
    type_pair: TypePair, old_definition: PropertyDefinition, new_definition: PropertyDefinition
) -> Iterator[MigrationStep]:
    old_embedding = _translate_embedding(type_pair, old_definition.embed, new_definition.embed)
    if old_embedding == new_definition.embed:
        return
    if old_embedding is None or new_definition.embed is None:
        code, change = "OG-VE-103", f"@embed is {'added' if old_embedding is None else 'removed'}"
    elif old_embedding.source != new_definition.embed.source:
        code = "OG-VE-101"
        change = f"@embed source '{old_embedding.source}' becomes '{new_definition.embed.source}'"
    else:
        code = "OG-VE-102"
        change = f"@embed model {old_embedding.model!r} becomes {new_definition.embed.model!r}"
    reason = f"{change}: existing vectors would have a different meaning"
    yield make_unsupported_change(code, type_pair.entity_label(new_definition.name), reason)


def _translate_embedding(
    type_pair: TypePair, old_embedding: EmbeddingDefinition | None, new_embedding: EmbeddingDefinition | None
) -> EmbeddingDefinition | None:
    if old_embedding is None:
        return None
    property_names = {
        definition.name for definition in (*type_pair.old_type.properties, *type_pair.new_type.properties)
    }
    if (
        new_embedding is not None
        and not type_pair.has_rows
        and property_names.isdisjoint((old_embedding.source, new_embedding.source))
    ):
        # The source property of an interface's vector belongs to the nodes, which are compared separately.
        return replace(old_embedding, source=new_embedding.source)
    return replace(old_embedding, source=type_pair.new_names.get(old_embedding.source, old_embedding.source))
