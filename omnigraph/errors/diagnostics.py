"""Source positions, and diagnostics that point at them.

This module defines spans, converts offsets to lines and columns, and formats the source excerpt that every language
error shows, with a caret under the error. It does not depend on grammars, schemas or graphs, and imports nothing from
the package except `record`.
"""

import unicodedata
from bisect import bisect_right
from dataclasses import field
from typing import Literal

from omnigraph.records.frozen import record

DiagnosticSeverity = Literal["error", "warning", "info"]
DiagnosticKind = Literal["parse", "catalog", "identity", "plan", "type", "input", "lint"]

_MAX_SHOWN_COLUMNS = 96  # maximum number of columns shown around the caret; longer source lines are clipped


@record
class Span:
    """A half-open range of characters in a source string.

    >>> Span(2, 5).shifted(10)
    Span(start=12, end=15)
    """

    start: int
    end: int

    def shifted(self, distance: int) -> "Span":
        """Return the range, moved right by `distance` characters."""
        return Span(self.start + distance, self.end + distance)

    def to(self, end_span: "Span") -> "Span":
        """Return the range from the start of this span to the end of `end_span`."""
        return Span(self.start, end_span.end)


NO_SPAN = Span(0, 0)


@record
class SourceText:
    r"""A named source string that maps character offsets to lines and columns.

    >>> SourceText("a.pg", "node A {}\nnode b {}").locate(15)
    (2, 6)
    """

    name: str
    text: str
    _line_offsets: list[int] = field(default_factory=list, repr=False, compare=False)

    def _line_starts(self) -> list[int]:
        if not self._line_offsets:
            self._line_offsets.append(0)
            newline_offset = self.text.find("\n")
            while newline_offset >= 0:
                self._line_offsets.append(newline_offset + 1)
                newline_offset = self.text.find("\n", newline_offset + 1)
        return self._line_offsets

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the line and column at an offset. Both start at 1, and the column counts characters, not bytes."""
        line_starts = self._line_starts()
        clamped_offset = max(0, min(offset, len(self.text)))
        line_number = bisect_right(line_starts, clamped_offset)
        return line_number, clamped_offset - line_starts[line_number - 1] + 1

    def line_text(self, line_number: int) -> str:
        """Return a line without its line ending. Line numbers start at 1."""
        line_starts = self._line_starts()
        end_offset = line_starts[line_number] - 1 if line_number < len(line_starts) else len(self.text)
        return self.text[line_starts[line_number - 1] : end_offset].rstrip("\r")


@record
class Diagnostic:
    """A finding in the source text, with a message, code, position and hint.

    `start` and `end` are character offsets. `line` and `column` start at 1.
    """

    message: str
    code: str | None = None
    kind: DiagnosticKind = "parse"
    severity: DiagnosticSeverity = "error"
    start: int = 0
    end: int = 0
    line: int = 1
    column: int = 1
    hint: str | None = None

    @classmethod
    def at_span(  # noqa: PLR0913 - one argument per member of a diagnostic
        cls,
        source: SourceText,
        span: Span,
        message: str,
        *,
        code: str | None = None,
        kind: DiagnosticKind = "parse",
        severity: DiagnosticSeverity = "error",
        hint: str | None = None,
    ) -> "Diagnostic":
        """Build a diagnostic for a span in `source`. An empty span becomes one character wide."""
        line, column = source.locate(span.start)
        end_offset = max(span.end, span.start + 1)
        return cls(message, code, kind, severity, span.start, end_offset, line, column, hint)

    def to_json(self) -> dict[str, object]:
        """Return the diagnostic as JSON, omitting members that have no value."""
        members = {
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
        return {member_name: value for member_name, value in members.items() if value is not None}


def render(diagnostic: Diagnostic, source: SourceText) -> str:
    """Format a diagnostic as readable text with its position, message, source line, caret and hint.

    >>> text = SourceText("a.pg", "node lamp {}")
    >>> print(render(Diagnostic.at_span(text, Span(5, 9), "expected a type name"), text))
    a.pg:1:6: error: expected a type name
      1 | node lamp {}
        |      ^^^^
    """
    code_suffix = f"[{diagnostic.code}]" if diagnostic.code else ""
    location = f"{_escape_unprintable(source.name)}:{diagnostic.line}:{diagnostic.column}"
    output_lines = [f"{location}: {diagnostic.severity}{code_suffix}: {_escape_unprintable(diagnostic.message)}"]
    output_lines += _render_source_excerpt(diagnostic, source)
    if diagnostic.hint:
        output_lines.append(f"  hint: {_escape_unprintable(diagnostic.hint)}")
    return "\n".join(output_lines)


def _render_source_excerpt(diagnostic: Diagnostic, source: SourceText) -> list[str]:
    source_line = source.line_text(diagnostic.line)
    caret_index = diagnostic.column - 1
    window_start = max(0, caret_index - _MAX_SHOWN_COLUMNS // 2) if len(source_line) > _MAX_SHOWN_COLUMNS else 0
    window_text = source_line[window_start : window_start + _MAX_SHOWN_COLUMNS]
    text_before_caret = source_line[window_start:caret_index]
    caret_length = max(1, min(diagnostic.end - diagnostic.start, window_start + len(window_text) - caret_index))
    marked_text = source_line[caret_index : caret_index + caret_length] or " "
    gutter = str(diagnostic.line).rjust(max(3, len(str(diagnostic.line))))
    leading_ellipsis = "…" if window_start else ""
    trailing_ellipsis = "…" if window_start + len(window_text) < len(source_line) else ""
    caret_padding = " " * (len(leading_ellipsis) + _display_width(text_before_caret))
    caret_text = "^" * max(1, _display_width(marked_text))
    blank_gutter = " " * len(gutter)
    return [
        f"{gutter} | {leading_ellipsis}{_replace_unprintable(window_text)}{trailing_ellipsis}",
        f"{blank_gutter} | {caret_padding}{caret_text}",
    ]


def _replace_unprintable(text: str) -> str:
    return "".join(
        " " if character == "\t" else character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def _escape_unprintable(text: str) -> str:
    """Escape unprintable characters, so that source text cannot move the cursor or change colors."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def _display_width(text: str) -> int:
    return sum(map(character_width, text))


def character_width(character: str) -> int:
    """Return how many terminal columns a character occupies.

    >>> character_width("a"), character_width("日"), character_width("\N{COMBINING ACUTE ACCENT}")
    (1, 2, 0)
    """
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
