"""Print slots as schema text: a header, and one line per member.

The text depends only on the slots and the names passed in, so declarations with the same meaning have the same text.
Other modules decide the order, comments and layout.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from omnigraph.lang.schema.catalog import AllowedFinding, StoredAnnotation
from omnigraph.records.frozen import record

from .slots import (
    BODY,
    INLINE,
    Annotations,
    ColumnReference,
    ConstraintDetail,
    ConstraintGroup,
    EmbedSlot,
    PropertySlots,
    SchemaSlots,
    TypeSlots,
)

MemberKey = tuple[object, ...]
ColumnNames = Callable[[ColumnReference], str]
_BARE_WORD = re.compile(r"[a-z_][a-z0-9_]*\Z")
_WORDS_WITH_MEANING = frozenset({"true", "false", "null"})
_ESCAPES = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


@record
class PrintedDeclaration:
    """A declaration as text: its header, and its members keyed by the property or constraint that they declare."""

    header: str
    members: Mapping[MemberKey, str]

    def text(self) -> str:
        """Return the whole declaration as text, with one member per line."""
        return "\n".join((f"{self.header} {{", *self.members.values(), "}"))


def print_declaration(type_slots: TypeSlots, schema: SchemaSlots, column_names: ColumnNames) -> PrintedDeclaration:
    """Return a type as text. `schema` and `column_names` supply the names for references."""
    members: dict[MemberKey, str] = {}
    for property_id, property_slots in sorted(type_slots.properties.items(), key=lambda item: item[1].name):
        inline_names = [
            group[0]
            for group, content in sorted(type_slots.constraints.items(), key=lambda item: item[0][0])
            for detail, forms in content.items()
            if INLINE in forms and _inline_column(group, detail) == property_id
        ]
        members["property", property_id] = print_property(property_slots, inline_names, column_names)
    constraints = {
        ("constraint", group, detail): print_constraint(group, detail, column_names)
        for group, content in type_slots.constraints.items()
        for detail, forms in content.items()
        if BODY in forms
    }
    members |= dict(sorted(constraints.items(), key=lambda item: item[1]))
    return PrintedDeclaration(_print_header(type_slots, schema), members)


def _inline_column(group: ConstraintGroup, detail: ConstraintDetail) -> object:
    return detail[0] if group[0] == "key" else group[1][0]


def _print_header(type_slots: TypeSlots, schema: SchemaSlots) -> str:
    def name_of(type_id: int | None) -> str:
        return schema[type_id].name if type_id in schema else f"Missing{type_id}"

    annotations = [*print_annotations(type_slots.annotations), *_print_allowed(type_slots.allowed_findings)]
    if type_slots.kind != "edge":
        words = [type_slots.kind, type_slots.name, *annotations]
        if type_slots.implements:
            words += ["implements", ", ".join(sorted(map(name_of, type_slots.implements)))]
        return " ".join(words)
    words = ["edge", f"{type_slots.name}:", name_of(type_slots.source_id), "->", name_of(type_slots.target_id)]
    if type_slots.cardinality != (0, None):
        words.append(print_cardinality(type_slots.cardinality))
    return " ".join([*words, *annotations])


def print_cardinality(cardinality: tuple[int, int | None]) -> str:
    """Return a cardinality such as `@card(0..1)`."""
    low, high = cardinality
    return f"@card({low}..{'' if high is None else high})"


def print_property(property_slots: PropertySlots, inline_names: Iterable[str], column_names: ColumnNames) -> str:
    """Return a property with its annotations and inline constraints."""
    words = [f"{property_slots.name}:", property_slots.type.display()]
    words += [f"@{constraint_name}" for constraint_name in inline_names]
    if property_slots.default is not None:
        words.append(print_default(property_slots))
    if property_slots.embed is not None:
        words.append(print_embed(property_slots.embed, column_names(property_slots.embed.source)))
    words += [*print_annotations(property_slots.annotations), *_print_allowed(property_slots.allowed_findings)]
    return " ".join(words)


def print_default(property_slots: PropertySlots) -> str:
    """Return a default such as `@default(3)`.

    Strings and dates are quoted, and so are enum values that cannot be written as bare words.
    """
    text = property_slots.default or ""
    property_type = property_slots.type
    is_bare = property_type.is_numeric or property_type.scalar.value == "Bool"
    if property_type.is_enum:
        is_bare = _is_bare_word(text)
    return f"@default({text if is_bare else quote(text)})"


def print_embed(embed: EmbedSlot, source_name: str) -> str:
    """Return an embedding such as `@embed("title", model="demo/e1")`."""
    model_text = "" if embed.model is None else f", model={quote(embed.model)}"
    return f"@embed({quote(source_name)}{model_text})"


def print_annotations(annotations: Annotations) -> list[str]:
    """Return each annotation as text, in name order."""
    return [print_annotation(annotation) for name in sorted(annotations) for annotation in annotations[name]]


def print_annotation(annotation: StoredAnnotation) -> str:
    """Return an annotation such as `@ui("red", size="3")`."""
    if annotation.value is None:
        return f"@{annotation.name}"
    options = "".join(f", {name}={quote(value)}" for name, value in annotation.options)
    return f"@{annotation.name}({quote(annotation.value)}{options})"


def _print_allowed(allowed_findings: Iterable[AllowedFinding]) -> list[str]:
    return [f"@allow({allowed.code}, {quote(allowed.reason)})" for allowed in allowed_findings]


def print_constraint(group: ConstraintGroup, detail: ConstraintDetail, column_names: ColumnNames) -> str:
    """Return a constraint as written in a body."""
    kind, references = group
    if kind == "key":
        references = tuple(column for column in detail if isinstance(column, int | str))
    arguments = sorted(map(column_names, references))
    if kind == "range":
        arguments.append("..".join(map(_print_bound, detail)))
    elif kind == "check":
        arguments.append(quote(str(detail[0])))
    elif kind == "index":
        arguments += _print_index_options(detail)
    return f"@{kind}({', '.join(arguments)})"


def _print_bound(bound: object) -> str:
    return repr(bound[1]) if isinstance(bound, tuple) else ""


def _print_index_options(detail: ConstraintDetail) -> list[str]:
    index_kind, other_options = detail
    options = [("kind", str(index_kind))] if index_kind else []
    options += [(str(name), str(value)) for name, value in other_options]  # type: ignore[attr-defined]
    return [f"{name}={value if _is_bare_word(value) else quote(value)}" for name, value in sorted(options)]


def _is_bare_word(text: str) -> bool:
    return _BARE_WORD.match(text) is not None and text not in _WORDS_WITH_MEANING


def quote(text: str) -> str:
    r"""Return `text` as a schema string literal.

    >>> print(quote('say "hi"'))
    "say \"hi\""
    """
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'
