"""`omnigraph explain`: how a query runs."""

import click

from . import show
from .address import address, store_option
from .asked import Asked, query_options
from .options import settings, shared_options


@click.command()
@query_options
@click.option("--branch", default="main", show_default=True, help="The branch.")
@click.option("--analyze", is_flag=True, help="Run it, and show real rows and times.")
@store_option
@shared_options
def explain(asked: Asked, store: str | None, branch: str, analyze: bool) -> None:
    """Show the operators of a read query with the rows that are expected of each."""
    root = address(None, store, way="--store")
    from omnigraph.graph import open as open_graph

    graph = open_graph(root.uri, branch=branch, read_only=True)
    found = graph.explain(asked.source, name=asked.name, params=asked.params, analyze=analyze)
    if settings().json:
        show.document(found.to_json())
    else:
        show.result(str(found))
