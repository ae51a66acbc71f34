"""`omnigraph log`: the commit graph, drawn for people."""

import sys
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import address, store_option, uri_argument
from .commit import document
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.commit import Commit


@click.command()
@uri_argument
@click.option("--branch", default="main", show_default=True, help="Branch to show")
@click.option("--all", "every", is_flag=True, help="Show all branches")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Maximum number of commits",
)
@click.option("--actor", "who", help="Only commits by this actor")
@click.option("--type", "type_name", help="Only commits that changed this type")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters")
@store_option
@shared_options
def log(uri: str | None, branch: str, limit: int, store: str | None, **how: Any) -> None:
    """Draw the history of a branch, newest commit first, with branches and tags.

    For programs, use `omnigraph commit list`.
    """
    root = address(uri, store)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch, read_only=True)
    found = graph.log(actor=how["who"], type=how["type_name"], all=how["every"])
    if settings().json:
        show.document({"commits": [document(one) for one in found[:limit]]})
        return
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    picture = found.draw(limit=limit)
    show.result(picture.text(ascii=how["plain"] or encoding != "utf8", label=_label))


def _label(one: "Commit", names: tuple[str, ...]) -> str:
    from omnigraph.commits import line_of

    told = line_of(one, ()).partition("  ")
    marks = ", ".join(click.style(name, fg="green", bold=True) for name in names)
    line = f"{click.style(told[0], fg='yellow')}{told[1]}{told[2]}"
    return f"{line}  ({marks})" if names else line
