"""Print items line by line without losing a comment.

Owns where comments and blank lines of the source text go in the formatted text. It never inspects
what an item means: the formatter of each language passes finished lines and their source spans.
"""

import re
from typing import Literal

from omnigraph.diagnostics import Span

from . import scan

Blank = Literal["keep", "always", "never"]
INDENT = "    "
_BLANK_BEFORE = re.compile(r"\n[ \t\r]*\n[ \t\r\n]*\Z")


class Layout:
    r"""Collects formatted lines; each comment stays next to the item it belongs to.

    >>> layout = Layout("// head\nnode A {} // tail")
    >>> layout.item(0, "node A {}", Span(8, 17))
    >>> print(layout.finish(), end="")
    // head
    node A {}  // tail
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._comments = list(reversed(scan.comments(text)))
        self._lines: list[str] = []

    def item(
        self, depth: int, line: str, span: Span, *, blank: Blank = "keep", closes: bool = False
    ) -> None:
        """Add one item that came from `source_span`, after the comments before and inside it.

        With `closes_block`, comments before the item stay inside the block that it closes.
        """
        while self._comments and self._comments[-1].start < span.end:
            comment = self._comments.pop()
            self._space(min(comment.start, span.start), blank)
            self._lines.append(INDENT * (depth + closes) + self._comment(comment))
            blank = "keep" if comment.start < span.start else "never"
        self._space(span.start, blank)
        self._lines.append(INDENT * depth + line + self._trailing(span.end))

    def finish(self) -> str:
        """Return the formatted text, with any remaining comments at the end."""
        for comment in reversed(self._comments):
            self._space(comment.start, "keep")
            self._lines.append(self._comment(comment))
        self._comments.clear()
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _comment(self, span: Span) -> str:
        return self._text[span.start : span.end].rstrip()

    def _space(self, start: int, blank: Blank) -> None:
        kept = blank == "keep" and _BLANK_BEFORE.search(self._text, max(0, start - 200), start)
        if self._lines and (blank == "always" or kept):
            self._lines.append("")

    def _trailing(self, end: int) -> str:
        if not self._comments:
            return ""
        between = self._text[end : self._comments[-1].start]
        if "\n" in between or between.strip(" \t\r,"):
            return ""
        return "  " + self._comment(self._comments.pop())
