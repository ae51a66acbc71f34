"""The query that a command runs, and the values of its parameters.

This module defines the flags that `query`, `mutate` and `explain` share: the query source and `--params`. All input is
read and validated before a graph is opened.
"""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import click

from omnigraph.errors import InputError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.records.frozen import record

from . import files
from .address import GraphAddress, graph_arguments, has_address

_EXPECTED_PARAMETERS = """pass a JSON object such as '{"name": "ada"}', or --params-file FILE"""
_PARAMETER_OPTIONS = (
    click.option("--params", metavar="JSON", help="Query parameters as a JSON object"),
    click.option(
        "--params-file", metavar="PATH", type=click.Path(allow_dash=True), help="JSON file with the query parameters"
    ),
)
_QUERY_OPTIONS = (
    click.option(
        "--query",
        "query_path",
        metavar="FILE",
        type=click.Path(allow_dash=True),
        help="Query file (.gq); NAME selects a query if the file has several",
    ),
    click.option("-e", "--query-string", "text", metavar="GQ", help="Query text"),
    *_PARAMETER_OPTIONS,
)


@record
class QueryInput:
    """Query text, the name of the query to run, and the values of its parameters."""

    query_name: str | None
    source: SourceText
    params: dict[str, Any]


def parameter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --params and --params-file to a command."""
    for option in reversed(_PARAMETER_OPTIONS):
        command = option(command)
    return command


def query_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the graph, NAME, --query, -e, --params and --params-file; the command gets `address` and `query_input`."""

    @graph_arguments(name="[NAME]")
    @wraps(command)
    def read_input(
        name: str | None, address: GraphAddress, query_path: str | None, text: str | None, **other_options: Any
    ) -> None:
        if not (query_path or text) or not has_address(address):
            _reject_subcommand(address.argument or name)
        if name is not None and not name.isidentifier() and not has_address(address):
            # A query cannot have such a name, so this is the location of a graph that does not exist.
            address, name = replace(address, argument=name), None
        parameter_sources = other_options.pop("params"), other_options.pop("params_file")
        source, params = read_query_source(query_path, text), read_parameters(*parameter_sources)
        command(query_input=QueryInput(name, source, params), address=address, **other_options)

    for option in reversed(_QUERY_OPTIONS):
        read_input = option(read_input)
    return read_input


def _reject_subcommand(word: str | None) -> None:
    """Raise an error that suggests `omnigraph lint` for `omnigraph query lint` and `omnigraph query check`."""
    if word in ("lint", "check"):
        raise click.UsageError("to check queries, use `omnigraph lint --schema FILE --query FILE`")


def read_query_source(query_path: str | None, query_text: str | None) -> SourceText:
    """Read the query from its source; raise an error unless exactly one source is given."""
    if query_path is not None and query_text is not None:
        raise click.UsageError("--query and -e both specify a query: use only one of them")
    if query_text is not None:
        if not query_text.strip():
            raise click.UsageError("-e is empty: pass a query")
        return SourceText("-e", query_text)
    if query_path is None:
        raise click.UsageError(
            "no query specified: use --query FILE or -e GQ; to run a query that is stored on a server, use"
            " `omnigraph alias`"
        )
    return files.read_source(query_path)


def read_parameters(params_text: str | None, params_path: str | None) -> dict[str, Any]:
    """Return the parameter values from --params or --params-file."""
    if params_text is not None and params_path is not None:
        raise click.UsageError("--params and --params-file both specify parameters: use only one of them")
    source_name = "--params"
    if params_path is not None:
        source_name = files.display_name(params_path)
        params_text = files.read_source(params_path).text
    if params_text is None:
        return {}
    try:
        params = json.loads(params_text, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        message, hint = f"{source_name} is not valid JSON: {error}", _suggest_json(params_text)
        raise InputError(message, reason="malformed JSON", hint=hint) from None
    if not isinstance(params, dict):
        raise InputError(f"{source_name} must be a JSON object", reason="not an object", hint=_EXPECTED_PARAMETERS)
    return params


def parse_json_value(text: str) -> Any:
    """Return a JSON value, or the text itself if it is not JSON.

    >>> parse_json_value("3"), parse_json_value("ada"), parse_json_value("NaN")
    (3, 'ada', 'NaN')
    """
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return text


def _suggest_json(params_text: str) -> str:
    """Return a hint that rewrites NAME=VALUE as JSON, or a general hint if the text does not have this form.

    >>> print(_suggest_json("limit=3"))
    use --params '{"limit": 3}'
    """
    name, separator, text = params_text.partition("=")
    if not separator or not name.strip().isidentifier():
        return _EXPECTED_PARAMETERS
    return f"use --params {shlex.quote(json.dumps({name.strip(): parse_json_value(text)}, ensure_ascii=False))}"


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        member_names = [member_name for member_name, _ in pairs]
        duplicate = next(member_name for member_name in member_names if member_names.count(member_name) > 1)
        raise ValueError(f"the member '{duplicate}' is specified twice")
    return members


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")
