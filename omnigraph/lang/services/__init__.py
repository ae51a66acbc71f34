"""Language services for editors: completion and hover text for `.gq` and `.pg`.

Both services accept text that does not parse, which is normal while a user is typing, and never raise an exception for
such text. They read no files and no graph: the caller passes the schema. Read `cursor` first, then
`query_completion` and `schema_completion`.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from omnigraph.lang.schema.catalog import Catalog

    from .items import CompletionItem, HoverText

LanguageName = Literal["query", "schema"]

__all__ = ["LanguageName", "complete", "hover", "offset_at"]


def complete(
    text: str, offset: int, language: LanguageName = "query", catalog: "Catalog | None" = None
) -> "tuple[CompletionItem, ...]":
    """Return the items that can be inserted at an offset, with the most useful items first.

    `catalog` is the schema that queries refer to. A schema needs no catalog, because it declares its own types.

    >>> from omnigraph.lang.schema import compile_schema
    >>> people = compile_schema("node Person { name: String @key  age: I32? }")
    >>> text = "query q() { match { $p: Person } return { $p."
    >>> [(item.label, item.detail) for item in complete(text, len(text), catalog=people)]
    [('age', 'I32?'), ('id', 'String'), ('name', 'String @key')]
    """
    if language == "schema":
        from .schema_completion import complete_schema

        return complete_schema(text, offset)
    from .query_completion import complete_query

    return complete_query(text, offset, catalog)


def hover(
    text: str, offset: int, language: LanguageName = "query", catalog: "Catalog | None" = None
) -> "HoverText | None":
    """Return an explanation of the word at an offset, or None if there is nothing to explain.

    >>> hover("query q() { match { $p: Person } }", 13).contents
    '`match`: the patterns and conditions that select rows'
    """
    if language == "schema":
        from .schema_hover import hover_schema

        return hover_schema(text, offset)
    from .query_hover import hover_query

    return hover_query(text, offset, catalog)


def offset_at(text: str, line: int, column: int) -> int:
    r"""Return the offset of a line and column, which both start at 1. Positions outside the text are clamped.

    >>> offset_at("node A {\n}", 2, 1), offset_at("node A {\n}", 1, 99), offset_at("", 7, 7)
    (9, 8, 0)
    """
    lines = text.split("\n")
    line_index = min(max(line, 1), len(lines)) - 1
    line_start = sum(len(earlier_line) + 1 for earlier_line in lines[:line_index])
    return line_start + min(max(column, 1) - 1, len(lines[line_index]))
