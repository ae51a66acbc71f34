"""Errors in the source text of schemas and queries.

Each error carries all diagnostics for a file, with their positions. Converting an error to a string renders the
diagnostics with carets. This module never reads files.
"""
# ruff: noqa: N818 - a class name states what happened and needs no `Error` suffix

from collections.abc import Iterable, Sequence
from typing import Any

from .diagnostics import Diagnostic, SourceText, render
from .root import ClientError

_MAX_RENDERED = 20  # maximum number of diagnostics rendered in full, so that a broken file does not flood the terminal


class LanguageError(ClientError):
    """The schema or query text is invalid.

    >>> from omnigraph.errors.diagnostics import Span
    >>> source = SourceText("a.pg", "node lamp {}")
    >>> diagnostic = Diagnostic.at_span(source, Span(5, 9), "no")
    >>> print(ParseError(diagnostics=[diagnostic], source=source))
    a.pg:1:6: error: no
      1 | node lamp {}
        |      ^^^^
    """

    hint = "fix the errors at the marked positions"
    diagnostics: tuple[Diagnostic, ...] = ()
    source: SourceText | None = None

    def __init__(
        self,
        message: str | None = None,
        *,
        diagnostics: Iterable[Diagnostic] = (),
        source: SourceText | None = None,
        **facts: Any,
    ) -> None:
        all_diagnostics = tuple(diagnostics)
        super().__init__(message or _first_error_headline(all_diagnostics, source), **facts)
        self.diagnostics = all_diagnostics
        self.source = source

    def __str__(self) -> str:
        if not self.diagnostics:
            return self.message
        rendered = [self._render_diagnostic(diagnostic) for diagnostic in self.diagnostics[:_MAX_RENDERED]]
        omitted_count = len(self.diagnostics) - len(rendered)
        return "\n".join([*rendered, f"and {omitted_count} more"] if omitted_count else rendered)

    def _render_diagnostic(self, diagnostic: Diagnostic) -> str:
        if self.source is not None:
            return render(diagnostic, self.source)
        position = f"{diagnostic.line}:{diagnostic.column}"
        code_suffix = f"[{diagnostic.code}]" if diagnostic.code else ""
        return f"{position}: {diagnostic.severity}{code_suffix}: {diagnostic.message}"

    def typed_members(self) -> dict[str, Any]:
        """Return the members of the base class and the diagnostics."""
        diagnostics_json = [diagnostic.to_json() for diagnostic in self.diagnostics]
        return super().typed_members() | ({"diagnostics": diagnostics_json} if diagnostics_json else {})

    def _repr_html_(self) -> str:
        from html import escape  # imported lazily, because only notebooks need it

        class_name = escape(type(self).__name__)
        return f"<strong>{class_name}</strong><pre>{escape(str(self))}</pre>"


class ParseError(LanguageError):
    """The text cannot be parsed."""


class CatalogError(LanguageError):
    """Declarations in the schema contradict each other."""


class IdentityError(CatalogError):
    """A rename hint cannot be resolved, or the stored ids of the declarations are invalid."""


class TypeCheckError(LanguageError):
    """The query does not match the schema."""


class SchemaUnsupported(LanguageError):
    """The schema change is not supported.

    `steps` lists the plan steps that cannot be applied, each with its `code`, if any.
    """

    hint = "split the change into smaller ones, or export the data, recreate the graph and load the data again"
    steps: tuple[Any, ...] = ()

    def __init__(self, message: str | None = None, *, steps: Iterable[Any] = (), **facts: Any) -> None:
        super().__init__(message, **facts)
        self.steps = tuple(steps)

    def typed_members(self) -> dict[str, Any]:
        """Return the diagnostics and the unsupported steps."""
        steps_json = [step.to_json() if hasattr(step, "to_json") else step for step in self.steps]
        return super().typed_members() | ({"steps": steps_json} if steps_json else {})


def _first_error_headline(diagnostics: Sequence[Diagnostic], source: SourceText | None) -> str | None:
    error_diagnostics = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"] or list(
        diagnostics
    )
    if not error_diagnostics:
        return None
    first_error = error_diagnostics[0]
    location = f"{source.name}:{first_error.line}:{first_error.column}: " if source else ""
    code_prefix = (
        f"{first_error.code}: " if first_error.code and not first_error.message.startswith(first_error.code) else ""
    )
    remaining_note = f" (and {len(error_diagnostics) - 1} more)" if len(error_diagnostics) > 1 else ""
    return f"{location}{code_prefix}{first_error.message}{remaining_note}"
