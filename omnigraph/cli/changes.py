"""`omnigraph changes`: the commits made to a branch since a reader's last poll."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omnigraph.values import clock_and_ids

from . import show
from .address import GraphAddress, current_branch, graph_arguments, resolve_target
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options
from .server_target import is_served

if TYPE_CHECKING:
    from omnigraph.api.change_feed.feed import ChangeBlock, Feed
    from omnigraph.api.graph import Graph
    from omnigraph.history.schema_changes import SchemaChange

Command = TypeVar("Command", bound=Callable[..., Any])
_COMMANDS = {
    "poll": LazyCommand(__name__, "poll", "Show commits since a cursor"),
    "baseline": LazyCommand(__name__, "baseline", "Export a branch with a cursor for reading later changes"),
}
_DEFAULT_LIMIT, _MAX_COMMITS = 1_000, 128
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_OP_STYLES = {"insert": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}


def filter_options(command: Command) -> Command:
    """Add the change filter options to a command."""
    options = (
        click.option("--kind", "kinds", multiple=True, help="Include only this kind: node or edge"),
        click.option("--type", "types", multiple=True, help="Include only this type; may be repeated"),
        click.option("--op", "ops", multiple=True, help="Include only this operation: insert, update or delete"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def filter_arguments(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filters as arguments for a graph method, with None for filters that are not set."""
    return {filter_name: filters[filter_name] or None for filter_name in ("types", "kinds", "ops")}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def changes() -> None:
    """Follow commits on a branch."""


@click.command("poll")
@click.option("--branch", default="main", show_default=True, help="Branch to follow")
@click.option("--cursor", help="Cursor returned by an earlier poll")
@click.option("--start", metavar="WHERE", help="Start position: now (the default), beginning, or after:REVISION")
@click.option(
    "--limit", type=int, default=_DEFAULT_LIMIT, show_default=True, help="Approximate maximum number of changes"
)
@click.option("--follow", is_flag=True, help="Wait for new commits; print one JSON line per commit")
@click.option("--interval", default="2s", show_default=True, help="Time between polls with --follow")
@filter_options
@graph_arguments()
@shared_options
def poll(branch: str, cursor: str | None, start: str | None, limit: int, address: GraphAddress, **options: Any) -> None:
    """Show the commits after a cursor, oldest first, and the next cursor.

    Store the cursor together with your processing results, and pass it to the next poll with
    the same filters. Polling with an old cursor returns the same commits again.
    """
    if cursor is not None and start is not None:
        raise click.UsageError("--cursor and --start both set the start position: use only one of them")
    root = resolve_target(address)
    interval_seconds = _parse_interval(options["interval"])
    graph = open_graph(root, branch=branch, read_only=True)
    if not is_served(graph):
        from omnigraph.api.change_feed.pages import PageLimits

        PageLimits(limit)
    start = _resolve_start(graph, start)
    if options["follow"]:
        for block in graph.changes.follow(start, cursor=cursor, poll=interval_seconds, **filter_arguments(options)):
            _print_json(block.to_json() | {"cursor": block.cursor})
        return
    feed = graph.changes.feed(start, cursor=cursor, **filter_arguments(options))
    blocks = feed.take(limit) if is_served(graph) else _take_blocks(feed, limit)  # type: ignore[attr-defined]
    _print_feed(feed, blocks)


def _resolve_start(graph: "Graph", start: str | None) -> str | None:
    """Replace the tag or other revision in `after:REVISION` with its commit id."""
    prefix, _, revision = (start or "").partition(":")
    if prefix != "after" or clock_and_ids.is_ulid(revision):
        return start
    return f"after:{graph.revisions.commit(revision).id}"


def _print_feed(feed: "Feed", blocks: Iterable["ChangeBlock"]) -> None:
    if settings().json:
        started = False
        for block in blocks:
            click.echo(("," if started else '{"blocks": [') + _dump_json(block.to_json()))
            started = True
        opening = "]" if started else '{"blocks": []'
        closing = _dump_json({"cursor": feed.cursor, "caught_up": feed.caught_up})[1:]
        click.echo(f"{opening}, {closing}")
        return
    for block in blocks:
        _print_block(block)
    if feed.at_start:
        show.result("(no new commits)")
    show.result(f"cursor: {feed.cursor}\ncaught_up: {'true' if feed.caught_up else 'false'}")


def _take_blocks(feed: "Feed", limit: int) -> Iterable["ChangeBlock"]:
    """Yield whole commits until they contain `limit` changes or the maximum number of commits is reached.

    If a commit other than the first cannot be read, stop before it; the next poll raises the error.
    """
    from omnigraph.errors import ChangeDiffRefused, ChangeFeedGap

    change_count = block_count = 0
    while change_count < limit and block_count < _MAX_COMMITS:
        try:
            block = next(feed, None)
        except (ChangeDiffRefused, ChangeFeedGap):
            if block_count == 0:
                raise
            return  # the next poll raises the error
        if block is None:
            return
        change_count, block_count = change_count + len(block.changes), block_count + 1
        yield block


def _print_block(block: "ChangeBlock") -> None:
    commit = block.commit
    published = f"{commit.published:%Y-%m-%d %H:%M:%S}"
    header = [click.style(commit.id, fg="yellow"), published, commit.actor or "-", commit.operation]
    show.result("  ".join([*header, *([commit.message] if commit.message else [])]))
    for line in schema_lines(block.schema_change):
        show.result(f"  {line}")
    for change in block.changes:
        show.result(f"  {format_change(change)}")


def schema_lines(schema_change: "SchemaChange | None") -> Iterator[str]:
    """Yield one line for each step in a schema change."""
    for description in () if schema_change is None else schema_change.descriptions:
        yield f"{click.style('*', fg='cyan')} schema: {description}"


def schema_change_members(schema_change: "SchemaChange | None") -> dict[str, Any]:
    """Return a dict that contains a schema change as JSON, or an empty dict if the schema did not change."""
    return {} if schema_change is None else {"schema_change": schema_change.to_json()}


def format_change(change: Any) -> str:
    """Format one change as text: the operation, the entity, and the changed properties."""
    sign, color = _OP_STYLES[change.op]
    endpoints = change.endpoints
    direction = f" from '{endpoints['src']}' to '{endpoints['dst']}'" if endpoints else ""
    changed_properties = f": {', '.join(change.changed)}" if change.changed else ""
    entity = f"{change.kind} {change.type} '{change.id}'"
    return f"{click.style(sign, fg=color)} {entity}{direction}{changed_properties}"


def _dump_json(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()


def _print_json(value: Any) -> None:
    click.echo(_dump_json(value))


def _parse_interval(interval: str) -> float:
    unit = next((suffix for suffix in ("ms", "s", "m") if interval.endswith(suffix)), "")
    try:
        seconds = float(interval.removesuffix(unit)) * _UNIT_SECONDS.get(unit, 1.0)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise click.UsageError(f"--interval {interval}: expected a duration such as 2s, 500ms or 1m")
    return seconds


@click.command("baseline")
@click.option("--out", required=True, metavar="PATH", help="Output file; the suffixes .gz and .zst compress it")
@click.option("--branch", default="main", show_default=True, help="Branch to export")
@filter_options
@graph_arguments()
@shared_options
def baseline(out: str, branch: str, address: GraphAddress, **filters: Any) -> None:
    """Export all entities on a branch as NDJSON, and print the cursor to poll from.

    The file appears only when it is complete; its last line contains the same cursor. Concurrent
    exports to the same file wait for one another; their lock file, PATH.lock, is not removed.
    """
    root = resolve_target(address)
    captured = open_graph(root, branch=branch, read_only=True).changes.baseline(out, **filter_arguments(filters))
    if settings().json:
        show.document(captured.to_json())
    else:
        show.note(f"wrote {show.count(captured.count, 'record')} to {out}")
        show.result(f"commit: {captured.commit_id}\ncursor: {captured.cursor}")


@click.command("changes")
@click.option("--limit", type=int, default=_DEFAULT_LIMIT, show_default=True, help="Changes per page")
@click.option("--page-token", help="Print only the page that this token refers to")
@filter_options
@graph_arguments(commit_id="ID")
@shared_options
def commit_changes(commit_id: str, limit: int, page_token: str | None, address: GraphAddress, **filters: Any) -> None:
    """Show what a commit changed relative to its first parent. HEAD is the newest commit on main."""
    root = resolve_target(address)
    graph = open_graph(root, branch=current_branch(root.uri), read_only=True)
    pages = graph.changes.commit_pages(commit_id, page_token=page_token, limit=limit, **filter_arguments(filters))
    first_page = next(pages)
    if page_token is not None:
        pages = iter(())
    if not settings().json:
        for line in schema_lines(first_page.schema_change):
            show.result(line)
        for page in chain([first_page], pages):
            for change in page.changes:
                show.result(format_change(change))
        return
    members, next_token = first_page.to_json(), first_page.next_page_token
    leading = {name: members[name] for name in ("cause", "schema_change") if name in members}
    click.echo(f'{_dump_json(leading)[:-1]}, "changes": [')
    _print_changes(chain([first_page], pages))
    token_member = f', "next_page_token": {_dump_json(next_token)}' if page_token is not None and next_token else ""
    click.echo(f"]{token_member}}}")


def _print_changes(pages: Iterable[Any]) -> None:
    started = False
    for page in pages:
        for change_json in page.part.documents:
            click.echo(("," if started else "") + _dump_json(change_json))
            started = True
