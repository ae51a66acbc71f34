"""Errors in schema and query texts: what is wrong, and where.

An error carries every diagnostic of a file with its position; `str()` draws the carets. Never
reads a file.
"""
# ruff: noqa: N818 - a class name states what happened, as in the documentation of the service

from collections.abc import Iterable, Sequence
from typing import Any

from omnigraph.diagnostics import Diagnostic, Source, render
from omnigraph.errors.root import ClientError

_SHOWN = 20  # diagnostics rendered in full; a broken file must not flood the terminal


class LanguageError(ClientError):
    """The schema or query text is invalid.

    >>> from omnigraph.diagnostics import Span
    >>> text = Source("a.pg", "node lamp {}")
    >>> print(ParseError(diagnostics=[Diagnostic.at(text, Span(5, 9), "no")], source=text))
    a.pg:1:6: error: no
      1 | node lamp {}
        |      ^^^^
    """

    hint = "correct the text at the marked positions"
    diagnostics: tuple[Diagnostic, ...] = ()
    source: Source | None = None

    def __init__(
        self,
        message: str | None = None,
        *,
        diagnostics: Iterable[Diagnostic] = (),
        source: Source | None = None,
        **facts: Any,
    ) -> None:
        found = tuple(diagnostics)
        super().__init__(message or _headline(found, source), **facts)
        self.diagnostics = found
        self.source = source

    def __str__(self) -> str:
        if not self.diagnostics:
            return self.message
        shown = [self._drawn(one) for one in self.diagnostics[:_SHOWN]]
        left = len(self.diagnostics) - len(shown)
        return "\n".join([*shown, f"and {left} more"] if left else shown)

    def _drawn(self, one: Diagnostic) -> str:
        if self.source is not None:
            return render(one, self.source)
        code = f"[{one.code}]" if one.code else ""
        return f"{one.line}:{one.column}: {one.severity}{code}: {one.message}"

    def typed_members(self) -> dict[str, Any]:
        """Return the diagnostics in addition to the members of the base class."""
        found = [one.to_json() for one in self.diagnostics]
        return super().typed_members() | ({"diagnostics": found} if found else {})

    def _repr_html_(self) -> str:
        from html import escape  # only notebooks need it

        kind = escape(type(self).__name__)
        return f"<strong>{kind}</strong><pre>{escape(str(self))}</pre>"


class ParseError(LanguageError):
    """The text cannot be parsed."""


class CatalogError(LanguageError):
    """Declarations in the schema contradict each other."""


class IdentityError(CatalogError):
    """A rename hint or a stable identity cannot be resolved."""


class TypeCheckError(LanguageError):
    """The query does not match the schema."""


class SchemaUnsupported(LanguageError):
    """The schema change is not supported.

    `steps` holds the plan steps that cannot be applied, each with its `code` if it has one.
    """

    hint = "split the change into smaller ones, or export the data, recreate the graph and reload"
    steps: tuple[Any, ...] = ()

    def __init__(
        self, message: str | None = None, *, steps: Iterable[Any] = (), **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.steps = tuple(steps)

    def typed_members(self) -> dict[str, Any]:
        """Return the refused steps in addition to the diagnostics."""
        steps = [one.to_json() if hasattr(one, "to_json") else one for one in self.steps]
        return super().typed_members() | ({"steps": steps} if steps else {})


def _headline(found: Sequence[Diagnostic], source: Source | None) -> str | None:
    errors = [one for one in found if one.severity == "error"] or list(found)
    if not errors:
        return None
    first = errors[0]
    place = f"{source.name}:{first.line}:{first.column}: " if source else ""
    code = f"{first.code}: " if first.code and not first.message.startswith(first.code) else ""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}{code}{first.message}{more}"
