"""`omnigraph query`: run a read query and print its rows."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import click

from .address import address, shown_at, store_option
from .asked import Asked, query_options
from .options import settings, shared_options, snapshot_option

_FORMS = ("table", "kv", "csv", "jsonl", "json", "md")
_LINES = 1000  # lines per write


@click.command()
@query_options
@click.option("--branch", help="Branch; main unless a snapshot is given")
@snapshot_option
@click.option("--format", "form", type=click.Choice(_FORMS), help="Output format  [default: table]")
@click.option(
    "--max-width",
    type=click.IntRange(min=8),
    default=80,
    show_default=True,
    help="Maximum column width",
)
@click.option("--wrap", is_flag=True, help="Wrap long cells of a table instead of truncating them")
@click.option(
    "--csv-null", default="null", show_default=True, help="Text for missing values in CSV"
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), help="Maximum run time in seconds"
)
@store_option
@shared_options
def query(query_input: Asked, store: str | None, **how: Any) -> None:
    """Run a read query and print its rows.

    The query comes from a file or from -e, which also takes a bare `match { … } return { … }`.
    """
    root = address(None, store, way="--store")
    from omnigraph.formats import Form, Style

    graph = shown_at(root.uri, how["branch"], how["snapshot"])
    found = graph.query(
        query_input.source,
        name=query_input.name,
        params=query_input.params,
        timeout=how["timeout"],
    )
    form: Form = "json" if settings().json else how["form"] or "table"
    style = Style(how["max_width"], "wrap" if how["wrap"] else "truncate", how["csv_null"])
    print_lines(found.render(form, style))


def print_lines(lines: Iterable[str]) -> None:
    """Print many lines, a thousand per write."""
    waiting: Iterator[str] = iter(lines)
    while some := list(islice(waiting, _LINES)):
        click.echo("\n".join(some))
