"""`omnigraph explain`: how a query runs."""

import click

from . import show
from .address import address, shown_at, store_option
from .asked import Asked, query_options
from .options import settings, shared_options, snapshot_option


@click.command()
@query_options
@click.option("--branch", help="The branch; main unless a snapshot is given.")
@snapshot_option
@click.option("--analyze", is_flag=True, help="Run it, and show real rows and times.")
@store_option
@shared_options
def explain(
    asked: Asked, store: str | None, branch: str | None, snapshot: str | None, analyze: bool
) -> None:
    """Show the operators of a read query with the rows that are expected of each."""
    root = address(None, store, way="--store")
    graph = shown_at(root.uri, branch, snapshot)
    found = graph.explain(asked.source, name=asked.name, params=asked.params, analyze=analyze)
    if settings().json:
        show.document(found.to_json())
    else:
        show.result(str(found))
