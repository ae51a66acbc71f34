"""`omnigraph log`: draw the commit graph."""

import sys
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import GraphAddress, graph_arguments, resolve_target
from .commit import commit_document
from .opening import open_graph
from .options import settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.commit import Commit


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch to show")
@click.option("--all", "every", is_flag=True, help="Show all branches")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of commits")
@click.option("--actor", "who", help="Show only commits by this actor")
@click.option("--type", "type_name", help="Show only commits that changed this type")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters")
@graph_arguments()
@shared_options
def log(address: GraphAddress, branch: str, limit: int, **options: Any) -> None:
    """Draw the history of a branch, newest commit first, with branches and tags.

    In scripts, use `omnigraph commit list`.
    """
    root = resolve_target(address)
    graph = open_graph(root, branch=branch, read_only=True)
    commits = graph.log(actor=options["who"], type=options["type_name"], all=options["every"])
    if settings().json:
        show.document({"commits": [commit_document(commit) for commit in commits[:limit]]})
        return
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    drawing = commits.draw(limit=limit)
    show.result(drawing.text(ascii=options["plain"] or encoding != "utf8", label=_commit_label))


def _commit_label(commit: "Commit", ref_names: tuple[str, ...]) -> str:
    from omnigraph.api.results.commit_log import format_commit_line

    line_parts = format_commit_line(commit, ()).partition("  ")
    ref_marks = ", ".join(click.style(ref_name, fg="green", bold=True) for ref_name in ref_names)
    line = f"{click.style(line_parts[0], fg='yellow')}{line_parts[1]}{line_parts[2]}"
    return f"{line}  ({ref_marks})" if ref_names else line
