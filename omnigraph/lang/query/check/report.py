"""Collect the diagnostics of one query.

Owns the list of diagnostics, each at a span of the source. Never raises and never decides: a check
reports and continues, so that one run finds every mistake.
"""

from omnigraph.diagnostics import Diagnostic, Source, Span


class Report:
    """The diagnostics of one query so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: list[Diagnostic] = []

    def error(
        self, span: Span, message: str, code: str | None = None, *, hint: str | None = None
    ) -> None:
        """Add a type error."""
        self._found.append(
            Diagnostic.at(self._source, span, message, code=code, kind="type", hint=hint)
        )

    def warn(self, span: Span, message: str, code: str, *, hint: str | None = None) -> None:
        """Add a warning about something legal that is probably not intended."""
        self._found.append(
            Diagnostic.at(
                self._source, span, message, code=code, kind="lint", severity="warning", hint=hint
            )
        )

    @property
    def failures(self) -> int:
        """The number of errors."""
        return sum(one.severity == "error" for one in self._found)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors, in source order."""
        return self._sorted("error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings, in source order."""
        return self._sorted("warning")

    def _sorted(self, severity: str) -> tuple[Diagnostic, ...]:
        chosen = [one for one in self._found if one.severity == severity]
        return tuple(sorted(chosen, key=lambda one: one.start))
