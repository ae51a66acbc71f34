"""`omnigraph query`: rows of a graph, in the form that was asked for."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import click

from .address import address, shown_at, store_option
from .asked import Asked, query_options
from .options import settings, shared_options, snapshot_option

_FORMS = ("table", "kv", "csv", "jsonl", "json", "md")
_LINES = 1000  # written at once


@click.command()
@query_options
@click.option("--branch", help="The branch; main unless a snapshot is given.")
@snapshot_option
@click.option("--format", "form", type=click.Choice(_FORMS), help="How rows are printed.")
@click.option("--max-width", type=click.IntRange(min=8), default=80, help="Of a table's columns.")
@click.option("--wrap", is_flag=True, help="Wrap long cells of a table instead of cutting them.")
@click.option("--csv-null", default="null", help="What stands for a missing value in CSV.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds, at most.")
@store_option
@shared_options
def query(asked: Asked, store: str | None, **how: Any) -> None:
    """Run a read query and print its rows.

    The query comes from a file or from -e, also as a bare `match { … } return { … }`.
    """
    root = address(None, store, way="--store")
    from omnigraph.formats import Form, Style

    graph = shown_at(root.uri, how["branch"], how["snapshot"])
    found = graph.query(asked.source, name=asked.name, params=asked.params, timeout=how["timeout"])
    form: Form = "json" if settings().json else how["form"] or "table"
    style = Style(how["max_width"], "wrap" if how["wrap"] else "truncate", how["csv_null"])
    print_lines(found.render(form, style))


def print_lines(lines: Iterable[str]) -> None:
    """Print many lines, a thousand at a time."""
    waiting: Iterator[str] = iter(lines)
    while some := list(islice(waiting, _LINES)):
        click.echo("\n".join(some))
