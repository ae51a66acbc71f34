"""The commands `omnigraph branch merge` and `omnigraph branch rename`."""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import MergeConflict

from . import show
from .address import GraphAddress, actor_option, announce_target, graph_arguments, resolve_target
from .changes import schema_change_members, schema_lines
from .conflicts import (
    TypedCommand,
    build_typed_command,
    conflict_options,
    describe_counts,
    exit_with_conflicts,
    lost_edge_documents,
    parse_strategies,
    preview_conflicts,
    print_lost_edges,
)
from .discarded_changes import discarded_change_documents, print_discarded_changes
from .engines import engine_arguments, engine_options
from .opening import open_graph
from .options import mark_as_write, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.api.merge_sessions import MergeResult


@click.command()
@click.option("--into", default="main", show_default=True, help="Branch to merge into")
@click.option("--delete-branch", is_flag=True, help="Delete SOURCE after the merge")
@click.option("--collapse-edges", is_flag=True, help="Keep only one edge if both branches added identical edges")
@conflict_options
@engine_options("if both branches together changed millions of rows")
@graph_arguments(source="SOURCE")
@actor_option
@shared_options
def merge(source: str, into: str, address: GraphAddress, **options: Any) -> None:
    """Merge branch SOURCE into another branch with a merge commit.

    SOURCE can also be a tag, a commit id or another revision, such as dev~1.

    Changes made on only one branch are merged without conflict. Different changes to the same value
    are conflicts: nothing is written, and the conflicts are shown with the values from both branches.
    Use --strategy to resolve conflicts. It affects only conflicting values, and discarded changes are
    listed.
    """
    root = resolve_target(address)
    strategies = options.pop("strategies")
    strategy = parse_strategies(strategies)
    actor, dry_run = options.pop("actor"), options["dry_run"]
    engine_choice = {option_name: options.pop(option_name) for option_name in ("engine", "master", "remote")}
    if not dry_run:
        announce_target("branch merge", root)
        mark_as_write()
    graph = open_graph(root, branch=into, actor=actor, read_only=dry_run)
    command_words = ("branch", "merge", source, *(("--into", into) if into != "main" else ()))
    explicit_engine = {option_name: value for option_name, value in engine_choice.items() if value != "auto"}
    typed_command = build_typed_command(command_words, address.typed_location, options | explicit_engine, strategies)
    try:
        merge_result = graph.merge(source, into, strategy=strategy, **options, **engine_arguments(**engine_choice))
    except MergeConflict as error:
        exit_with_conflicts(error, f"'{source}' cannot be merged into '{into}'", (into, source), typed_command)
        return
    _print_result(merge_result, source, into, graph.actor, typed_command)


def _print_result(
    merge_result: "MergeResult", source: str, into: str, actor: str | None, typed_command: TypedCommand
) -> None:
    if merge_result.branch_delete_error is not None:
        show.note(f"warning: '{source}' was merged, but not deleted: {merge_result.branch_delete_error}")
    if settings().json:
        show.document(_merge_document(merge_result, source, into, actor))
        return
    if merge_result.outcome == "already_up_to_date":
        show.confirmation(f"{into} already has all changes from {source}")
        _print_deletion(merge_result, source)
        return
    if merge_result.conflicts:
        failure = f"'{source}' cannot be merged into '{into}'"
        preview_conflicts(merge_result.conflicts, failure, (into, source), typed_command)
        return
    is_preview = merge_result.commit is None
    verb = "would merge" if is_preview else "merged"
    commit_note = "" if merge_result.commit is None else f"; commit {merge_result.commit.id}"
    show.confirmation(f"{verb} {source} into {into}: {describe_counts(merge_result)}{commit_note}", preview=is_preview)
    for line in schema_lines(merge_result.schema_change):
        show.confirmation(line, preview=is_preview)
    _print_deletion(merge_result, source)
    print_discarded_changes(merge_result, (into, source))
    for edge in merge_result.parallel_edges[:3]:
        type_name = edge.key.type_name
        show.note(f"both branches added the same {type_name} edge: '{edge.ours}' and '{edge.theirs}'")
    print_lost_edges(merge_result, (into, source))


def _print_deletion(merge_result: "MergeResult", source: str) -> None:
    if merge_result.branch_deleted:
        show.note(f"deleted branch {source}")


def _merge_document(merge_result: "MergeResult", source: str, into: str, actor: str | None) -> dict[str, Any]:
    from .commit import commit_document

    deletion = {"branch_deleted": merge_result.branch_deleted}
    if merge_result.branch_delete_error is not None:
        deletion |= {"branch_delete_error": merge_result.branch_delete_error}  # type: ignore[dict-item]
    return {
        "source": source,
        "target": into,
        "outcome": merge_result.outcome,
        "actor_id": actor,
        **deletion,
        **schema_change_members(merge_result.schema_change),
        "stats": merge_result.stats,
        "merge_conflicts": [conflict.to_json() for conflict in merge_result.conflicts],
        "discarded": discarded_change_documents(merge_result, (into, source)),
        "lost_edges": lost_edge_documents(merge_result, (into, source)),
        "commit": commit_document(merge_result.commit) if merge_result.commit is not None else None,
    }


@click.command()
@graph_arguments(name="NAME", new_name="NEW")
@actor_option
@shared_options
def rename(name: str, new_name: str, address: GraphAddress, actor: str | None) -> None:
    """Rename a branch. Readers and writers that are already using the branch are not affected."""
    root = resolve_target(address)
    announce_target("branch rename", root)
    graph = open_graph(root, actor=actor)
    renamed = graph.branches.rename(name, new_name)
    if settings().json:
        members = {"uri": root.uri, "from": name.strip(), "name": renamed.branch_name}
        show.document(members | {"actor_id": graph.actor})
    else:
        show.confirmation(f"renamed branch {name.strip()} to {renamed.branch_name}")
