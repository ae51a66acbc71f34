"""Split a schema file into declarations and members, each with its comments.

A comment belongs to the item that follows it, or to the item before it on the same line. A comment followed by a blank
line does not belong to the next declaration. Splitting never changes the text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from omnigraph.errors.diagnostics import SourceText, Span
from omnigraph.lang import coarse_scan
from omnigraph.lang.schema import model
from omnigraph.lang.schema.parse import parse
from omnigraph.records.frozen import record

from .read_slots import TypeReference, declaration_reference

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_BLANK_LINE_ABOVE = re.compile(r"\n[ \t\r]*\n[ \t\r\n]*\Z")


@record
class SourceItem:
    """A declaration or member as written, with the comments above it and at the end of its line."""

    text: str
    comments_above: tuple[str, ...] = ()
    comment_behind: str = ""

    def full_text(self, text: str | None = None) -> str:
        """Return the item with its comments. If `text` is given, it replaces the item itself."""
        item_text = self.text if text is None else text
        return "\n".join((*self.comments_above, f"{item_text}  {self.comment_behind}".rstrip()))


@record
class SourceDeclaration:
    """A declaration, with its whole text, its members in source order, and the comments before its closing brace.

    `free_comments` are comment blocks above the declaration that do not belong to it. `joined` is true if no blank line
    precedes the declaration.
    """

    item: SourceItem
    members: tuple[tuple[model.DeclarationMember, SourceItem], ...]
    closing_comments: tuple[str, ...]
    free_comments: tuple[str, ...]
    joined: bool


@record
class SourceParts:
    """A schema file, with its declarations in source order and the comments after the last declaration."""

    declarations: dict[TypeReference, SourceDeclaration]
    closing_comments: tuple[str, ...]


def read_source_parts(source_text: str, declarations: Sequence[model.Declaration]) -> SourceParts:
    """Split a valid schema file into its parts. `declarations` must be the file's syntax trees, in source order."""
    comments = _CommentReader(source_text)
    spans = [declaration.span for declaration in declarations]
    items, closing_spans = comments.attach(spans, Span(0, len(source_text)))
    parts = {
        declaration_reference(declaration): _read_declaration(comments, declaration, item, above_spans)
        for declaration, (item, above_spans) in zip(declarations, items, strict=True)
    }
    return SourceParts(parts, comments.read_blocks(closing_spans))


def _read_declaration(
    comments: "_CommentReader", declaration: model.Declaration, bare_item: SourceItem, above_spans: list[Span]
) -> SourceDeclaration:
    free_spans, attached_spans = comments.split_free(above_spans, declaration.span.start)
    item = replace(bare_item, comments_above=comments.read_blocks(attached_spans))
    free_comments = comments.read_blocks(free_spans)
    joined = not comments.has_blank_line_above((attached_spans or [declaration.span])[0].start)
    members = declared_members(declaration)
    if declaration.body is None:
        return SourceDeclaration(item, (), (), free_comments, joined)
    member_items, closing_spans = comments.attach([member.span for member in members], declaration.body)
    member_parts = tuple((member, part) for member, (part, _) in zip(members, member_items, strict=True))
    return SourceDeclaration(item, member_parts, comments.read_blocks(closing_spans), free_comments, joined)


def declared_members(declaration: model.Declaration) -> tuple[model.DeclarationMember, ...]:
    """Return the members of a declaration in source order."""
    if isinstance(declaration, model.InterfaceDeclaration):
        return declaration.properties
    return declaration.members


def remove_rename_hints(source_text: str) -> str:
    """Remove `@rename_from` hints from a valid schema's text. After a merge, the renames have already happened."""
    if "rename_from" not in source_text:
        return source_text
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
        self._starts = [comment.start for comment in self._comments]

    def attach(self, spans: Sequence[Span], region: Span) -> tuple[list[tuple[SourceItem, list[Span]]], list[Span]]:
        """Return each item with the comments above it, and the comments after the last item."""
        loose = self._comments_between(spans, region)
        items = []
        for span in spans:
            first_below = bisect_left(loose, span.start, key=lambda comment: comment.start)
            above, loose = loose[:first_below], loose[first_below:]
            behind = loose.pop(0) if loose and self._is_behind(span, loose[0]) else None
            behind_text = "" if behind is None else self._read(behind)
            text = self._text[span.start : span.end]
            items.append((SourceItem(text, self.read_blocks(above), behind_text), above))
        return items, loose

    def _comments_between(self, spans: Sequence[Span], region: Span) -> list[Span]:
        """Return the comments in a region that are outside all items."""
        first, last = (bisect_left(self._starts, offset) for offset in (region.start, region.end))
        between = []
        for comment in self._comments[first:last]:
            position = bisect_right(spans, comment.start, key=lambda span: span.start)
            if position == 0 or comment.start >= spans[position - 1].end:
                between.append(comment)
        return between

    def split_free(self, spans: list[Span], item_start: int) -> tuple[list[Span], list[Span]]:
        """Split the comments above an item into free comments and comments that belong to the item."""
        following_start = item_start
        for position in reversed(range(len(spans))):
            if _BLANK_LINE.search(self._text, spans[position].end - 1, following_start):
                return spans[: position + 1], spans[position + 1 :]
            following_start = spans[position].start
        return [], spans

    def read_blocks(self, spans: Sequence[Span]) -> tuple[str, ...]:
        """Return comments as text. Comments without a blank line between them form one block."""
        blocks: list[str] = []
        previous_end = 0
        for span in spans:
            if blocks and not _BLANK_LINE.search(self._text, previous_end, span.start):
                blocks[-1] += "\n" + self._read(span)
            else:
                blocks.append(self._read(span))
            previous_end = span.end
        return tuple(blocks)

    def has_blank_line_above(self, offset: int) -> bool:
        """Return whether a blank line precedes an offset."""
        return _BLANK_LINE_ABOVE.search(self._text, max(0, offset - 200), offset) is not None

    def _read(self, span: Span) -> str:
        return self._text[span.start : span.end].rstrip()

    def _is_behind(self, item: Span, comment: Span) -> bool:
        text_between = self._text[item.end : comment.start]
        return "\n" not in text_between and not text_between.strip(" \t\r")
