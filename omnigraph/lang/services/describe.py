"""Short descriptions of declared types, properties and edges, as they would be written in a schema."""

from omnigraph.lang.schema.catalog import Check, EdgeType, InterfaceType, NodeType, PropertyDefinition, Range

from .variables import EntityType


def describe_property(declared: EntityType | None, definition: PropertyDefinition) -> str:
    """Return a property's type with its constraints, such as `String @key`."""
    return " ".join([definition.type.display(), *_constraint_words(declared, definition)])


def _constraint_words(declared: EntityType | None, definition: PropertyDefinition) -> list[str]:
    words = {f"@{name}" for name in definition.inline_constraints}
    constraints = () if declared is None or isinstance(declared, InterfaceType) else declared.constraints
    for constraint in constraints:
        if isinstance(constraint, Range) and constraint.column == definition.name:
            low = "" if constraint.low is None else constraint.low
            words.add(f"@range({low}..{'' if constraint.high is None else constraint.high})")
        elif isinstance(constraint, Check) and constraint.column == definition.name:
            words.add(f'@check("{constraint.pattern}")')
        elif not isinstance(constraint, Range | Check) and constraint.columns == (definition.name,):
            words.add(f"@{type(constraint).__name__.lower()}")
    return sorted(words)


def describe_type(declared: EntityType) -> str:
    """Return a type as Markdown: its declaration, its description and its properties."""
    lines = [f"**{describe_header(declared)}**"]
    if (description := _description(declared)) is not None:
        lines += ["", description]
    if declared.properties:
        lines.append("")
        lines += [
            f"- `{definition.name}: {describe_property(declared, definition)}`" for definition in declared.properties
        ]
    return "\n".join(lines)


def describe_header(declared: EntityType) -> str:
    """Return the first line of a declaration, such as `edge Knows: Person -> Person`."""
    if isinstance(declared, EdgeType):
        return f"edge {declared.name}: {declared.source} -> {declared.target}"
    if isinstance(declared, NodeType) and declared.implements:
        return f"node {declared.name} implements {', '.join(declared.implements)}"
    return f"{declared.kind} {declared.name}"


def explain_property(declared: EntityType, definition: PropertyDefinition) -> str:
    """Return a property as Markdown: its declaration, its type and its description."""
    text = f"`{definition.name}: {describe_property(declared, definition)}`: property of {declared.name}"
    description = _description(definition)
    return text if description is None else f"{text}\n\n{description}"


def _description(declared: EntityType | PropertyDefinition) -> str | None:
    annotations = () if isinstance(declared, InterfaceType) else declared.annotations
    return next((annotation.value for annotation in annotations if annotation.name == "description"), None)
