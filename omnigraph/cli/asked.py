"""Which query a command is about, and the values of its parameters.

Owns the flags that `query`, `mutate` and `explain` share: where the text comes from, `--params`.
Everything is read and refused before a graph is opened.
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
        help="A query file (.gq); NAME chooses when it holds several.",
    ),
    click.option("-e", "--query-string", "text", metavar="GQ", help="The query itself."),
    click.option("--params", metavar="JSON", help="The parameters, as one JSON object."),
    click.option(
        "--params-file",
        metavar="PATH",
        type=click.Path(allow_dash=True),
        help="A file with the parameters.",
    ),
)


@record
class Asked:
    """A query text, the name that chooses in it, and the values of its parameters."""

    name: str | None
    source: Source
    params: dict[str, Any]


def query_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command NAME, --query, -e, --params and --params-file, read into one `asked`."""

    @wraps(command)
    def read(name: str | None, query_path: str | None, text: str | None, **more: Any) -> None:
        given = more.pop("params"), more.pop("params_file")
        command(asked=Asked(name, query_source(query_path, text), parameters(*given)), **more)

    for option in reversed(_OPTIONS):
        read = option(read)
    return read


def query_source(query_path: str | None, text: str | None) -> Source:
    """The text of the query that was named; exactly one way may be used."""
    if query_path is not None and text is not None:
        raise click.UsageError("--query and -e both give a query: give one of them")
    if text is not None:
        if not text.strip():
            raise click.UsageError("-e is empty: give a query")
        return Source("-e", text)
    if query_path is None:
        raise click.UsageError(
            "no query is given: use --query FILE or -e GQ; a name alone means a query that is"
            " stored on a server, which is not built yet"
        )
    return files.read_source(query_path)


def parameters(text: str | None, path: str | None) -> dict[str, Any]:
    """The values that --params or --params-file give."""
    if text is not None and path is not None:
        raise click.UsageError("--params and --params-file both give values: give one of them")
    name = "--params"
    if path is not None:
        name, text = files.name_of(path), files.read_source(path).text
    if text is None:
        return {}
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no JSON: {error}", reason="malformed JSON") from None
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
    raise ValueError(f"{word} is no JSON number")
