"""Format items line by line without losing comments.

This module decides where comments and blank lines from the source text go in the formatted text. It does not interpret
items: each language's formatter passes in finished lines and their source spans.
"""

import re
from typing import Literal

from omnigraph.errors.diagnostics import Span

from . import coarse_scan

BlankLinePolicy = Literal["keep", "always", "never"]
INDENT = "    "
_BLANK_LINE_BEFORE = re.compile(r"\n[ \t\r]*\n[ \t\r\n]*\Z")


class Layout:
    r"""Collects formatted lines, keeping each comment next to the item to which it belongs.

    >>> layout = Layout("// head\nnode A {} // tail")
    >>> layout.add_item(0, "node A {}", Span(8, 17))
    >>> print(layout.finish(), end="")
    // head
    node A {}  // tail
    """

    def __init__(self, source_text: str) -> None:
        self._source_text = source_text
        self._comments = list(reversed(coarse_scan.find_comments(source_text)))
        self._lines: list[str] = []

    def add_item(
        self,
        indent_depth: int,
        line: str,
        source_span: Span,
        *,
        blank_line: BlankLinePolicy = "keep",
        closes_block: bool = False,
    ) -> None:
        """Add one item, preceded by any comments before or inside its `source_span`.

        If `closes_block` is true, comments before the item stay inside the block that the item closes.
        """
        while self._comments and self._comments[-1].start < source_span.end:
            comment = self._comments.pop()
            self._add_blank_line(min(comment.start, source_span.start), blank_line)
            self._lines.append(INDENT * (indent_depth + closes_block) + self._comment_text(comment))
            blank_line = "keep" if comment.start < source_span.start else "never"
        self._add_blank_line(source_span.start, blank_line)
        self._lines.append(INDENT * indent_depth + line + self._take_trailing_comment(source_span.end))

    def finish(self) -> str:
        """Return the formatted text, with any remaining comments at the end."""
        for comment in reversed(self._comments):
            self._add_blank_line(comment.start, "keep")
            self._lines.append(self._comment_text(comment))
        self._comments.clear()
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _comment_text(self, comment_span: Span) -> str:
        return self._source_text[comment_span.start : comment_span.end].rstrip()

    def _add_blank_line(self, item_start: int, blank_line: BlankLinePolicy) -> None:
        blank_in_source = blank_line == "keep" and _BLANK_LINE_BEFORE.search(
            self._source_text, max(0, item_start - 200), item_start
        )
        if self._lines and (blank_line == "always" or blank_in_source):
            self._lines.append("")

    def _take_trailing_comment(self, item_end: int) -> str:
        if not self._comments:
            return ""
        text_between = self._source_text[item_end : self._comments[-1].start]
        if "\n" in text_between or text_between.strip(" \t\r,"):
            return ""
        return "  " + self._comment_text(self._comments.pop())
