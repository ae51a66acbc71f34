"""Collect the errors that schema checks report.

Errors are reported by check stage first, then by position. The first error determines the class of the raised error, so
the order of the stages is part of the language.
"""

from enum import IntEnum

from omnigraph.errors.diagnostics import Diagnostic, DiagnosticKind, SourceText, Span


class CheckStage(IntEnum):
    """The checks in execution order.

    Errors from the stages up to and including `CONSTRAINT` are parse errors, and errors from later stages are catalog
    errors.
    """

    PROPERTY = 1
    INTERFACE = 2
    ANNOTATION = 3
    CONSTRAINT = 4
    CATALOG = 5
    SHAPE = 6

    @property
    def kind(self) -> DiagnosticKind:
        """Return the diagnostic kind for errors in this stage."""
        return "catalog" if self >= CheckStage.CATALOG else "parse"


class SchemaFindings:
    """Collects errors. Identical errors at the same position are reported only once."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._diagnostics: dict[tuple[CheckStage, Span, str], Diagnostic] = {}

    def add(self, stage: CheckStage, span: Span, message: str, hint: str | None = None) -> None:
        """Record an error and continue."""
        diagnostic = Diagnostic.at_span(self.source, span, message, kind=stage.kind, hint=hint)
        self._diagnostics.setdefault((stage, span, message), diagnostic)

    def line_number(self, span: Span) -> int:
        """Return the number of the line on which a span starts."""
        return self.source.locate(span.start)[0]

    def sorted_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return all errors, sorted by stage and then by position."""
        sorted_keys = sorted(
            self._diagnostics,
            key=lambda finding_key: (finding_key[0], finding_key[1].start, finding_key[1].end, finding_key[2]),
        )
        return tuple(self._diagnostics[finding_key] for finding_key in sorted_keys)
