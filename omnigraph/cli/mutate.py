"""`omnigraph mutate`: change a graph with a query, as one commit."""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import PreconditionFailed

from . import exits, show
from .address import GraphAddress, actor_option, announce_target, external_blobs_option, resolve_target
from .opening import open_graph
from .options import idempotency_key_option, mark_as_write, settings, shared_options
from .query_input import QueryInput, query_options

if TYPE_CHECKING:
    from omnigraph.api.results.receipt import Receipt


@click.command()
@query_options
@click.option("--branch", default="main", show_default=True, help="Branch to change")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@idempotency_key_option
@external_blobs_option
@actor_option
@shared_options
def mutate(query_input: QueryInput, address: GraphAddress, actor: str | None, branch: str, **options: Any) -> None:
    """Run a mutation (insert, update or delete) atomically.

    Exits with code 4 if --if-commit names a commit that is no longer the head of the branch.
    """
    root = resolve_target(address)
    announce_target("mutate", root)
    mark_as_write()
    graph = open_graph(root, branch=branch, actor=actor, external_blobs=options.pop("external_blobs") or None)
    try:
        receipt = graph.mutate(query_input.source, name=query_input.query_name, params=query_input.params, **options)
    except PreconditionFailed as error:
        if not settings().json:
            raise
        show.document(error.to_json())
        click.get_current_context().exit(exits.error_exit_code(error))
    _print_receipt(receipt, graph.actor)
    show.warnings(graph.warnings)


def _print_receipt(receipt: "Receipt", actor: str | None) -> None:
    if settings().json:
        show.document(change_document(receipt, actor))
        return
    from omnigraph.api.query_labels import describe_origin

    node_count = show.count(receipt.affected_nodes, "node")
    edge_count = show.count(receipt.affected_edges, "edge")
    actor_note = f" as {actor}" if actor else ""
    origin = describe_origin(receipt.query_name)
    show.confirmation(f"changed {receipt.branch}{origin}: {node_count}, {edge_count}{actor_note}")


def change_document(receipt: "Receipt", actor: str | None) -> dict[str, Any]:
    """Return a change as JSON-compatible data; `commit` is null if nothing was written."""
    from .commit import commit_document

    return {
        "branch": receipt.branch,
        "query_name": receipt.query_name,
        "affected_nodes": receipt.affected_nodes,
        "affected_edges": receipt.affected_edges,
        "actor_id": actor,
        **({"ids": {type_name: list(ids) for type_name, ids in sorted(receipt.ids.items())}} if receipt.ids else {}),
        "commit": commit_document(receipt.commit) if receipt.commit is not None else None,
    }
