"""`omnigraph changes`: what was committed to a branch since a reader's last poll."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import show
from .address import address, store_option, uri_option
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.feed import ChangeBlock, Feed

Command = TypeVar("Command", bound=Callable[..., Any])
_COMMANDS = {
    "poll": Lazy(__name__, "poll", "Show commits since a cursor"),
    "baseline": Lazy(__name__, "baseline", "Export everything, with a cursor to continue from"),
}
_LIMIT, _COMMITS = 1_000, 128
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_SIGNS = {"insert": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}


def filter_options(command: Command) -> Command:
    """Add the options that filter changes to a command."""
    options = (
        click.option("--kind", "kinds", multiple=True, help="Only node, or only edge"),
        click.option("--type", "types", multiple=True, help="Only this type; may be repeated"),
        click.option("--op", "ops", multiple=True, help="Only insert, update or delete"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def chosen(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filters as arguments of a graph method; None for those not given."""
    return {name: filters[name] or None for name in ("types", "kinds", "ops")}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def changes() -> None:
    """Follow the commits of a branch."""


@click.command("poll")
@click.option("--branch", default="main", show_default=True, help="Branch to follow")
@click.option("--cursor", help="Continue where an earlier poll ended")
@click.option("--start", metavar="WHERE", help="now (the default), beginning or after:COMMIT")
@click.option(
    "--limit", type=int, default=_LIMIT, show_default=True, help="Approximate number of changes"
)
@click.option("--follow", is_flag=True, help="Wait for new commits; print one JSON line per commit")
@click.option(
    "--interval", default="2s", show_default=True, help="With --follow: time between polls"
)
@filter_options
@uri_option
@store_option
@shared_options
def poll(
    branch: str,
    cursor: str | None,
    start: str | None,
    limit: int,
    uri: str | None,
    store: str | None,
    **rest: Any,
) -> None:
    """Show the commits after a cursor, oldest first and complete, and the next cursor.

    Store the cursor together with the results of your processing, and pass it to the next poll with
    the same filters. Polling with an old cursor returns the same commits again.
    """
    if cursor is not None and start is not None:
        raise click.UsageError("--cursor and --start both say where to begin: use only one of them")
    root = address(uri, store, way="--uri")
    seconds = _seconds(rest["interval"])
    from omnigraph.api.opening import open as open_graph
    from omnigraph.pages import PageLimits

    PageLimits(limit)
    graph = open_graph(root.uri, branch=branch, read_only=True)
    if rest["follow"]:
        for block in graph.changes.follow(start, cursor=cursor, poll=seconds, **chosen(rest)):
            _line(block.to_json() | {"cursor": block.cursor})
        return
    _told(graph.changes.feed(start, cursor=cursor, **chosen(rest)), limit)


def _told(feed: "Feed", limit: int) -> None:
    found = _some(feed, limit)
    if settings().json:
        opened = False
        for block in found:
            click.echo(("," if opened else '{"blocks": [') + _text(block.to_json()))
            opened = True
        head = "]" if opened else '{"blocks": []'
        tail = _text({"cursor": feed.cursor, "caught_up": feed.caught_up})[1:]
        click.echo(f"{head}, {tail}")
        return
    for block in found:
        _picture(block)
    if feed.at_start:
        show.result("(no new commits)")
    show.result(f"cursor: {feed.cursor}\ncaught_up: {'true' if feed.caught_up else 'false'}")


def _some(feed: "Feed", limit: int) -> Iterable["ChangeBlock"]:
    """Take complete commits up to the limit; an error ends the page if it is not the first."""
    from omnigraph.errors import ChangeDiffRefused, ChangeFeedGap

    count = number = 0
    while count < limit and number < _COMMITS:
        try:
            block = next(feed, None)
        except (ChangeDiffRefused, ChangeFeedGap):
            if number == 0:
                raise
            return  # the next poll raises it
        if block is None:
            return
        count, number = count + len(block.changes), number + 1
        yield block


def _picture(block: "ChangeBlock") -> None:
    one = block.commit
    when = f"{one.published:%Y-%m-%d %H:%M:%S}"
    head = [click.style(one.id, fg="yellow"), when, one.actor or "-", one.operation]
    show.result("  ".join([*head, *([one.message] if one.message else [])]))
    for change in block.changes:
        show.result(f"  {change_line(change)}")


def change_line(one: Any) -> str:
    """Format one change for people: the operation, the entity, and the changed properties."""
    sign, color = _SIGNS[one.op]
    ends = one.endpoints
    where = f" from '{ends['src']}' to '{ends['dst']}'" if ends else ""
    told = f": {', '.join(one.changed)}" if one.changed else ""
    return f"{click.style(sign, fg=color)} {one.kind} {one.type} '{one.id}'{where}{told}"


def _text(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()


def _line(value: Any) -> None:
    click.echo(_text(value))


def _seconds(text: str) -> float:
    unit = next((one for one in ("ms", "s", "m") if text.endswith(one)), "")
    try:
        found = float(text.removesuffix(unit)) * _UNITS.get(unit, 1.0)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise click.UsageError(f"--interval {text}: expected a time such as 2s, 500ms or 1m")
    return found


@click.command("baseline")
@click.option("--out", required=True, metavar="PATH", help="Output file; .gz and .zst compress it")
@click.option("--branch", default="main", show_default=True, help="Branch to export")
@filter_options
@uri_option
@store_option
@shared_options
def baseline(out: str, branch: str, uri: str | None, store: str | None, **filters: Any) -> None:
    """Export all entities of a branch as NDJSON, and print the cursor to poll from.

    The file appears only when it is complete; its last line holds the same cursor. Concurrent
    captures into the same file wait for one another; their lock, PATH.lock, is not removed.
    """
    root = address(uri, store, way="--uri")
    from omnigraph.api.opening import open as open_graph

    made = open_graph(root.uri, branch=branch, read_only=True).changes.baseline(
        out, **chosen(filters)
    )
    if settings().json:
        show.document(made.to_json())
    else:
        show.note(f"wrote {show.count(made.count, 'record')} to {out}")
        show.result(f"commit: {made.commit_id}\ncursor: {made.cursor}")


@click.command("changes")
@click.argument("commit_id", metavar="ID")
@click.option("--limit", type=int, default=_LIMIT, show_default=True, help="Changes per page")
@click.option("--page-token", help="Print only the page after this token")
@filter_options
@uri_option
@store_option
@shared_options
def commit_changes(
    commit_id: str,
    limit: int,
    page_token: str | None,
    uri: str | None,
    store: str | None,
    **filters: Any,
) -> None:
    """Show what one commit changed against its first parent. HEAD is the newest commit of main."""
    root = address(uri, store, way="--uri")
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, read_only=True)
    pages = graph.changes.commit_pages(
        commit_id, page_token=page_token, limit=limit, **chosen(filters)
    )
    first = next(pages)
    if page_token is not None:
        pages = iter(())
    if not settings().json:
        for page in chain([first], pages):
            for change in page.changes:
                show.result(change_line(change))
        return
    cause, token = first.to_json()["cause"], first.next_page_token
    click.echo(f'{{"cause": {_text(cause)}, "changes": [')
    _documents(chain([first], pages))
    tail = f', "next_page_token": {_text(token)}' if page_token is not None and token else ""
    click.echo(f"]{tail}}}")


def _documents(pages: Iterable[Any]) -> None:
    written = False
    for page in pages:
        for one in page.part.documents:
            click.echo(("," if written else "") + _text(one))
            written = True
