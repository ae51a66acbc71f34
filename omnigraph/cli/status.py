"""`omnigraph status`: the size and health of a graph, and what to run about it."""

from typing import TYPE_CHECKING

import click

from . import show
from .address import address, direct_only, store_option, uri_argument
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.health.status import Status


@click.command()
@uri_argument
@click.option("--branch", default="main", show_default=True, help="Branch to show")
@store_option
@direct_only
@shared_options
def status(uri: str | None, store: str | None, branch: str) -> None:
    """Show fragments, versions, bytes and index coverage, and the commands that help."""
    root = address(uri, store)
    from omnigraph.api.opening import open as open_graph

    found = open_graph(root.uri, branch=branch, read_only=True).maintenance.status()
    if settings().json:
        show.document({"uri": root.uri, **found.to_json()})
        return
    _show(found)
    for one in found.warnings:
        show.result(f"warning: {one}")


def _show(found: "Status") -> None:
    show.result(f"branch {found.branch} at {found.commit_id}")
    for one in found.datasets:
        if one.error is not None:
            show.result(f"  {one.type_key}: {show.count(one.rows, 'row')}; {one.error}")
            continue
        parts = [show.count(one.rows, "row"), show.count(one.fragments, "fragment")]
        parts += [f"{one.unindexed_rows} without an index", show.count(one.versions, "version")]
        show.result(f"  {one.type_key}: {', '.join(parts)}, {one.bytes:,} bytes")
    names = f"{show.count(found.branches, 'branch')}, {show.count(found.tags, 'tag')}"
    states = f"{show.count(found.manifest_versions, 'manifest version')}"
    log = f"{show.count(found.commits, 'commit')}, {states}"
    show.result(f"{names}; {log}; {show.count(found.intents, 'unfinished operation')}")
    shown = f"{found.unreclaimed_bytes:,} of them not referenced by any branch"
    show.result(f"{found.bytes:,} bytes, {shown}")
    if found.cache_directory is not None:
        show.result(f"cache: {found.cache_bytes:,} bytes in {found.cache_directory}")
