"""`omnigraph copy`: copy a whole graph while it is in use."""

import click

from . import show
from .address import actor_option, announce_target, parse_storage_uri
from .options import settings, shared_options
from .progress import show_progress


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@click.option("--no-verify", is_flag=True, help="Copy damaged files as is")
@actor_option
@shared_options
def copy(source: str, target: str, no_progress: bool, no_verify: bool, actor: str | None) -> None:
    """Copy a graph with all branches and history to an empty location.

    The graph may be in use: each branch is copied as of a single point in time. An interrupted copy cannot
    be opened. Every file that has a recorded checksum is verified as it is copied.
    """
    source_root, target_root = parse_storage_uri(source), parse_storage_uri(target)
    announce_target("copy to", target_root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(source_root.uri, read_only=True, actor=actor)
    with show_progress("copy", hidden=no_progress) as progress_bar:
        copied = graph.maintenance.copy_to(target_root.uri, progress=progress_bar, verify=not no_verify)
    if settings().json:
        members = {"source": source_root.uri, "uri": target_root.uri, "branches": list(copied.branches)}
        counts = {"objects": copied.objects, "bytes": copied.bytes, "actor_id": graph.actor}
        show.document(members | counts)
    else:
        branch_count = show.count(len(copied.branches), "branch")
        show.confirmation(f"copied {branch_count}, {show.count(copied.objects, 'object')} to {target_root.uri}")
