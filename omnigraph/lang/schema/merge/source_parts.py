"""The parts of a schema file as written: declarations and members, each with its comments.

A comment belongs to the item that follows it, or to the item before it on the same line. A comment that a blank line
separates from the next declaration stands alone. This module only cuts text; it never changes it.
"""

import re
from collections.abc import Sequence

from omnigraph.errors.diagnostics import Span
from omnigraph.lang import coarse_scan
from omnigraph.lang.schema import model
from omnigraph.lang.schema.parse import parse
from omnigraph.records.frozen import record

from .read_slots import TypeReference, declaration_reference

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


@record
class SourceItem:
    """A declaration or member as written, with the comments above it and behind it."""

    text: str
    comments_above: tuple[str, ...] = ()
    comment_behind: str = ""

    def full_text(self, text: str | None = None) -> str:
        """Return the item with its comments; `text` replaces the item itself."""
        item_text = self.text if text is None else text
        return "\n".join((*self.comments_above, f"{item_text}  {self.comment_behind}".rstrip()))


@record
class SourceDeclaration:
    """A declaration: the whole text, its members in order, and comments before its closing brace."""

    item: SourceItem
    members: tuple[tuple[model.DeclarationMember, SourceItem], ...]
    closing_comments: tuple[str, ...]
    free_comments: tuple[str, ...]


@record
class SourceParts:
    """A schema file: its declarations in order, and comments after the last one."""

    declarations: dict[TypeReference, SourceDeclaration]
    closing_comments: tuple[str, ...]


def read_source_parts(source_text: str, tree: model.SchemaFile) -> SourceParts:
    """Cut a valid schema file into its parts."""
    declarations = sorted(tree.declarations, key=lambda declaration: declaration.span.start)
    comments = _CommentReader(source_text)
    items, closing_comments = comments.attach([declaration.span for declaration in declarations], 0, len(source_text))
    parts = {}
    for declaration, (item, above_spans) in zip(declarations, items, strict=True):
        attached, free = comments.split_free(above_spans, declaration.span.start)
        parts[declaration_reference(declaration)] = _read_declaration(
            comments, declaration, SourceItem(item.text, attached, item.comment_behind), free
        )
    return SourceParts(parts, closing_comments)


def _read_declaration(
    comments: "_CommentReader", declaration: model.Declaration, item: SourceItem, free_comments: tuple[str, ...]
) -> SourceDeclaration:
    members = declared_members(declaration)
    if declaration.body is None:
        return SourceDeclaration(item, (), (), free_comments)
    member_items, closing_comments = comments.attach(
        [member.span for member in members], declaration.body.start, declaration.body.end
    )
    member_parts = tuple((member, part) for member, (part, _) in zip(members, member_items, strict=True))
    return SourceDeclaration(item, member_parts, closing_comments, free_comments)


def declared_members(declaration: model.Declaration) -> tuple[model.DeclarationMember, ...]:
    """Return the members of a declaration in source order."""
    if isinstance(declaration, model.InterfaceDeclaration):
        return declaration.properties
    return declaration.members


def remove_rename_hints(source_text: str) -> str:
    """Return a valid schema without `@rename_from`: after a merge, the renames have already happened."""
    from omnigraph.errors.diagnostics import SourceText

    parsed_schema = parse(SourceText("merged.pg", source_text))
    hint_spans = [
        annotation.span
        for declaration in parsed_schema.declarations
        for owner in (declaration, *declared_members(declaration))
        if not isinstance(owner, model.Constraint)
        for annotation in owner.annotations
        if annotation.name.text == "rename_from"
    ]
    for span in sorted(hint_spans, key=lambda span: span.start, reverse=True):
        source_text = source_text[: span.start].rstrip(" \t") + " " + source_text[span.end :].lstrip(" \t")
    return source_text


class _CommentReader:
    def __init__(self, source_text: str) -> None:
        self._text = source_text
        self._comments = coarse_scan.find_comments(source_text)

    def attach(
        self, spans: Sequence[Span], start: int, end: int
    ) -> tuple[list[tuple[SourceItem, list[Span]]], tuple[str, ...]]:
        """Return each item with the spans of the comments above it, and the comments after the last item."""
        loose = [
            comment
            for comment in self._comments
            if start <= comment.start < end and not any(span.start <= comment.start < span.end for span in spans)
        ]
        items = []
        for index, span in enumerate(spans):
            above = [comment for comment in loose if comment.start < span.start]
            loose = [comment for comment in loose if comment.start >= span.end]
            behind = loose.pop(0) if loose and self._is_behind(span, loose[0]) else None
            if behind is not None and index + 1 < len(spans) and behind.start > spans[index + 1].start:
                loose.insert(0, behind)
                behind = None
            item = SourceItem(
                self._text[span.start : span.end], tuple(map(self._comment, above)), self._comment(behind)
            )
            items.append((item, above))
        return items, tuple(map(self._comment, loose))

    def split_free(self, spans: list[Span], item_start: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split the comments above an item into attached ones and those that stand alone."""
        boundary = item_start
        for position in reversed(range(len(spans))):
            if _BLANK_LINE.search(self._text, spans[position].end, boundary):
                cut = position + 1
                return tuple(map(self._comment, spans[cut:])), tuple(map(self._comment, spans[:cut]))
            boundary = spans[position].start
        return tuple(map(self._comment, spans)), ()

    def _comment(self, span: Span | None) -> str:
        return "" if span is None else self._text[span.start : span.end].rstrip()

    def _is_behind(self, item: Span, comment: Span) -> bool:
        text_between = self._text[item.end : comment.start]
        return "\n" not in text_between and not text_between.strip(" \t\r")
