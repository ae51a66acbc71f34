"""`omnigraph history` and `omnigraph blame`: the versions of one entity, and who set its values."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import address, shown_at, store_option, uri_option
from .conflicts import Command, short_value
from .options import settings, shared_options, snapshot_option

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.history.commit import Commit
    from omnigraph.history.trace import Blamed, EntityHistory, EntityVersion


def _of_entity(command: Command) -> Command:
    """Add the arguments and options that select one entity to a command."""
    options = (
        click.argument("type_name", metavar="TYPE"),
        click.argument("entity_id", metavar="ID"),
        click.option("--branch", help="Branch; main unless a snapshot is given"),
        snapshot_option,
        click.option(
            "--kind",
            type=click.Choice(["node", "edge"]),
            help="Kind of TYPE, if both a node and an edge type have this name",
        ),
        uri_option,
        store_option,
        shared_options,
    )
    for one in reversed(options):
        command = one(command)
    return command


@click.command()
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of versions")
@_of_entity
def history(type_name: str, entity_id: str, limit: int | None, **where: Any) -> None:
    """Show every version of one entity, newest first: author, time, and changes.

    ID is the key of a node, or the id of an edge or of a node without a key.
    """
    graph = _shown(where)
    key = _key(graph, type_name, entity_id)
    found = graph.revisions.history(type_name, key, kind=where["kind"], limit=limit)
    if not found and found.complete:
        from omnigraph.errors import EntityNotFound

        raise EntityNotFound(f"no {type_name} '{entity_id}' in this history")
    if settings().json:
        show.document(_document(type_name, entity_id, found))
        return
    for line in _lines(found):
        show.result(line)


@click.command()
@_of_entity
def blame(type_name: str, entity_id: str, **where: Any) -> None:
    """Show who last changed each property of one entity, and when.

    ID is the key of a node, or the id of an edge or of a node without a key.
    """
    graph = _shown(where)
    found = graph.revisions.blame(type_name, _key(graph, type_name, entity_id), kind=where["kind"])
    if settings().json:
        told = [_property(one) for one in found.values()]
        show.document({"type_name": type_name, "entity_id": entity_id, "properties": told})
        return
    rows = [(name, short_value({name: one.value}, name), one) for name, one in found.items()]
    width, wide = (max(len(row[at]) for row in rows) for at in (0, 1))  # type: ignore[arg-type]
    for name, value, one in rows:
        show.result(f"{name:<{width}}  {value:<{wide}}  {_given(one.commit)}")


def _shown(where: dict[str, Any]) -> "Graph":
    root = address(where["uri"], where["store"], way="--uri")
    return shown_at(root.uri, where["branch"], where["snapshot"])


def _key(graph: "Graph", type_name: str, text: str) -> Any:
    """Return the key of a node from its typed form; parsed as JSON unless the key is a string."""
    node = graph.schema.ir.catalog.node(type_name)
    key = node.key if node is not None else None
    if node is None or not key or len(key) > 1:
        return text
    if node.by_name[key[0]].type.scalar.value == "String":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _lines(found: "EntityHistory") -> Iterator[str]:
    for one in found:
        yield f"{_given(one.commit, one.op)}"
        values = {**(one.values or {}), **(one.endpoints or {})}
        if one.op == "insert":
            told = [f"{name} {short_value(values, name)}" for name in values]
        else:
            was = one.before or {}
            told = [f"{n} {short_value(was, n)} -> {short_value(values, n)}" for n in one.changed]
        if told and one.op != "delete":
            yield f"    {', '.join(told)}"
    if found.gap is not None:
        yield f"a cleanup removed the history before commit {found.gap.id}"


def _given(commit: "Commit | None", op: str | None = None) -> str:
    if commit is None:
        return "before the oldest commit kept by cleanup"
    when, who = f"{commit.published:%Y-%m-%d %H:%M:%S}", commit.actor or "-"
    parts = [click.style(commit.id, fg="yellow"), when, who, *([op] if op else [])]
    return "  ".join([*parts, *([commit.message] if commit.message else [])])


def _document(type_name: str, entity_id: str, found: "EntityHistory") -> dict[str, Any]:
    return {
        "type_name": type_name,
        "entity_id": entity_id,
        "versions": [_version(one) for one in found],
        "complete": found.complete,
        "gap_commit_id": found.gap.id if found.gap is not None else None,
    }


def _version(one: "EntityVersion") -> dict[str, Any]:
    from omnigraph.errors.conflict import plain_value

    return {
        **_cause(one.commit),
        "op": one.op,
        "changed": list(one.changed),
        "before": plain_value(one.before),
        "after": plain_value(one.values),
        "endpoints": one.endpoints,
    }


def _property(one: "Blamed") -> dict[str, Any]:
    from omnigraph.errors.conflict import plain_value

    return {"property": one.name, "value": plain_value(one.value), **_cause(one.commit)}


def _cause(commit: "Commit | None") -> dict[str, Any]:
    """Return the commit that set a value; all members are None if a cleanup removed it."""
    return {
        "graph_commit_id": commit.id if commit is not None else None,
        "actor_id": commit.actor if commit is not None else None,
        "published_at": commit.published_at if commit is not None else None,
        "message": commit.message if commit is not None else None,
    }
