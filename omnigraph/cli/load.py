"""`omnigraph load`: records into a graph, as one commit."""

import sys
from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import InputError

from . import exits, files, show
from .address import (
    actor_option,
    address,
    consent,
    store_option,
    tell_target,
    uri_argument,
    yes_option,
)
from .options import settings, shared_options
from .progress import progress

if TYPE_CHECKING:
    from omnigraph.receipt import LoadReport, Receipt

_MODES = ("overwrite", "append", "merge")


@click.command()
@uri_argument
@click.option(
    "--data",
    required=True,
    metavar="PATH",
    type=click.Path(allow_dash=True),
    help="NDJSON, also .gz and .zst; - is standard input.",
)
@click.option("--mode", required=True, type=click.Choice(_MODES), help="What existing ids mean.")
@click.option("--branch", default="main", show_default=True, help="The branch.")
@click.option("--from", "base", metavar="BASE", help="Fork the branch from this one, if missing.")
@click.option("--report", is_flag=True, help="Print every bad line, not only the first.")
@click.option("--if-commit", metavar="ID", help="Only if the branch is at this commit.")
@click.option("--message", "-m", help="Why, for the log.")
@click.option("--no-progress", is_flag=True, help="Do not show how far it is.")
@store_option
@actor_option
@yes_option
@shared_options
def load(uri: str | None, data: str, mode: str, store: str | None, **how: Any) -> None:
    """Load records: append refuses existing ids, merge replaces them, overwrite replaces types.

    One load is one commit. A single bad line and nothing is written.
    """
    root = address(uri, store)
    if mode == "overwrite":
        consent("load --mode overwrite", root, yes=how["yes"])
    tell_target("load into", root)
    from omnigraph.graph import open as open_graph

    graph = open_graph(root.uri, actor=how["actor"])
    with progress("load", hidden=how["no_progress"]) as told:
        done = graph.load(
            sys.stdin.buffer if data == files.STDIN else data,
            mode=mode,  # type: ignore[arg-type]
            branch=how["branch"],
            from_=how["base"],
            on_error="report" if how["report"] else "raise",
            progress=told,
            if_commit=how["if_commit"],
            message=how["message"],
        )
    from omnigraph.receipt import LoadReport

    if isinstance(done, LoadReport):
        _refuse(done, files.name_of(data))
        click.get_current_context().exit(exits.FAILED)
    _tell(done, root.uri, mode, how["base"])


def _refuse(found: "LoadReport", name: str) -> None:
    if settings().json:
        error = InputError(f"{len(found)} bad lines in {name}; nothing was written")
        show.document(error.to_json() | {"problems": found.to_dicts()})
        return
    for one in found:
        show.problem(one.reason, None)
    bad = show.count(len(found), "problem")
    show.problem(f"{bad} in {name}; nothing was written", None)


def _tell(done: "Receipt", uri: str, mode: str, base: str | None) -> None:
    if settings().json:
        show.document(_document(done, uri, mode, base))
        return
    counts = [f"{n} {name}" for part in (done.nodes, done.edges) for name, n in part.items()]
    told = f": {', '.join(counts)}" if counts else ", nothing to load"
    made = " (new branch)" if done.branch_created else ""
    show.result(f"loaded {done.branch}{made} by {mode}{told}")


def _document(done: "Receipt", uri: str, mode: str, base: str | None) -> dict[str, Any]:
    from .commit import document

    return {
        "uri": uri,
        "branch": done.branch,
        "mode": mode,
        "base_branch": base if done.branch_created else None,
        "branch_created": done.branch_created,
        "nodes": _counts(done.nodes),
        "edges": _counts(done.edges),
        "total_entities": done.total,
        "actor_id": done.commit.actor if done.commit is not None else None,
        "commit": document(done.commit) if done.commit is not None else None,
    }


def _counts(counted: Any) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": n} for name, n in sorted(counted.items())]
