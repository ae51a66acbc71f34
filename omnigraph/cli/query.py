"""`omnigraph query`: run a read query and print its rows."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from .address import GraphAddress, open_snapshot, resolve_root
from .operator_config import load_config
from .options import settings, shared_options, snapshot_option
from .query_input import QueryInput, query_options

if TYPE_CHECKING:
    from omnigraph.api.results.formats import ResultFormat, TextStyle

_FORMATS = ("table", "kv", "csv", "jsonl", "json", "md")
_LINES_PER_WRITE = 1000  # lines per write
_MAX_COLUMN_WIDTH = 80


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
@click.option("--max-width", type=click.IntRange(min=8), help="Maximum column width  [default: 80]")
@click.option("--wrap/--no-wrap", default=None, help="Wrap long table cells instead of truncating them")
@click.option("--csv-null", default="null", show_default=True, help="Text for missing values in CSV")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Maximum run time in seconds")
@shared_options
def query(query_input: QueryInput, address: GraphAddress, **options: Any) -> None:
    """Run a read query and print its rows.

    The query comes from a file or from -e, which also accepts a bare `match { … } return { … }`.
    """
    root = resolve_root(address)
    graph = open_snapshot(root.uri, options["branch"], options["snapshot"])
    result = graph.query(
        query_input.source, name=query_input.query_name, params=query_input.params, timeout=options["timeout"]
    )
    print_lines(result.render(_choose_format(options["form"]), _choose_style(options)))


def _choose_format(explicit_format: str | None) -> "ResultFormat":
    """Return the format of --json, of --format or of the configuration, in this order."""
    if settings().json:
        return "json"
    return explicit_format or load_config().output or "table"  # type: ignore[return-value]


def _choose_style(options: dict[str, Any]) -> "TextStyle":
    from omnigraph.api.results.formats import TextStyle

    config = load_config()
    wrap = options["wrap"] if options["wrap"] is not None else config.table_cell_layout == "wrap"
    max_width = options["max_width"] or config.table_max_column_width or _MAX_COLUMN_WIDTH
    return TextStyle(max_width, "wrap" if wrap else "truncate", options["csv_null"])


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines, a thousand per write call."""
    remaining: Iterator[str] = iter(lines)
    while chunk := list(islice(remaining, _LINES_PER_WRITE)):
        click.echo("\n".join(chunk))
