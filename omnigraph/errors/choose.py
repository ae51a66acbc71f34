"""Maps diagnostics of a schema or query text to the error class to raise."""

from collections.abc import Sequence

from omnigraph.diagnostics import Diagnostic, Kind, Source
from omnigraph.errors.input import ParameterError
from omnigraph.errors.language import (
    CatalogError,
    IdentityError,
    LanguageError,
    ParseError,
    SchemaUnsupported,
    TypeCheckError,
)

_CLASSES: dict[Kind, type[LanguageError]] = {
    "parse": ParseError,
    "catalog": CatalogError,
    "identity": IdentityError,
    "plan": SchemaUnsupported,
    "type": TypeCheckError,
    "input": ParameterError,
    "lint": LanguageError,
}


def language_error(diagnostics: Sequence[Diagnostic], source: Source) -> LanguageError:
    """Return one error for all diagnostics of a text; the first error determines its class.

    >>> text = Source("q.gq", "?")
    >>> type(language_error([Diagnostic("no", kind="type")], text)).__name__
    'TypeCheckError'
    """
    errors = [one for one in diagnostics if one.severity == "error"] or diagnostics
    kind: Kind = errors[0].kind if errors else "lint"
    return _CLASSES[kind](diagnostics=diagnostics, source=source)
