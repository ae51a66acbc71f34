"""The `omnigraph blob` command, which reads, describes and replaces one blob.

The blob is written to standard output or atomically to a file, and is never part of a JSON document.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import actor_option, announce_target, current_branch, graph_arguments, open_snapshot, resolve_target
from .conflicts import Command
from .entity import parse_key
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import idempotency_key_option, mark_as_write, scope_options, settings, shared_options, snapshot_option
from .progress import show_progress

if TYPE_CHECKING:
    from omnigraph.api.blobs import Blob

_COMMANDS = {
    "get": LazyCommand(__name__, "get", "Write a blob to a file or to standard output"),
    "stat": LazyCommand(__name__, "stat", "Show the size, media type and ETag of a blob"),
    "put": LazyCommand(__name__, "put", "Replace a node's blob in one commit"),
}
_RANGE = re.compile(r"(\d+)-(\d*)")


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def blob() -> None:
    """Read, inspect and replace blobs (binary values on nodes and edges)."""


def _read_options(command: Command) -> Command:
    """Add the options that select the branch or the past revision to read."""
    options = (
        click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given"),
        snapshot_option,
        click.option(
            "--kind",
            type=click.Choice(["node", "edge"]),
            help="Kind of TYPE, if both a node type and an edge type have this name",
        ),
        graph_arguments(type_name="TYPE", entity_id="ID", property_name="PROPERTY"),
        shared_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write atomically to a file")
@click.option("--range", "byte_range", metavar="A-B", help="Read only bytes A to B (B excluded); A- reads to the end")
@click.option("--if-match", metavar="ETAG", help="Fail unless the blob has this ETag")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@_read_options
def get(type_name: str, entity_id: str, property_name: str, out: Path | None, **options: Any) -> None:
    """Write a blob to standard output, or atomically to a file with --out.

    ID is a node's key, or the id of an edge or of a node without a key.
    """
    start, stop = _parse_range(options["byte_range"])
    if out is None and settings().json:
        raise click.UsageError("--json requires --out, because blob contents cannot be printed as JSON")
    opened = _open_blob(type_name, entity_id, property_name, options)
    if options["if_match"] is not None:
        opened.require_match(options["if_match"])
    if out is None:
        _write_to_stdout(opened, start, stop)
        return
    with show_progress("get", hidden=options["no_progress"]) as progress_bar:
        byte_count = opened.save(out, start=start, stop=stop, progress=progress_bar)
    if settings().json:
        show.document({"path": str(out), "bytes": byte_count, "graph_commit_id": opened.commit_id})
    else:
        show.note(f"wrote {show.count(byte_count, 'byte')} to {out}")


@click.command()
@_read_options
def stat(type_name: str, entity_id: str, property_name: str, **options: Any) -> None:
    """Show the size, media type and ETag of a blob. Computing the ETag reads the entire blob.

    ID is a node's key, or the id of an edge or of a node without a key.
    """
    opened = _open_blob(type_name, entity_id, property_name, options)
    if settings().json:
        show.document(_blob_document(opened, options))
        return
    show.result(f"size        {opened.size}")
    show.result(f"media type  {opened.media_type}")
    show.result(f"etag        {opened.etag}")
    show.result(f"commit      {opened.commit_id}")


@click.command()
@click.option("--media-type", metavar="TYPE", help="Media type to store in the PROPERTY_media_type property")
@click.option("--if-match", metavar="ETAG", help="Write only if the stored blob has this ETag; * matches any blob")
@click.option("--no-progress", is_flag=True, help="Hide the progress bar")
@click.option("--branch", default="main", show_default=True, help="Branch to change")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@idempotency_key_option
@graph_arguments(type_name="TYPE", entity_id="ID", property_name="PROPERTY", file="FILE")
@actor_option
@shared_options
def put(type_name: str, entity_id: str, property_name: str, file: str, **options: Any) -> None:
    """Replace the blob on an existing node with the contents of FILE, or of standard input if FILE is `-`.

    The bytes are streamed, so FILE may be larger than memory. ID is the node's key, or its id if
    the type has no key.
    """
    root = resolve_target(options.pop("address"))
    announce_target("blob put", root)
    mark_as_write()
    actor = options.pop("actor")
    graph = open_graph(root, branch=options.pop("branch"), actor=actor)
    content = sys.stdin.buffer if file == "-" else Path(file)
    key = parse_key(graph, type_name, "node", entity_id)
    with show_progress("read", hidden=options.pop("no_progress")) as progress_bar:
        receipt = graph.put_blob(type_name, key, property_name, content, progress=progress_bar, **options)
    size = graph.blob(type_name, key, property_name).size
    if settings().json:
        from .mutate import change_document

        show.document({**change_document(receipt, graph.actor), "size": size})
    else:
        target = f"property {property_name} of {type_name} '{entity_id}'"
        show.confirmation(f"stored {show.count(size, 'byte')} in {target} on {receipt.branch}")
    show.warnings(graph.warnings)


def _open_blob(type_name: str, entity_id: str, property_name: str, options: dict[str, Any]) -> "Blob":
    root = resolve_target(options["address"])
    graph = open_snapshot(root, options["branch"], options["snapshot"])
    key = parse_key(graph, type_name, options["kind"], entity_id)
    return graph.blob(type_name, key, property_name, kind=options["kind"])


def _parse_range(byte_range: str | None) -> tuple[int, int | None]:
    """Parse a half-open range; an empty or reversed range is rejected before anything is opened."""
    if byte_range is None:
        return 0, None
    range_match = _RANGE.fullmatch(byte_range)
    if range_match is None or (range_match[2] and int(range_match[2]) <= int(range_match[1])):
        raise click.UsageError(f"invalid --range {byte_range}; expected A-B or A- with A < B, such as 0-1024")
    return int(range_match[1]), int(range_match[2]) if range_match[2] else None


def _write_to_stdout(opened: "Blob", start: int, stop: int | None) -> None:
    for chunk in opened.iter_chunks(start=start, stop=stop):
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def _blob_document(opened: "Blob", options: dict[str, Any]) -> dict[str, Any]:
    branch = options["branch"] or current_branch(resolve_target(options["address"]).uri)
    return {
        "kind": opened.kind,
        "type_name": opened.type_name,
        "entity_id": opened.entity_id,
        "property": opened.property_name,
        "size": opened.size,
        "media_type": opened.media_type,
        "etag": opened.etag,
        "branch": None if options["snapshot"] is not None else branch,
        "graph_commit_id": opened.commit_id,
    }
