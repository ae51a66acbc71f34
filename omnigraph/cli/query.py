"""`omnigraph query`: run a read query and print its rows."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import click

from .address import open_snapshot, resolve_root, store_option
from .options import settings, shared_options, snapshot_option
from .query_input import QueryInput, query_options

_FORMATS = ("table", "kv", "csv", "jsonl", "json", "md")
_LINES_PER_WRITE = 1000  # number of lines per write


@click.command()
@query_options
@click.option("--branch", help="Branch to read; main unless a snapshot is given")
@snapshot_option
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="Output format; jsonl begins with a line of metadata  [default: table]",
)
@click.option("--max-width", type=click.IntRange(min=8), default=80, show_default=True, help="Maximum column width")
@click.option("--wrap", is_flag=True, help="Wrap long table cells instead of truncating them")
@click.option("--csv-null", default="null", show_default=True, help="Text for missing values in CSV")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Maximum run time in seconds")
@store_option
@shared_options
def query(query_input: QueryInput, store: str | None, **options: Any) -> None:
    """Run a read query and print its rows.

    The query comes from a file or from -e, which also accepts a bare `match { … } return { … }`.
    """
    root = resolve_root(None, store, argument_name="--store")
    from omnigraph.api.results.formats import ResultFormat, TextStyle

    graph = open_snapshot(root.uri, options["branch"], options["snapshot"])
    result = graph.query(
        query_input.source, name=query_input.query_name, params=query_input.params, timeout=options["timeout"]
    )
    form: ResultFormat = "json" if settings().json else options["form"] or "table"
    style = TextStyle(options["max_width"], "wrap" if options["wrap"] else "truncate", options["csv_null"])
    print_lines(result.render(form, style))


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines, a thousand per write call."""
    remaining: Iterator[str] = iter(lines)
    while chunk := list(islice(remaining, _LINES_PER_WRITE)):
        click.echo("\n".join(chunk))
