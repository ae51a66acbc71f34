"""The names of properties: which are taken by the system, which are given twice."""

from omnigraph.lang.schema import catalog, model, names

from .findings import Findings, Stage


def own_properties(
    declaration: model.Declaration, kind: catalog.TypeKind, findings: Findings
) -> list[model.Property]:
    """The properties a declaration writes itself, each name once; the first one counts."""
    first: dict[str, model.Property] = {}
    for one in written_properties(declaration):
        name = one.name.text
        _check_name(one.name, kind, findings)
        earlier = first.setdefault(name, one)
        if earlier is not one:
            owner = f"{kind} `{declaration.name.text}`"
            message = f"duplicate property `{name}` in {owner}"
            hint = f"it is declared on line {findings.line(earlier.name.span)} already"
            findings.add(Stage.PROPERTY, one.name.span, message, hint)
    return list(first.values())


def written_properties(declaration: model.Declaration) -> list[model.Property]:
    """The properties of a declaration as written, also those whose names are wrong."""
    if isinstance(declaration, model.InterfaceDeclaration):
        return list(declaration.properties)
    return [m for m in declaration.members if isinstance(m, model.Property)]


def _check_name(name: model.Name, kind: catalog.TypeKind, findings: Findings) -> None:
    text, reason = name.text, None
    if text in names.ROW_NAMES:
        reason = "that name belongs to the storage"
    elif text == "id":
        reason = "every entity has an `id` of its own"
    elif kind == "edge" and text in names.EDGE_NAMES:
        reason = "that name means an endpoint of the edge"
    if reason is not None:
        message = f"`{text}` is reserved and cannot name a property: {reason}"
        findings.add(Stage.PROPERTY, name.span, message, "choose another name")
