"""`omnigraph optimize` and `omnigraph ensure-indices`: maintenance that does not change content."""

from typing import Any

import click

from . import exits, show
from .address import GraphAddress, announce_target, current_branch, graph_arguments, resolve_target
from .engines import engine_arguments, engine_options
from .opening import open_graph
from .options import settings, shared_options

_branch_option = click.option("--branch", metavar="NAME", help="Branch to maintain  [default: main]")


@click.command()
@click.option("--type", "types", multiple=True, metavar="T", help="Optimize only this type; may be repeated")
@click.option(
    "--max-seconds", type=click.FloatRange(min=0, min_open=True), help="Start no further work after this many seconds"
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Start no further work after reading this many bytes")
@engine_options("for workloads of 1 GiB or more")
@_branch_option
@graph_arguments()
@shared_options
def optimize(
    address: GraphAddress,
    types: tuple[str, ...],
    branch: str | None,
    max_seconds: float | None,
    max_bytes: int | None,
    **engine_choice: Any,
) -> None:
    """Compact small table fragments, and update indexes to cover all rows.

    The data does not change, and reads and writes can continue. Small writes already do most of this
    work; run this command after large loads and deletes. With --max-seconds or --max-bytes, the next run
    continues with what remains.
    """
    root = resolve_target(address)
    announce_target("optimize", root)
    graph = open_graph(root, branch=branch or current_branch(root.uri))
    limits: dict[str, Any] = {"max_seconds": max_seconds, "max_bytes": max_bytes}
    report = graph.maintenance.optimize(types=types or None, **limits, **engine_arguments(**engine_choice))
    if settings().json:
        dataset_documents = [dataset.to_json() for dataset in report.datasets]
        show.document({"uri": root.uri, "engine": report.engine, "datasets": dataset_documents})
        _exit_if_damaged(report)
        return
    for dataset in report.datasets:
        (show.result if dataset.error else show.confirmation)(_describe_dataset(dataset))
        for property_name, reason in dataset.pending_indexes:
            show.note(f"{dataset.type_key}: the index on '{property_name}' is pending: {reason}")
    if report.remaining:
        remaining_bytes = show.count(sum(report.remaining.values()), "byte")
        show.note(f"the limit was reached; {remaining_bytes} remain in {', '.join(report.remaining)}")
    elif not report and not report.damaged:
        show.note("nothing to do")
    if report.engine != "local":
        show.note(f"ran on {report.engine}")
    _exit_if_damaged(report)


def _exit_if_damaged(report: Any) -> None:
    """Exit with an error code if a table is damaged, even if maintenance of the other tables succeeded."""
    if report.damaged:
        show.note("run `omnigraph check` to list the missing or damaged files")
        raise click.exceptions.Exit(exits.FAILED)


def _describe_dataset(dataset: Any) -> str:
    if dataset.error is not None:
        return f"{dataset.type_key}: {dataset.error}"
    if not dataset.committed:
        return f"{dataset.type_key}: {'postponed' if dataset.remaining_bytes else 'nothing to do'}"
    if not dataset.fragments_removed:
        return f"{dataset.type_key}: indexes now cover all rows"
    removed_fragments = show.count(dataset.fragments_removed, "fragment")
    if dataset.fragments_removed == dataset.fragments_added:
        return f"{dataset.type_key}: {removed_fragments} rewritten to remove deleted rows"
    return f"{dataset.type_key}: {removed_fragments} compacted into {dataset.fragments_added}"


@click.command("ensure-indices")
@click.option("--rebuild", is_flag=True, help="Also rebuild existing indexes, which repairs damaged indexes")
@click.option(
    "--index",
    "names",
    multiple=True,
    metavar="TYPE[.COLUMN]",
    help="Replace only these indexes (only with --rebuild); may be repeated",
)
@engine_options("for workloads of 1 GiB or more")
@_branch_option
@graph_arguments()
@shared_options
def ensure_indices(
    address: GraphAddress, branch: str | None, rebuild: bool, names: tuple[str, ...], **engine_choice: Any
) -> None:
    """Build the indexes that the schema declares, so that they cover all rows."""
    if names and not rebuild:
        raise click.UsageError("--index requires --rebuild")
    root = resolve_target(address)
    announce_target("ensure-indices", root)
    graph = open_graph(root, branch=branch or current_branch(root.uri))
    report = graph.maintenance.ensure_indices(rebuild=names or rebuild, **engine_arguments(**engine_choice))
    pending_indexes = graph.maintenance.pending_indices()
    if settings().json:
        pending_documents = [
            {"type_key": type_key, "property": property_name, "reason": reason}
            for type_key, property_name, reason in pending_indexes
        ]
        built_documents = [
            {"type_key": type_key, "indexes": list(property_names)}
            for type_key, property_names in report.indexes.items()
        ]
        members = {"commit_id": report.commit_id, "datasets": built_documents, "pending_indexes": pending_documents}
        show.document({"uri": root.uri, **members})
        return
    for type_key, property_names in report.indexes.items():
        noun = "index on" if len(property_names) == 1 else "indexes on"
        show.confirmation(f"{type_key}: built the {noun} {', '.join(property_names)}")
    show.confirmation(f"commit {report.commit_id}" if report else "indexes already cover all rows")
    for type_key, property_name, reason in pending_indexes:
        show.note(f"{type_key}: the index on '{property_name}' is pending: {reason}")
