"""`omnigraph upgrade`: convert a graph to this release's storage format."""

from typing import TYPE_CHECKING

import click

from . import show
from .address import GraphAddress, announce_target, graph_arguments, resolve_root
from .options import mark_as_write, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.maintenance.upgrade import UpgradeReport


@click.command()
@click.option("--dry-run", is_flag=True, help="Show the storage format and what would be upgraded")
@graph_arguments(direct=True)
@shared_options
def upgrade(address: GraphAddress, dry_run: bool) -> None:
    """Upgrade a graph in place to the storage format of this release.

    All data, branches, tags and history are kept. Stop all writers first: the release that wrote the
    graph cannot open it afterward. To resume an interrupted upgrade, run the command again.
    """
    root = resolve_root(address)
    if not dry_run:
        announce_target("upgrade", root)
        mark_as_write()
    from omnigraph.api.format_upgrade import upgrade as upgrade_format

    report = upgrade_format(root.uri, dry_run=dry_run)
    if settings().json:
        show.document({"uri": root.uri, **report.to_json()})
        return
    if report.outcome == "current":
        show.confirmation(f"storage format {report.storage_format} is already current; nothing to do")
        return
    action = "would upgrade" if report.outcome == "preview" else "upgraded"
    formats = f"from storage format {report.storage_format} to {report.supported_format}"
    is_preview = report.outcome == "preview"
    show.confirmation(f"{action} {formats}: {_describe_manifests(report)}", preview=is_preview)
    for step in report.steps:
        show.confirmation(step, preview=is_preview)


def _describe_manifests(report: "UpgradeReport") -> str:
    """Describe what is upgraded, as in `main, 2 branches and 1 tag`."""
    from omnigraph.maintenance.upgrade import count_names

    counts = [show.count(number, noun) for number, noun in count_names(report) if number]
    names = ["main", *counts] if any(manifest.label == "main" for manifest in report.manifests) else counts
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
