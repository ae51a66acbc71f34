"""`omnigraph mutate`: change a graph with a query, as one commit."""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import PreconditionFailed

from . import exits, show
from .address import actor_option, address, store_option, tell_target
from .asked import Asked, query_options
from .options import settings, shared_options, will_write

if TYPE_CHECKING:
    from omnigraph.receipt import Receipt


@click.command()
@query_options
@click.option("--branch", default="main", show_default=True, help="Branch to change")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@click.option(
    "--idempotency-key", metavar="KEY", help="Key that makes a repeated mutation do nothing"
)
@store_option
@actor_option
@shared_options
def mutate(
    query_input: Asked, store: str | None, actor: str | None, branch: str, **how: Any
) -> None:
    """Run a mutation: insert, update or delete, atomically.

    Exits 4 if --if-commit names a commit that is no longer the head of the branch.
    """
    root = address(None, store, way="--store")
    tell_target("mutate", root)
    will_write()
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch, actor=actor)
    try:
        done = graph.mutate(
            query_input.source, name=query_input.name, params=query_input.params, **how
        )
    except PreconditionFailed as error:
        if not settings().json:
            raise
        show.document(error.to_json())
        click.get_current_context().exit(exits.code_of(error))
    _tell(done, graph.actor)
    show.warnings(graph.warnings)


def _tell(done: "Receipt", actor: str | None) -> None:
    if settings().json:
        show.document(change_document(done, actor))
        return
    nodes = show.count(done.affected_nodes, "node")
    edges = show.count(done.affected_edges, "edge")
    by = f" as {actor}" if actor else ""
    show.result(f"changed {done.branch} via {done.query_name}: {nodes}, {edges}{by}")


def change_document(done: "Receipt", actor: str | None) -> dict[str, Any]:
    """Return a change as JSON-compatible data; `commit` is null if nothing was written."""
    from .commit import document

    return {
        "branch": done.branch,
        "query_name": done.query_name,
        "affected_nodes": done.affected_nodes,
        "affected_edges": done.affected_edges,
        "actor_id": actor,
        "commit": document(done.commit) if done.commit is not None else None,
    }
