"""Expand the interfaces that a node implements.

The order of the interfaces does not matter: if two interfaces declare the same property, the declarations must be
identical.
"""

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.lang.schema import catalog, model
from omnigraph.lang.schema.names import did_you_mean

from .draft import PropertyDraft, TypeDraft
from .findings import CheckStage, SchemaFindings

_InterfaceDrafts = Mapping[str, TypeDraft]


def expand_interfaces(
    node_draft: TypeDraft,
    implements: tuple[model.Name, ...],
    interface_drafts: _InterfaceDrafts,
    unreadable_names: frozenset[tuple[str, str]],
    findings: SchemaFindings,
) -> TypeDraft:
    """Return the node draft with the properties of its interfaces added."""
    property_drafts = dict(node_draft.properties)
    has_all_interfaces = True
    for interface_name in dict.fromkeys(implements):
        interface = interface_drafts.get(interface_name.text)
        if interface is not None:
            _add_interface_properties(node_draft, interface, property_drafts, findings)
            continue
        has_all_interfaces = False
        if ("interface", interface_name.text) not in unreadable_names:
            message = f"{node_draft.label} implements the unknown interface `{interface_name.text}`"
            hint = did_you_mean(interface_name.text, interface_drafts, _describe_known_interfaces(interface_drafts))
            findings.add(CheckStage.INTERFACE, interface_name.span, message, hint)
    return replace(node_draft, properties=property_drafts, has_all_interfaces=has_all_interfaces)


def _describe_known_interfaces(interface_drafts: _InterfaceDrafts) -> str:
    if not interface_drafts:
        return "this schema does not declare any interfaces"
    return f"known interfaces: {', '.join(sorted(interface_drafts))}"


def _add_interface_properties(
    node_draft: TypeDraft, interface: TypeDraft, property_drafts: dict[str, PropertyDraft], findings: SchemaFindings
) -> None:
    for property_name, interface_property in interface.properties.items():
        satisfied_pair = (interface.name.text, property_name)
        existing_property = property_drafts.get(property_name)
        if existing_property is None:
            inherited_definition = replace(
                interface_property.definition, declared_directly=False, satisfies=(satisfied_pair,)
            )
            property_drafts[property_name] = replace(interface_property, definition=inherited_definition)
            continue
        if existing_property.has_valid_type and interface_property.has_valid_type:
            _compare_properties(node_draft, interface, existing_property, interface_property, findings)
        satisfied_pairs = tuple(sorted({*existing_property.definition.satisfies, satisfied_pair}))
        property_drafts[property_name] = replace(
            existing_property, definition=replace(existing_property.definition, satisfies=satisfied_pairs)
        )


def _compare_properties(
    node_draft: TypeDraft,
    interface: TypeDraft,
    existing_property: PropertyDraft,
    interface_property: PropertyDraft,
    findings: SchemaFindings,
) -> None:
    property_name = existing_property.definition.name
    existing_type = existing_property.definition.type.display()
    interface_type = interface_property.definition.type.display()
    if existing_property.definition.type != interface_property.definition.type:
        origin_suffix = _origin_suffix(existing_property)
        message = (
            f"{node_draft.label}: property `{property_name}` is {existing_type}{origin_suffix}, "
            f"but interface `{interface.name.text}` declares it as {interface_type}"
        )
        span = (
            existing_property.declaration.type_span
            if existing_property.definition.declared_directly
            else node_draft.name.span
        )
        findings.add(CheckStage.INTERFACE, span, message)
    elif not existing_property.definition.declared_directly and _comparable_definition(
        existing_property
    ) != _comparable_definition(interface_property):
        message = (
            f"{node_draft.label}: property `{property_name}` differs between the interfaces "
            f"`{existing_property.definition.satisfies[0][0]}` and `{interface.name.text}`"
        )
        hint = f"use the same annotations in both interfaces, or declare `{property_name}` in the node"
        findings.add(CheckStage.SHAPE, node_draft.name.span, message, hint)


def _origin_suffix(existing_property: PropertyDraft) -> str:
    if existing_property.definition.declared_directly:
        return ""
    return f" in interface `{existing_property.definition.satisfies[0][0]}`"


def _comparable_definition(property_draft: PropertyDraft) -> catalog.PropertyDefinition:
    """Return the definition in a comparable form: without its origin, and with sorted annotations."""
    sorted_annotations = tuple(sorted(property_draft.definition.annotations, key=repr))
    return replace(property_draft.definition, annotations=sorted_annotations, declared_directly=True, satisfies=())
