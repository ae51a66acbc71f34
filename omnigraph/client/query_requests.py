"""Read a query before it is sent, and add the caller's own text to language errors that the server returns.

A query body without a header gets its header here. The header declares the parameter types, which only the client
knows: they follow from the caller's Python values, and JSON does not preserve them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omnigraph.api.builders.prepared_queries import QuerySource, QueryText, map_errors_to_body, read_query
from omnigraph.errors import InputError, LanguageError, ParameterError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.values.describe_value import describe

from .wire_values import encode_value

_SERVER_NAME = "<query>"


def build_query_body(query_text: QueryText, name: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request members that contain a query and its parameters."""
    return {"query": query_text.text, "name": name, "params": _encode_parameters(arguments) or None}


def _encode_parameters(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _encode_parameter(name, value) for name, value in arguments.items()}


def _encode_parameter(name: str, value: Any) -> Any:
    """Return a parameter as JSON, or raise `ParameterError` if JSON cannot represent it."""
    try:
        encoded = encode_value(value)
        if isinstance(encoded, str):
            encoded.encode()
    except InputError:
        raise ParameterError(parameter=name, expected="a property value", actual=describe(value)) from None
    except UnicodeEncodeError:
        raise ParameterError(parameter=name, expected="valid Unicode", actual="an unpaired surrogate") from None
    return encoded


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
