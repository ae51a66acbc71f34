"""`omnigraph status`: show a graph's size and health, and recommend commands."""

import shlex
from typing import TYPE_CHECKING

import click

from . import show
from .address import GraphAddress, graph_arguments, resolve_target
from .opening import open_graph
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.maintenance.status_report import Status


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch to show")
@graph_arguments()
@shared_options
def status(address: GraphAddress, branch: str) -> None:
    """Show fragments, versions, size and index coverage for each table, and recommend commands."""
    root = resolve_target(address)
    graph_status = open_graph(root, branch=branch, read_only=True).maintenance.status()
    if settings().json:
        show.document({"uri": root.uri, **graph_status.to_json()})
        return
    _print_status(graph_status, root.uri)
    for warning in graph_status.warnings:
        show.result(f"warning: {warning}")


def _print_status(graph_status: "Status", uri: str) -> None:
    show.result(f"branch {graph_status.branch} at {graph_status.commit_id}")
    for dataset in graph_status.datasets:
        if dataset.error is not None:
            show.result(f"  {dataset.type_key}: {show.count(dataset.rows, 'row')}; {dataset.error}")
            continue
        facts = [show.count(dataset.rows, "row"), show.count(dataset.fragments, "fragment")]
        facts += [show.count(dataset.unindexed_rows, "unindexed row"), show.count(dataset.versions, "version")]
        show.result(f"  {dataset.type_key}: {', '.join(facts)}, {dataset.bytes:,} bytes")
    ref_counts = f"{show.count(graph_status.branches, 'branch')}, {show.count(graph_status.tags, 'tag')}"
    manifest_count = show.count(graph_status.manifest_versions, "manifest version")
    history_counts = f"{show.count(graph_status.commits, 'commit')}, {manifest_count}"
    operation_count = show.count(graph_status.intents, "unfinished operation")
    show.result(f"{ref_counts}; {history_counts}; {operation_count}")
    unreferenced = f"{graph_status.unreclaimed_bytes:,} of them not referenced by any branch"
    show.result(f"{graph_status.bytes:,} bytes, {unreferenced}")
    if graph_status.unreclaimed_bytes:
        command = f"`omnigraph cleanup {shlex.quote(uri)} --keep 10 --older-than 7d` shows how many"
        show.result(f"a cleanup can free up to {graph_status.unreclaimed_bytes:,} bytes of history: {command}")
    if graph_status.cache_directory is not None:
        show.result(f"cache: {graph_status.cache_bytes:,} bytes in {graph_status.cache_directory}")
