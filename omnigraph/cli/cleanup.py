"""`omnigraph cleanup`: remove unneeded history, or preview the removal."""

from collections.abc import Iterator
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
from .engines import chosen, engine_options
from .options import settings, shared_options
from .progress import progress

if TYPE_CHECKING:
    from omnigraph.history.retention.report import Cleanup

_ADVICE = "use --keep N, --older-than D, or both; --keep 10 is a good start"
_SPAN = "D"
_FEW = 5  # maximum number of holders of history that are listed


@click.command()
@uri_argument
@click.option("--keep", type=int, metavar="N", help="Keep the newest N commits of every branch")
@click.option(
    "--older-than", metavar=_SPAN, help="Keep commits younger than this, such as 30m, 12h, 7d or 2w"
)
@click.option("--confirm", is_flag=True, help="Remove the history; the default is a preview")
@click.option(
    "--grace",
    metavar=_SPAN,
    help="Keep files that were in use this recently, for running readers  [default: 60m]",
)
@click.option("--erase", is_flag=True, help="First rewrite files that contain deleted rows")
@click.option(
    "--purge-dropped", is_flag=True, help="Also remove tables that nothing references any more"
)
@engine_options("for 100,000 files or more")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@store_option
@direct_only
@yes_option
@shared_options
def cleanup(store: str | None, uri: str | None, no_progress: bool, yes: bool, **how: Any) -> None:
    """Remove history that is neither among the newest N commits of a branch nor recent.

    Everything that branches, tags, merge bases and running operations need is kept. Reads and
    writes may continue meanwhile. Without --confirm nothing is removed.
    """
    root = address(uri, store)
    if how["keep"] is None and how["older_than"] is None:
        raise click.UsageError(f"cleanup needs a retention policy: {_ADVICE}")
    if how["confirm"]:
        consent("cleanup", root, yes=yes)
    tell_target("cleanup" if how["confirm"] else "preview of cleanup", root)
    from omnigraph.api.opening import open as open_graph

    where = chosen(how.pop("engine"), how.pop("master"), how.pop("remote"))
    graph = open_graph(root.uri, read_only=not how["confirm"])
    with progress("cleanup", hidden=no_progress or not how["confirm"]) as told:
        done = graph.maintenance.cleanup(progress=told, **how, **where)
    if settings().json:
        show.document(_facts(root.uri, how) | done.to_json())
    else:
        _show(done, how)
    if done.failed:
        raise click.exceptions.Exit(exits.FAILED)


def _facts(uri: str, how: dict[str, Any]) -> dict[str, Any]:
    from omnigraph.history.retention.policy import duration_of

    older = how["older_than"]
    seconds = int(duration_of(older).total_seconds()) if older is not None else None
    return {"uri": uri, "keep_versions": how["keep"], "older_than_secs": seconds}


def _show(done: "Cleanup", how: dict[str, Any]) -> None:
    for one in done.datasets:
        versions = show.count(one.old_versions_removed, "old version")
        line = f"{one.type_key}: {versions}, {one.bytes_removed:,} bytes"
        show.result(f"{line}; {one.error}" if one.error else line)
    for place in done.unreferenced_paths:
        show.result(f"{place}: nothing references this table any more")
    what = "would remove" if done.preview else "removed"
    kept = show.count(done.commits_kept, "commit")
    show.result(f"{what} {done.bytes_removed:,} bytes; kept {kept}")
    for text in _notes(done, how):
        show.note(text)


def _notes(done: "Cleanup", how: dict[str, Any]) -> Iterator[str]:
    grace = how["grace"] or "60m"
    if done.unreferenced_paths and not (how["purge_dropped"] or how["erase"]):
        yield (
            f"{done.unreferenced_bytes:,} bytes of unreferenced tables are kept:"
            " use --purge-dropped to remove them"
        )
    if done.spared_bytes:
        yield (
            f"nothing is old enough: {done.spared_bytes:,} bytes were in use within the grace"
            f" period of {grace} and may still be read; use --grace 0s to remove them"
        )
    for lost in done.unnamed:
        named = f"{lost['kind'] or 'branch or tag'} {lost['name'] or ''}".strip()
        yield f"{named} ({lost['manifest']}) lost its ref object; its data is kept: run repair"
    if done.held_by:
        shown = ", ".join(done.held_by[:_FEW]) + (", …" if len(done.held_by) > _FEW else "")
        yield f"also kept, because these need it: {shown}"
    if done.deleted_rows is not None:
        yield _erasure(done.deleted_rows, how)
    if done.engine != "local":
        yield f"done on {done.engine}"
    if done.preview:
        yield "nothing was removed; pass --confirm to remove it"


def _erasure(deleted: int, how: dict[str, Any]) -> str:
    rows = show.count(deleted, "deleted row") if deleted else "no deleted rows"
    text = f"the newest table versions contain {rows}"
    if (how["keep"] or 1) > 1 or how["grace"] not in ("0", "0s") or how["older_than"]:
        return (
            f"{text}; recent and retained data is not erased: use --keep 1 --grace 0s to erase it"
        )
    return f"{text}; files that contain some, and all indexes, would be rewritten"
