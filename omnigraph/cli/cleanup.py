"""`omnigraph cleanup`: remove history that nothing needs, or show what would go."""

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

_ADVICE = "give --keep N, --older-than D, or both; --keep 10 is a good start"
_SPAN = "D"
_FEW = 5  # holders of history that are named


@click.command()
@uri_argument
@click.option("--keep", type=int, metavar="N", help="Keep the newest N commits of every branch.")
@click.option(
    "--older-than", metavar=_SPAN, help="Keep commits that are younger: 90s, 30m, 12h, 7d, 2w."
)
@click.option("--confirm", is_flag=True, help="Remove; without it, only tell what would go.")
@click.option(
    "--grace",
    metavar=_SPAN,
    help="Spare what was in use so long ago, for readers; 60m if not given.",
)
@click.option("--erase", is_flag=True, help="Write anew what holds deleted rows, first.")
@click.option(
    "--purge-dropped", is_flag=True, help="Remove tables, too, that nothing names any more."
)
@engine_options("from 100,000 files on")
@click.option("--no-progress", is_flag=True, help="Do not show how far it is.")
@store_option
@direct_only
@yes_option
@shared_options
def cleanup(store: str | None, uri: str | None, no_progress: bool, yes: bool, **how: Any) -> None:
    """Remove history that is neither among the newest N commits of a branch nor young.

    Whatever branches, tags, merge bases and running operations need stays. Others may read and
    write meanwhile. Without --confirm nothing is removed.
    """
    root = address(uri, store)
    if how["keep"] is None and how["older_than"] is None:
        raise click.UsageError(f"cleanup needs to know what to keep: {_ADVICE}")
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
        show.result(f"{place}: nothing names this table any more")
    what = "would remove" if done.preview else "removed"
    kept = show.count(done.commits_kept, "commit")
    show.result(f"{what} {done.bytes_removed:,} bytes; kept {kept}")
    for text in _notes(done, how):
        show.note(text)


def _notes(done: "Cleanup", how: dict[str, Any]) -> Iterator[str]:
    grace = how["grace"] or "60m"
    if done.unreferenced_paths and not (how["purge_dropped"] or how["erase"]):
        yield (
            f"{done.unreferenced_bytes:,} bytes of tables that nothing names stay:"
            " --purge-dropped removes them"
        )
    if done.spared_bytes:
        yield (
            f"nothing is old enough: {done.spared_bytes:,} bytes were in use within the grace of"
            f" {grace}, and somebody may still read them; --grace 0s spares nothing"
        )
    for lost in done.unnamed:
        named = f"{lost['kind'] or 'branch or tag'} {lost['name'] or ''}".strip()
        yield f"{named} ({lost['manifest']}) lost its ref object, nothing of it goes: run repair"
    if done.held_by:
        shown = ", ".join(done.held_by[:_FEW]) + (", …" if len(done.held_by) > _FEW else "")
        yield f"what these name stays, too: {shown}"
    if done.deleted_rows is not None:
        yield _erasure(done.deleted_rows, how)
    if done.engine != "local":
        yield f"done on {done.engine}"
    if done.preview:
        yield "nothing was removed; add --confirm to remove"


def _erasure(deleted: int, how: dict[str, Any]) -> str:
    rows = show.count(deleted, "deleted row") if deleted else "no deleted rows"
    text = f"the newest versions of tables hold {rows}"
    if (how["keep"] or 1) > 1 or how["grace"] not in ("0", "0s") or how["older_than"]:
        return f"{text}; what is young or kept is spared: --keep 1 --grace 0s spares nothing"
    return f"{text}; what holds some, and all indexes, would be written anew"
