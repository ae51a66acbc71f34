"""Positions in a source text, and diagnostics that point at them.

Owns spans, line and column arithmetic and the caret excerpt that every language error shows.
Knows nothing of grammars, schemas or graphs, and imports nothing of the package but `record`.
"""

import unicodedata
from bisect import bisect_right
from dataclasses import field
from typing import Literal

from omnigraph.record import record

Severity = Literal["error", "warning", "info"]
Kind = Literal["parse", "catalog", "identity", "plan", "type", "input", "lint"]

_WINDOW = 96  # columns of a source line shown around the caret; longer lines are clipped


@record
class Span:
    """A half-open range of characters in a source text.

    >>> Span(2, 5).shifted(10)
    Span(start=12, end=15)
    """

    start: int
    end: int

    def shifted(self, by: int) -> "Span":
        """Return the same range moved right by a number of characters."""
        return Span(self.start + by, self.end + by)

    def to(self, other: "Span") -> "Span":
        """Return the range from the start of this span to the end of another."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)


@record
class Source:
    r"""A named text that maps character offsets to lines and columns.

    >>> Source("a.pg", "node A {}\nnode b {}").locate(15)
    (2, 6)
    """

    name: str
    text: str
    _starts: list[int] = field(default_factory=list, repr=False, compare=False)

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts.append(0)
            at = self.text.find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        return self._starts

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the line and column (both from 1, in characters) of an offset."""
        starts = self._line_starts()
        at = max(0, min(offset, len(self.text)))
        line = bisect_right(starts, at)
        return line, at - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of one line (counted from 1), without its line ending."""
        starts = self._line_starts()
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r")


@record
class Diagnostic:
    """One finding about a text: message, code, position and hint.

    `start`, `end` are character offsets; `line`, `column` count from 1.
    """

    message: str
    code: str | None = None
    kind: Kind = "parse"
    severity: Severity = "error"
    start: int = 0
    end: int = 0
    line: int = 1
    column: int = 1
    hint: str | None = None

    @classmethod
    def at(  # noqa: PLR0913 - a diagnostic has this many members
        cls,
        source: Source,
        span: Span,
        message: str,
        *,
        code: str | None = None,
        kind: Kind = "parse",
        severity: Severity = "error",
        hint: str | None = None,
    ) -> "Diagnostic":
        """Build a diagnostic for a span of `source`; an empty span becomes one character wide."""
        line, column = source.locate(span.start)
        end = max(span.end, span.start + 1)
        return cls(message, code, kind, severity, span.start, end, line, column, hint)

    def to_json(self) -> dict[str, object]:
        """Return the members as JSON; those without a value are left out."""
        facts = {
            "message": self.message,
            "code": self.code,
            "kind": self.kind,
            "severity": self.severity,
            "start": self.start,
            "end": self.end,
            "line": self.line,
            "column": self.column,
            "hint": self.hint,
        }
        return {name: value for name, value in facts.items() if value is not None}


def render(diagnostic: Diagnostic, source: Source) -> str:
    """Return the diagnostic as people read it: position, message, source line, caret, hint.

    >>> text = Source("a.pg", "node lamp {}")
    >>> print(render(Diagnostic.at(text, Span(5, 9), "expected a type name"), text))
    a.pg:1:6: error: expected a type name
      1 | node lamp {}
        |      ^^^^
    """
    code = f"[{diagnostic.code}]" if diagnostic.code else ""
    place = f"{_spelled(source.name)}:{diagnostic.line}:{diagnostic.column}"
    lines = [f"{place}: {diagnostic.severity}{code}: {_spelled(diagnostic.message)}"]
    lines += _picture(diagnostic, source)
    if diagnostic.hint:
        lines.append(f"  hint: {_spelled(diagnostic.hint)}")
    return "\n".join(lines)


def _picture(diagnostic: Diagnostic, source: Source) -> list[str]:
    text = source.line(diagnostic.line)
    column = diagnostic.column - 1
    left = max(0, column - _WINDOW // 2) if len(text) > _WINDOW else 0
    shown = text[left : left + _WINDOW]
    before = text[left:column]
    length = max(1, min(diagnostic.end - diagnostic.start, left + len(shown) - column))
    marked = text[column : column + length] or " "
    gutter = str(diagnostic.line).rjust(max(3, len(str(diagnostic.line))))
    head = "…" if left else ""
    tail = "…" if left + len(shown) < len(text) else ""
    pad = " " * (len(head) + _cells(before))
    caret = "^" * max(1, _cells(marked))
    blank = " " * len(gutter)
    return [f"{gutter} | {head}{_plain(shown)}{tail}", f"{blank} | {pad}{caret}"]


def _plain(text: str) -> str:
    return "".join(
        " " if c == "\t" else c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _spelled(text: str) -> str:
    """Escape unprintable characters, so that no text can move the cursor or change the color."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cells(text: str) -> int:
    return sum(_width(c) for c in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
