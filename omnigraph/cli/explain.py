"""`omnigraph explain`: show the plan for a query."""

import click

from . import show
from .address import GraphAddress, open_snapshot, resolve_target
from .options import settings, shared_options, snapshot_option
from .query_input import QueryInput, query_options


@click.command()
@query_options
@click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given")
@snapshot_option
@click.option("--analyze", is_flag=True, help="Run the query and show actual row counts and times")
@shared_options
def explain(
    query_input: QueryInput, address: GraphAddress, branch: str | None, snapshot: str | None, analyze: bool
) -> None:
    """Show the plan for a read query with estimated row counts."""
    root = resolve_target(address)
    graph = open_snapshot(root, branch, snapshot)
    explanation = graph.explain(
        query_input.source, name=query_input.query_name, params=query_input.params, analyze=analyze
    )
    if settings().json:
        show.document(explanation.to_json())
    else:
        show.result(str(explanation))
