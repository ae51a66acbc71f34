"""`omnigraph cleanup`: remove unneeded history, or preview the removal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import GraphAddress, announce_target, graph_arguments, require_consent, resolve_target, yes_option
from .engines import engine_arguments, engine_options
from .opening import open_graph
from .options import settings, shared_options
from .progress import show_progress

if TYPE_CHECKING:
    from omnigraph.maintenance.retention.report import Cleanup

_ADVICE = "use --keep N, --older-than D, or both; --keep 10 is a good starting point"
_DURATION_METAVAR = "D"
_MAX_HOLDERS_SHOWN = 5  # maximum number of tags and operations that are listed because they retain history


@click.command()
@click.option("--keep", type=int, metavar="N", help="Keep the newest N commits on every branch")
@click.option(
    "--older-than", metavar=_DURATION_METAVAR, help="Keep commits newer than this age, such as 30m, 12h, 7d or 2w"
)
@click.option("--confirm", is_flag=True, help="Apply the cleanup; without this flag, only show what would be removed")
@click.option(
    "--grace",
    metavar=_DURATION_METAVAR,
    help="Keep files that were in use within this period, because running reads may still need them  [default: 60m]",
)
@click.option("--erase", is_flag=True, help="Rewrite files that contain deleted rows before removing history")
@click.option("--purge-dropped", is_flag=True, help="Also remove tables that no remaining commit references")
@engine_options("for 100,000 files or more")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@graph_arguments()
@yes_option
@shared_options
def cleanup(address: GraphAddress, no_progress: bool, yes: bool, **options: Any) -> None:
    """Remove old history, but keep the newest N commits on each branch and all recent commits.

    Everything that branches, tags, merge bases and running operations need is kept. Reads and
    writes can continue during a cleanup. Without --confirm, nothing is removed.
    """
    root = resolve_target(address)
    if options["keep"] is None and options["older_than"] is None:
        raise click.UsageError(f"cleanup requires a retention policy: {_ADVICE}")
    if options["confirm"]:
        require_consent("cleanup", root, yes=yes)
    announce_target("cleanup" if options["confirm"] else "cleanup preview", root)
    engine_choice = engine_arguments(options.pop("engine"), options.pop("master"), options.pop("remote"))
    graph = open_graph(root, read_only=not options["confirm"])
    with show_progress("cleanup", hidden=no_progress or not options["confirm"]) as progress_bar:
        report = graph.maintenance.cleanup(progress=progress_bar, **options, **engine_choice)
    if settings().json:
        show.document(_policy_members(root.uri, options) | report.to_json())
    else:
        _print_report(report, options)
    if report.failed:
        raise click.exceptions.Exit(exits.FAILED)


def _policy_members(uri: str, options: dict[str, Any]) -> dict[str, Any]:
    from omnigraph.maintenance.retention.policy import parse_duration

    older_than = options["older_than"]
    seconds = int(parse_duration(older_than).total_seconds()) if older_than is not None else None
    return {"uri": uri, "keep_versions": options["keep"], "older_than_secs": seconds}


def _print_report(report: "Cleanup", options: dict[str, Any]) -> None:
    for dataset in report.datasets:
        versions = show.count(dataset.old_versions_removed, "old version")
        description = f"{dataset.type_key}: {versions}, {dataset.bytes_removed:,} bytes"
        if dataset.error:
            show.result(f"{description}; {dataset.error}")
        else:
            show.confirmation(description, preview=report.preview)
    for table_path in report.unreferenced_paths:
        show.confirmation(f"{table_path}: this table is no longer referenced", preview=report.preview)
    verb = "would remove" if report.preview else "removed"
    kept_commits = show.count(report.commits_kept, "commit")
    show.confirmation(f"{verb} {report.bytes_removed:,} bytes; kept {kept_commits}", preview=report.preview)
    for note in _report_notes(report, options):
        show.note(note)


def _report_notes(report: "Cleanup", options: dict[str, Any]) -> Iterator[str]:
    grace = options["grace"] or "60m"
    if report.unreferenced_paths and not (options["purge_dropped"] or options["erase"]):
        yield (
            f"{report.unreferenced_bytes:,} bytes of unreferenced tables are kept: use --purge-dropped to remove them"
        )
    if report.spared_files:
        yield _describe_spared(report, grace)
    for unnamed_ref in report.unnamed:
        subject = f"{unnamed_ref['kind'] or 'branch or tag'} {unnamed_ref['name'] or ''}".strip()
        yield (
            f"{subject} ({unnamed_ref['manifest']}) is missing its ref object, but the data is kept;"
            " run `omnigraph repair` to restore the name"
        )
    if report.held_by:
        holders = ", ".join(report.held_by[:_MAX_HOLDERS_SHOWN]) + (
            ", …" if len(report.held_by) > _MAX_HOLDERS_SHOWN else ""
        )
        yield f"also kept data needed by {holders}"
    if report.deleted_rows is not None:
        yield _describe_erasure(report.deleted_rows, options)
    if report.engine != "local":
        yield f"ran on {report.engine}"
    if report.preview:
        yield "nothing was removed; pass --confirm to remove the history"


def _describe_spared(report: "Cleanup", grace: str) -> str:
    outcome = "nothing to remove" if report.preview else "nothing removed"
    spared_files = show.count(report.spared_files, "file")
    verb = "is" if report.spared_files == 1 else "are"
    return (
        f"{outcome}: {spared_files} ({report.spared_bytes:,} bytes) {verb} still within the grace"
        f" period of {grace} and may be in use by readers; use --grace 0s to ignore the grace period"
    )


def _describe_erasure(deleted_count: int, options: dict[str, Any]) -> str:
    deleted_rows = show.count(deleted_count, "deleted row") if deleted_count else "no deleted rows"
    summary = f"the newest table versions contain {deleted_rows}"
    if (options["keep"] or 1) > 1 or options["grace"] not in ("0", "0s") or options["older_than"]:
        advice = "use --keep 1 --grace 0s to erase it"
        return f"{summary}; recent and retained data is not erased: {advice}"
    return f"{summary}; files that contain deleted rows, and all indexes, would be rewritten"
