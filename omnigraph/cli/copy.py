"""`omnigraph copy`: copy a whole graph while it is in use."""

import click

from . import show
from .address import actor_option, place, tell_target
from .options import settings, shared_options
from .progress import progress


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@click.option("--no-verify", is_flag=True, help="Copy damaged files as they are")
@actor_option
@shared_options
def copy(source: str, target: str, no_progress: bool, no_verify: bool, actor: str | None) -> None:
    """Copy a graph with all branches and history to an empty location.

    The graph may be in use: each branch is copied at one point in time. An interrupted copy cannot
    be opened. Every file that has a recorded checksum is verified while it is copied.
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
