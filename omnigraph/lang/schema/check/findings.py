"""Collects the errors of all schema checks.

Owns the order in which errors are shown: by check stage, then by position. The first one
determines the error class, so the order of the stages is part of the language.
"""

from enum import IntEnum

from omnigraph.diagnostics import Diagnostic, Kind, Source, Span


class Stage(IntEnum):
    """The checks in execution order; errors up to `CONSTRAINT` are parse errors."""

    PROPERTY = 1
    INTERFACE = 2
    ANNOTATION = 3
    CONSTRAINT = 4
    CATALOG = 5
    SHAPE = 6

    @property
    def kind(self) -> Kind:
        """Return the diagnostic kind of errors in this stage."""
        return "catalog" if self >= Stage.CATALOG else "parse"


class Findings:
    """Collects errors; a repeated error at the same position is kept once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[tuple[Stage, Span, str], Diagnostic] = {}

    def add(self, stage: Stage, span: Span, message: str, hint: str | None = None) -> None:
        """Record an error and continue."""
        made = Diagnostic.at(self.source, span, message, kind=stage.kind, hint=hint)
        self._found.setdefault((stage, span, message), made)

    def line(self, span: Span) -> int:
        """Return the line on which a span begins."""
        return self.source.locate(span.start)[0]

    def in_order(self) -> tuple[Diagnostic, ...]:
        """Return all errors by stage, then by position."""
        keys = sorted(self._found, key=lambda k: (k[0], k[1].start, k[1].end, k[2]))
        return tuple(self._found[key] for key in keys)
