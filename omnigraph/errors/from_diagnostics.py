"""Choose which error class to raise for the diagnostics in a schema or query."""

from collections.abc import Sequence

from .diagnostics import Diagnostic, DiagnosticKind, SourceText
from .input import ParameterError
from .language import CatalogError, IdentityError, LanguageError, ParseError, SchemaUnsupported, TypeCheckError

_CLASS_BY_KIND: dict[DiagnosticKind, type[LanguageError]] = {
    "parse": ParseError,
    "catalog": CatalogError,
    "identity": IdentityError,
    "plan": SchemaUnsupported,
    "type": TypeCheckError,
    "input": ParameterError,
    "lint": LanguageError,
}


def language_error(diagnostics: Sequence[Diagnostic], source: SourceText) -> LanguageError:
    """Return one error that carries all diagnostics for a source. The first error diagnostic determines the class.

    >>> source = SourceText("q.gq", "?")
    >>> type(language_error([Diagnostic("no", kind="type")], source)).__name__
    'TypeCheckError'
    """
    error_diagnostics = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"] or diagnostics
    first_kind: DiagnosticKind = error_diagnostics[0].kind if error_diagnostics else "lint"
    return _CLASS_BY_KIND[first_kind](diagnostics=diagnostics, source=source)
