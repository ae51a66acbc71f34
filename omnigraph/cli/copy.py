"""`omnigraph copy`: a whole graph to another place, while others write."""

import click

from . import show
from .address import actor_option, place, tell_target
from .options import settings, shared_options
from .progress import progress


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option("--no-progress", is_flag=True, help="Do not show how far it is.")
@click.option("--no-verify", is_flag=True, help="Copy damaged files as they are")
@actor_option
@shared_options
def copy(source: str, target: str, no_progress: bool, no_verify: bool, actor: str | None) -> None:
    """Copy a graph with all branches and all history to an empty place.

    The graph may be in use: each branch is copied as it was at one moment. A copy that was cut off
    cannot be opened. Every file that has a checksum is compared with it on the way.
    """
    origin, root = place(source), place(target)
    tell_target("copy to", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(origin.uri, read_only=True, actor=actor)
    with progress("copy", hidden=no_progress) as told:
        done = graph.maintenance.copy_to(root.uri, progress=told, verify=not no_verify)
    if settings().json:
        facts = {"source": origin.uri, "uri": root.uri, "branches": list(done.branches)}
        counted = {"objects": done.objects, "bytes": done.bytes, "actor_id": graph.actor}
        show.document(facts | counted)
    else:
        count = show.count(len(done.branches), "branch")
        show.result(f"copied {count}, {show.count(done.objects, 'object')} to {root.uri}")
