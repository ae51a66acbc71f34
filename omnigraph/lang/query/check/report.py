"""Collect diagnostics for one query.

Every diagnostic refers to a span in the source. Reporting never raises an exception: a check reports an error and
continues, so that a single run finds every mistake.
"""

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span


class CheckReport:
    """The diagnostics reported for one query so far."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._diagnostics: list[Diagnostic] = []

    def error(self, span: Span, message: str, code: str | None = None, *, hint: str | None = None) -> None:
        """Add a type error."""
        self._diagnostics.append(Diagnostic.at_span(self.source, span, message, code=code, kind="type", hint=hint))

    def warn(self, span: Span, message: str, code: str, *, hint: str | None = None) -> None:
        """Add a warning about something that is legal but probably not intended."""
        self._diagnostics.append(
            Diagnostic.at_span(self.source, span, message, code=code, kind="lint", severity="warning", hint=hint)
        )

    @property
    def error_count(self) -> int:
        """Return the number of errors."""
        return sum(diagnostic.severity == "error" for diagnostic in self._diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Return the errors, in source order."""
        return self._sort_by_position("error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Return the warnings, in source order."""
        return self._sort_by_position("warning")

    def _sort_by_position(self, severity: str) -> tuple[Diagnostic, ...]:
        matching = [diagnostic for diagnostic in self._diagnostics if diagnostic.severity == severity]
        return tuple(sorted(matching, key=lambda diagnostic: diagnostic.start))
