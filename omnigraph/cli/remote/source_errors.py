"""Errors in a query or schema that the server found, shown with the user's own file name and source lines."""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import SourceText

_SERVER_NAMES = ("<query>", "<schema>")


@contextmanager
def with_source(source: SourceText) -> Iterator[None]:
    """Add the source to language errors, so that they are shown as if the text had been compiled here."""
    try:
        yield
    except LanguageError as error:
        error.source = source
        for server_name in _SERVER_NAMES:
            error.message = error.message.replace(f"{server_name}:", f"{source.name}:")
        raise
