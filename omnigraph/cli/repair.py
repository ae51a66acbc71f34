"""`omnigraph repair`: changes made by external writers, lost names and versions, damage."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import (
    address,
    consent,
    direct_only,
    store_option,
    tell_target,
    uri_argument,
    yes_option,
)
from .options import settings, shared_options, will_write

if TYPE_CHECKING:
    from omnigraph.health.repair_report import Repair
    from omnigraph.storage.root import Root


@click.command()
@uri_argument
@click.option("--branch", default="main", show_default=True, help="Branch to repair")
@click.option("--confirm", is_flag=True, help="Repair; the default is a preview")
@click.option("--force", is_flag=True, help="Adopt appended rows; needs --confirm")
@click.option("--restore", metavar="ULID", help="Restore only the branch or tag of this manifest")
@click.option("--name", metavar="NAME", help="With --restore: name to use, if unknown or taken")
@click.option("--tag", is_flag=True, help="With --restore: restore it as a tag")
@click.option(
    "--drop", metavar="ULID|NAME", help="Delete only this branch or tag that lost its name"
)
@click.option(
    "--commit", metavar="ID", help="Publish again a commit that check lists as possibly lost"
)
@yes_option
@store_option
@direct_only
@shared_options
def repair(
    uri: str | None,
    store: str | None,
    branch: str,
    confirm: bool,
    force: bool,
    yes: bool,
    **how: Any,
) -> None:
    """Report or adopt changes made by external writers; restore lost names and versions.

    With --confirm, branches and tags whose ref objects are lost get their names back. If a name is
    unknown, set it with --restore and --name, or delete the branch with --drop. Published versions
    of a branch that are missing are published again if there is proof of them.

    Rows that external writers appended are adopted with --force --confirm if they obey all rules of
    the schema. Their compactions and indexes have no effect on the graph. Anything else is refused;
    with --confirm the exit code is then 1. Missing files are listed, with the newest readable
    commit of each branch.
    """
    root = address(uri, store)
    if force and not confirm:
        raise click.UsageError("--force needs --confirm: look at the preview first")
    if confirm:
        consent("repair", root, yes=yes)
        will_write()
    tell_target("repair" if confirm else "preview of repair", root)
    done = _run(root, branch, confirm, force, how)
    if settings().json:
        show.document({"uri": root.uri, **done.to_json()})
    else:
        _show(done)
    if done.damage or (confirm and (done.refused or done.not_restored)):
        raise click.exceptions.Exit(exits.FAILED)


def _run(root: "Root", branch: str, confirm: bool, force: bool, how: dict[str, Any]) -> "Repair":
    """Repair a branch; if it cannot be opened, only report damage or restore its manifest."""
    from omnigraph.api.opening import open as open_graph
    from omnigraph.errors import GraphNotInitialized, StorageError
    from omnigraph.health.repair import repair_graph, repair_manifests
    from omnigraph.health.restore_names import NameChoice
    from omnigraph.storage.effects import Effects
    from omnigraph.storage.store import open_store

    try:
        graph = open_graph(root.uri, branch=branch, read_only=not confirm)
    except (StorageError, GraphNotInitialized):
        opened = open_store(root.uri, effects=Effects(read_only=not confirm))
        if not confirm:
            commit = how.pop("commit")
            return repair_graph(opened, None, choice=NameChoice(**how), accept=commit)
        restored = repair_manifests(opened, confirm=True)
        if not any(one.action == "restored" for one in restored):
            raise
        done = open_graph(root.uri, branch=branch).maintenance.repair(
            confirm=True, force=force, **how
        )
        return replace(done, versions=(*restored, *done.versions))
    return graph.maintenance.repair(confirm=confirm, force=force, **how)


def _show(done: "Repair") -> None:
    for one in done.datasets:
        did = f"{one.type_key}: {one.classification}, {one.action}"
        what = f" ({', '.join(one.operations)})" if one.operations else ""
        why = f": {one.error}" if one.error else f": {one.skipped}" if one.skipped else ""
        show.result(f"{did}{what}{why}")
    for row in (*done.names, *done.versions):
        show.result(str(row))
    for found in done.damage:
        show.result(str(found))
    if done.damage:
        for name, commit in (done.readable or {}).items():
            show.result(f"newest readable commit of {name}: {commit or 'none'}")
    if done.commit_id is not None:
        show.result(f"commit {done.commit_id}, version {done.manifest_version}")
    if done.preview and any(one.action == "preview" for one in done.datasets):
        show.note("nothing was written; pass --force --confirm to adopt appended rows")
    if done.preview and (done.names or done.versions):
        show.note("nothing was written; pass --confirm to repair")
