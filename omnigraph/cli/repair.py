"""`omnigraph repair`: what other programs did to the tables of a graph, and what is damaged."""

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
@click.option("--branch", default="main", show_default=True, help="The branch.")
@click.option("--confirm", is_flag=True, help="Do it; without this nothing is written.")
@click.option("--force", is_flag=True, help="Take rows over that were appended; needs --confirm.")
@click.option(
    "--restore", metavar="ULID", help="Restore the branch or tag of this manifest; others wait"
)
@click.option("--name", metavar="NAME", help="The name to restore it under, if not known or taken")
@click.option("--tag", is_flag=True, help="Restore it as a tag")
@click.option(
    "--drop", metavar="ULID|NAME", help="Delete a branch or tag that lost its name; others wait"
)
@click.option(
    "--commit", metavar="ID", help="Publish a commit again that check names as perhaps lost"
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
    """Tell what other programs committed to tables; no branch shows it.

    Branches and tags whose ref objects are lost get their names back with --confirm. One whose name
    is not known is named with --restore and --name, or deleted with --drop. Newest versions of a
    branch that were published and are missing are published again, if there is proof of them.

    Rows that they appended can be taken over with --force --confirm, if they obey all rules of the
    schema. Compaction and indexes have no effect on a graph. Anything else is refused, and exits 1
    when --confirm was given. Files that are missing are named, with the newest commit of each
    branch that can be read.
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
    """Repair a branch; of one that cannot be opened only the damage is told."""
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
        show.note("nothing was written; rows that were appended: --force --confirm")
    if done.preview and (done.names or done.versions):
        show.note("nothing was written; add --confirm to do this")
