"""`omnigraph repair`: handle changes made by external writers, lost names and versions, and damage."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import GraphAddress, announce_target, graph_arguments, require_consent, resolve_target, yes_option
from .opening import open_graph
from .options import mark_as_write, settings, shared_options
from .server_target import ServerTarget

if TYPE_CHECKING:
    from omnigraph.maintenance.repair_report import Repair
    from omnigraph.storage.root import GraphRoot


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch to repair")
@click.option("--confirm", is_flag=True, help="Repair the graph; the default is a preview")
@click.option("--force", is_flag=True, help="Adopt rows that external writers appended; requires --confirm")
@click.option("--restore", metavar="ULID", help="Restore only the branch or tag whose manifest has this ULID")
@click.option("--name", metavar="NAME", help="Name for the restored branch or tag, if its old name is unknown or taken")
@click.option("--tag", is_flag=True, help="Restore as a tag instead of a branch (only with --restore)")
@click.option("--drop", metavar="ULID|NAME", help="Delete only this branch or tag, whose name was lost")
@click.option("--commit", metavar="ID", help="Republish a commit that `omnigraph check` reports as possibly lost")
@yes_option
@graph_arguments()
@shared_options
def repair(address: GraphAddress, branch: str, confirm: bool, force: bool, yes: bool, **options: Any) -> None:
    """Report or adopt changes made by external writers; restore lost names and versions.

    With --confirm, the names of branches and tags whose ref objects are lost are restored. If a name is unknown, set it
    with --restore and --name, or delete the branch with --drop. Missing versions of a branch are published again if
    there is proof that they were published before.

    Rows that external writers appended are adopted with --force --confirm if they satisfy all rules
    of the schema. Compactions and indexes made by external writers have no effect on the graph. All
    other external changes are rejected; with --confirm, the exit code is then 1. Missing
    files are listed together with the newest readable commit on each branch.
    """
    root = resolve_target(address)
    if force and not confirm:
        raise click.UsageError("--force requires --confirm: review the preview first")
    if confirm:
        require_consent("repair", root, yes=yes)
        mark_as_write()
    announce_target("repair" if confirm else "repair preview", root)
    report = _repair_branch(root, branch, confirm, force, options)
    if settings().json:
        show.document({"uri": root.uri, **report.to_json()})
    else:
        _print_report(report)
    if report.damage or (confirm and (report.refused or report.not_restored)):
        raise click.exceptions.Exit(exits.FAILED)


def _repair_branch(
    root: "GraphRoot | ServerTarget", branch: str, confirm: bool, force: bool, options: dict[str, Any]
) -> "Repair":
    if isinstance(root, ServerTarget):
        graph = open_graph(root, branch=branch, read_only=not confirm)
        return graph.maintenance.repair(confirm=confirm, force=force, **options)
    return _repair_files(root, branch, confirm, force, options)


def _repair_files(root: "GraphRoot", branch: str, confirm: bool, force: bool, options: dict[str, Any]) -> "Repair":
    """Repair a branch; if it cannot be opened, only report damage or restore its manifest."""
    from omnigraph.errors import GraphNotInitialized, StorageError
    from omnigraph.maintenance.repair import repair_graph, repair_manifests
    from omnigraph.maintenance.restore_names import NameChoice
    from omnigraph.storage.effects import Effects
    from omnigraph.storage.store import open_store

    try:
        graph = open_graph(root, branch=branch, read_only=not confirm)
    except (StorageError, GraphNotInitialized):
        opened_store = open_store(root.uri, effects=Effects(read_only=not confirm))
        if not confirm:
            commit = options.pop("commit")
            return repair_graph(opened_store, None, name_choice=NameChoice(**options), acknowledged_commit=commit)
        version_repairs = repair_manifests(opened_store, confirm=True)
        if not any(version_repair.action == "restored" for version_repair in version_repairs):
            raise
        report = open_graph(root, branch=branch).maintenance.repair(confirm=True, force=force, **options)
        return replace(report, versions=(*version_repairs, *report.versions))
    return graph.maintenance.repair(confirm=confirm, force=force, **options)


def _print_report(report: "Repair") -> None:
    for dataset in report.datasets:
        headline = f"{dataset.type_key}: {dataset.classification}, {dataset.action}"
        operations = f" ({', '.join(dataset.operations)})" if dataset.operations else ""
        explanation = f": {dataset.error}" if dataset.error else f": {dataset.skipped}" if dataset.skipped else ""
        show.result(f"{headline}{operations}{explanation}")
    for repair_row in (*report.names, *report.versions):
        show.result(str(repair_row))
    for finding in report.damage:
        show.result(str(finding))
    if report.damage:
        for branch_label, commit in (report.readable or {}).items():
            show.result(f"newest readable commit on {branch_label}: {commit or 'none'}")
    if report.commit_id is not None:
        show.result(f"commit {report.commit_id}, version {report.manifest_version}")
    if report.preview and any(dataset.action == "preview" for dataset in report.datasets):
        show.note("nothing was written; pass --force --confirm to adopt appended rows")
    if report.preview and (report.names or report.versions):
        show.note("nothing was written; pass --confirm to repair")
