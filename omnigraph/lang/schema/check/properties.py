"""Checks property names: reserved names and duplicates."""

from omnigraph.lang.schema import catalog, model, names

from .findings import Findings, Stage


def own_properties(
    declaration: model.Declaration, kind: catalog.TypeKind, findings: Findings
) -> list[model.Property]:
    """Return the properties that a declaration writes itself; the first of each name counts."""
    first: dict[str, model.Property] = {}
    for one in written_properties(declaration):
        name = one.name.text
        _check_name(one.name, kind, findings)
        earlier = first.setdefault(name, one)
        if earlier is not one:
            owner = f"{kind} `{declaration.name.text}`"
            message = f"duplicate property `{name}` in {owner}"
            hint = f"it is already declared on line {findings.line(earlier.name.span)}"
            findings.add(Stage.PROPERTY, one.name.span, message, hint)
    return list(first.values())


def written_properties(declaration: model.Declaration) -> list[model.Property]:
    """Return the properties of a declaration as written, including invalid names."""
    if isinstance(declaration, model.InterfaceDeclaration):
        return list(declaration.properties)
    return [m for m in declaration.members if isinstance(m, model.Property)]


def _check_name(name: model.Name, kind: catalog.TypeKind, findings: Findings) -> None:
    text, reason = name.text, None
    if text in names.ROW_NAMES:
        reason = "the storage layer uses this name"
    elif text == "id":
        reason = "every entity has its own `id`"
    elif kind == "edge" and text in names.EDGE_NAMES:
        reason = "it names an endpoint of the edge"
    if reason is not None:
        message = f"`{text}` is reserved and cannot name a property: {reason}"
        findings.add(Stage.PROPERTY, name.span, message, "choose another name")
