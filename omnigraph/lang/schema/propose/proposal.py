"""Proposed types, and their text in the schema file's canonical layout.

Comments in the text explain why something was proposed. This module checks nothing, because the text is compiled
afterward.
"""

import re
from collections.abc import Iterable, Iterator

from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

_INDENT = "    "
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_]+")


@record
class ProposedProperty:
    """A property. Its annotations, such as `@key`, are stored as text."""

    name: str
    type: PropertyType
    annotations: tuple[str, ...] = ()
    comment: str = ""


@record
class ProposedType:
    """A node type, or an edge type if `source` and `target` are set. `members` are constraints as text."""

    name: str
    properties: tuple[ProposedProperty, ...] = ()
    source: str | None = None
    target: str | None = None
    annotations: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()


def print_types(types: Iterable[ProposedType]) -> str:
    """Return the text of a schema file.

    >>> from omnigraph.values import ScalarType
    >>> name = ProposedProperty("name", PropertyType(ScalarType.STRING), ("@key",), "unique in 3 rows")
    >>> print(print_types([ProposedType("Person", (name,))]), end="")
    node Person {
        name: String @key // unique in 3 rows
    }
    """
    return "\n".join("".join(f"{line}\n" for line in _type_lines(proposed)) for proposed in types)


def _type_lines(proposed: ProposedType) -> Iterator[str]:
    yield from (f"// {_one_line(comment)}" for comment in proposed.comments)
    header = " ".join((_header(proposed), *proposed.annotations))
    if not proposed.properties and not proposed.members:
        yield header if proposed.source is not None else f"{header} {{}}"
        return
    yield f"{header} {{"
    for declared in proposed.properties:
        comment = f" // {_one_line(declared.comment)}" if declared.comment else ""
        words = (f"{declared.name}:", declared.type.display(), *declared.annotations)
        yield f"{_INDENT}{' '.join(words)}{comment}"
    yield from (f"{_INDENT}{member}" for member in proposed.members)
    yield "}"


def _header(proposed: ProposedType) -> str:
    if proposed.source is None:
        return f"node {proposed.name}"
    return f"edge {proposed.name}: {proposed.source} -> {proposed.target}"


def _one_line(comment: str) -> str:
    return " ".join(comment.split())


def property_name(column_name: str) -> str:
    """Turn a column name into a valid property name.

    >>> property_name("First Name"), property_name("ISBN-13"), property_name("2nd"), property_name("homeTown")
    ('first_name', 'isbn_13', '_2nd', 'homeTown')
    """
    name = _INVALID_CHARACTERS.sub("_", column_name.strip()).strip("_") or "column"
    if name[0].isupper():
        name = name.lower()
    return f"_{name}" if name[0].isdigit() else name


def type_name(file_stem: str) -> str:
    """Turn a file name without its extension into a valid type name.

    >>> type_name("order-items"), type_name("Person")
    ('OrderItems', 'Person')
    """
    words = [word for word in _INVALID_CHARACTERS.sub("_", file_stem).split("_") if word]
    name = "".join(word[0].upper() + word[1:] for word in words) or "Type"
    return f"T{name}" if name[0].isdigit() else name
