"""`omnigraph optimize` and `omnigraph ensure-indices`: maintenance that changes no content."""

from typing import Any

import click

from . import exits, show
from .address import address, direct_only, store_option, tell_target, uri_argument
from .engines import chosen, engine_options
from .options import settings, shared_options

_branch = click.option("--branch", metavar="NAME", help="Branch to maintain  [default: main]")


@click.command()
@uri_argument
@click.option("--type", "types", multiple=True, metavar="T", help="Only this type; may be repeated")
@engine_options("for 1 GiB of work or more")
@_branch
@store_option
@direct_only
@shared_options
def optimize(
    store: str | None, uri: str | None, types: tuple[str, ...], branch: str | None, **where: Any
) -> None:
    """Compact small fragments of tables, and update indexes to cover all rows.

    The content does not change. Reads and writes may continue meanwhile. Small writes do most of
    this themselves; run it after large loads and deletes.
    """
    root = address(uri, store)
    tell_target("optimize", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch or "main")
    done = graph.maintenance.optimize(types=types or None, **chosen(**where))
    if settings().json:
        rows = [one.to_json() for one in done.datasets]
        show.document({"uri": root.uri, "engine": done.engine, "datasets": rows})
        _exit(done)
        return
    for one in done.datasets:
        show.result(_line(one))
        for name, reason in one.pending_indexes:
            show.note(f"{one.type_key}: the index of {name} is pending: {reason}")
    if not done and not done.damaged:
        show.note("nothing to do")
    elif done.engine != "local":
        show.note(f"done on {done.engine}")
    _exit(done)


def _exit(done: Any) -> None:
    """Exit with a failure if a table is damaged, whatever was done to the others."""
    if done.damaged:
        show.note("run `omnigraph check` to list the missing or damaged files")
        raise click.exceptions.Exit(exits.FAILED)


def _line(one: Any) -> str:
    if one.error is not None:
        return f"{one.type_key}: {one.error}"
    if not one.committed:
        return f"{one.type_key}: nothing to do"
    if not one.fragments_removed:
        return f"{one.type_key}: indexes now cover all rows"
    removed = show.count(one.fragments_removed, "fragment")
    if one.fragments_removed == one.fragments_added:
        return f"{one.type_key}: {removed} rewritten without deleted rows"
    return f"{one.type_key}: {removed} became {one.fragments_added}"


@click.command("ensure-indices")
@uri_argument
@engine_options("for 1 GiB of work or more")
@_branch
@store_option
@direct_only
@shared_options
def ensure_indices(store: str | None, uri: str | None, branch: str | None, **where: Any) -> None:
    """Build the indexes that the schema declares, over all rows not covered yet."""
    root = address(uri, store)
    tell_target("ensure-indices", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch or "main")
    done = graph.maintenance.ensure_indices(**chosen(**where))
    pending = graph.maintenance.pending_indices()
    if settings().json:
        rows = [{"type_key": key, "property": name, "reason": why} for key, name, why in pending]
        made = [{"type_key": key, "indexes": list(names)} for key, names in done.indexes.items()]
        found = {"commit_id": done.commit_id, "datasets": made, "pending_indexes": rows}
        show.document({"uri": root.uri, **found})
        return
    for key, names in done.indexes.items():
        word = "index of" if len(names) == 1 else "indexes of"
        show.result(f"{key}: built the {word} {', '.join(names)}")
    show.result(f"commit {done.commit_id}" if done else "all rows are already covered")
    for key, name, why in pending:
        show.note(f"{key}: the index of {name} is pending: {why}")
