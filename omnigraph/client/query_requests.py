"""Read a query before it is sent, and add the caller's own text to language errors that the server returns.

A query body without a header gets its header here. The header declares the parameter types, which only the client
knows: they follow from the caller's Python values, and JSON does not preserve them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omnigraph.api.builders.prepared_queries import QuerySource, QueryText, map_errors_to_body, read_query
from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import SourceText

from .property_values import encode_arguments

_SERVER_NAME = "<query>"


def build_query_body(query_text: QueryText, name: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request members that contain a query and its parameters."""
    params = encode_arguments(query_text.text, name, arguments)
    return {"query": query_text.text, "name": name, "params": params or None}


def read_source(source: QuerySource, arguments: Mapping[str, Any]) -> QueryText:
    """Return the text to send. Files are read, and a body without a query header gets one."""
    return read_query(source, arguments)


@contextmanager
def with_source(query_text: QueryText) -> Iterator[None]:
    """Add the caller's text and file name to language errors, as if the text had been compiled here."""
    try:
        yield
    except LanguageError as error:
        if query_text.prefix_length and error.diagnostics:
            with map_errors_to_body(query_text):
                raise
        error.source = SourceText(query_text.source_name, query_text.text)
        error.message = error.message.replace(f"{_SERVER_NAME}:", f"{query_text.source_name}:")
        raise
