"""Check for reserved and duplicate property names."""

from omnigraph.lang.schema import catalog, model, names

from .findings import CheckStage, SchemaFindings


def find_own_properties(
    declaration: model.Declaration, type_kind: catalog.TypeKind, findings: SchemaFindings
) -> list[model.Property]:
    """Return the properties in a declaration. If a name is repeated, report it and keep only the first property."""
    first_by_name: dict[str, model.Property] = {}
    for declared_property in declared_properties(declaration):
        property_name = declared_property.name.text
        _check_reserved_name(declared_property.name, type_kind, findings)
        first_declaration = first_by_name.setdefault(property_name, declared_property)
        if first_declaration is not declared_property:
            owner = f"{type_kind} `{declaration.name.text}`"
            message = f"duplicate property `{property_name}` in {owner}"
            first_line = findings.line_number(first_declaration.name.span)
            hint = f"first declared on line {first_line}"
            findings.add(CheckStage.PROPERTY, declared_property.name.span, message, hint)
    return list(first_by_name.values())


def declared_properties(declaration: model.Declaration) -> list[model.Property]:
    """Return all properties in a declaration, including those with invalid names."""
    if isinstance(declaration, model.InterfaceDeclaration):
        return list(declaration.properties)
    return [member for member in declaration.members if isinstance(member, model.Property)]


def _check_reserved_name(name: model.Name, type_kind: catalog.TypeKind, findings: SchemaFindings) -> None:
    name_text, reason = name.text, None
    if name_text in names.RESERVED_ROW_COLUMNS:
        reason = "the storage layer uses it"
    elif name_text == "id":
        reason = "every entity already has an `id`"
    elif type_kind == "edge" and name_text in names.RESERVED_EDGE_NAMES:
        reason = "it is the name of an edge endpoint"
    if reason is not None:
        message = f"`{name_text}` is reserved and cannot be used as a property name: {reason}"
        findings.add(CheckStage.PROPERTY, name.span, message, "choose a different name")
