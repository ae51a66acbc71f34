"""The query a command runs, and the values of its parameters.

Owns the flags that `query`, `mutate` and `explain` share: the source of the query, `--params`.
All input is read and validated before a graph is opened.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from omnigraph.diagnostics import Source
from omnigraph.errors import InputError
from omnigraph.record import record

from . import files

_OPTIONS = (
    click.argument("name", required=False),
    click.option(
        "--query",
        "query_path",
        metavar="FILE",
        type=click.Path(allow_dash=True),
        help="Query file (.gq); NAME selects a query if it has several",
    ),
    click.option("-e", "--query-string", "text", metavar="GQ", help="Query text"),
    click.option("--params", metavar="JSON", help="Query parameters as a JSON object"),
    click.option(
        "--params-file",
        metavar="PATH",
        type=click.Path(allow_dash=True),
        help="JSON file with the query parameters",
    ),
)


@record
class Asked:
    """A query text, the name of the query to run, and the values of its parameters."""

    name: str | None
    source: Source
    params: dict[str, Any]


def query_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add NAME, --query, -e, --params and --params-file; the command gets one `query_input`."""

    @wraps(command)
    def read(name: str | None, query_path: str | None, text: str | None, **more: Any) -> None:
        given = more.pop("params"), more.pop("params_file")
        source, params = query_source(query_path, text), parameters(*given)
        command(query_input=Asked(name, source, params), **more)

    for option in reversed(_OPTIONS):
        read = option(read)
    return read


def query_source(query_path: str | None, text: str | None) -> Source:
    """Read the query from its only source; two sources, or none, are rejected."""
    if query_path is not None and text is not None:
        raise click.UsageError("--query and -e both give a query: use only one of them")
    if text is not None:
        if not text.strip():
            raise click.UsageError("-e is empty: pass a query")
        return Source("-e", text)
    if query_path is None:
        raise click.UsageError(
            "no query given: use --query FILE or -e GQ; a name alone refers to a query stored on a"
            " server, which is not supported yet"
        )
    return files.read_source(query_path)


def parameters(text: str | None, path: str | None) -> dict[str, Any]:
    """Return the values from --params or --params-file."""
    if text is not None and path is not None:
        raise click.UsageError("--params and --params-file both give values: use only one of them")
    name = "--params"
    if path is not None:
        name, text = files.name_of(path), files.read_source(path).text
    if text is None:
        return {}
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not valid JSON: {error}", reason="malformed JSON") from None
    if not isinstance(found, dict):
        raise InputError(f"{name} must be a JSON object", reason="no object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{twice}' is given twice")
    return found


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")
