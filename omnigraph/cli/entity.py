"""`omnigraph history` and `omnigraph blame`: the versions of one entity, and who set its values."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import graph_arguments, open_snapshot, resolve_target
from .conflicts import Command, format_value
from .options import settings, shared_options, snapshot_option
from .server_target import is_served

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.history.commit import Commit
    from omnigraph.history.entity_history import Blamed, EntityHistory, EntityVersion


def _entity_options(command: Command) -> Command:
    """Add the arguments and options that select one entity to a command."""
    options = (
        click.option("--branch", help="Branch to read; defaults to main unless --snapshot is given"),
        snapshot_option,
        click.option(
            "--kind",
            type=click.Choice(["node", "edge"]),
            help="Kind of TYPE, if both a node type and an edge type have this name",
        ),
        graph_arguments(type_name="TYPE", entity_id="ID"),
        shared_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of versions")
@_entity_options
def history(type_name: str, entity_id: str, limit: int | None, **options: Any) -> None:
    """Show every version of one entity, newest first: author, time, and changes.

    ID is the entity's key, or its id if the type has no key or a composite key.
    """
    graph = _open_graph(options)
    entity_key = parse_key(graph, type_name, options["kind"], entity_id)
    versions = graph.revisions.history(type_name, entity_key, kind=options["kind"], limit=limit)
    if not versions and versions.complete:
        from omnigraph.errors import EntityNotFound

        raise EntityNotFound(f"no {type_name} '{entity_id}' in this history")
    if settings().json:
        show.document(_history_document(type_name, entity_id, versions))
        return
    for line in _history_lines(versions):
        show.result(line)


@click.command()
@_entity_options
def blame(type_name: str, entity_id: str, **options: Any) -> None:
    """Show when each property of one entity last changed, and who changed it.

    ID is the entity's key, or its id if the type has no key or a composite key.
    """
    graph = _open_graph(options)
    entity_key = parse_key(graph, type_name, options["kind"], entity_id)
    blamed_values = graph.revisions.blame(type_name, entity_key, kind=options["kind"])
    if settings().json:
        properties = [_property_document(blamed) for blamed in blamed_values.values()]
        show.document({"type_name": type_name, "entity_id": entity_id, "properties": properties})
        return
    table_rows = [
        (property_name, format_value({property_name: blamed.value}, property_name), blamed)
        for property_name, blamed in blamed_values.items()
    ]
    name_width, value_width = (
        max(len(table_row[column_index]) for table_row in table_rows)  # type: ignore[arg-type]
        for column_index in (0, 1)
    )
    for property_name, value, blamed in table_rows:
        columns = f"{property_name:<{name_width}}  {value:<{value_width}}"
        show.result(f"{columns}  {_describe_commit(blamed.commit)}")


def _open_graph(options: dict[str, Any]) -> "Graph":
    root = resolve_target(options["address"])
    return open_snapshot(root, options["branch"], options["snapshot"])


def parse_key(graph: "Graph", type_name: str, kind: str | None, typed_id: str) -> Any:
    """Parse an entity key from the command line; the key is parsed as JSON unless its type is String."""
    if is_served(graph):  # the server parses keys
        return typed_id
    from omnigraph.api.entity_keys import parse_entity_key

    return parse_entity_key(graph.schema.ir.catalog, type_name, kind, typed_id)


def _history_lines(versions: "EntityHistory") -> Iterator[str]:
    for version in versions:
        yield f"{_describe_commit(version.commit, version.op)}"
        values = {**(version.values or {}), **(version.endpoints or {})}
        if version.op == "insert":
            value_changes = [f"{name} {format_value(values, name)}" for name in values]
        else:
            before = version.before or {}
            value_changes = [
                f"{name} {format_value(before, name)} -> {format_value(values, name)}" for name in version.changed
            ]
        if value_changes and version.op != "delete":
            yield f"    {', '.join(value_changes)}"
    if versions.gap is not None:
        yield versions.describe_gap()


def _describe_commit(commit: "Commit | None", op: str | None = None) -> str:
    if commit is None:
        return "before the oldest retained commit"
    published, author = f"{commit.published:%Y-%m-%d %H:%M:%S}", commit.actor or "-"
    columns = [click.style(commit.id, fg="yellow"), published, author, *([op] if op else [])]
    return "  ".join([*columns, *([commit.message] if commit.message else [])])


def _history_document(type_name: str, entity_id: str, versions: "EntityHistory") -> dict[str, Any]:
    return {
        "type_name": type_name,
        "entity_id": entity_id,
        "versions": [_version_document(version) for version in versions],
        "complete": versions.complete,
        "gap_commit_id": versions.gap.id if versions.gap is not None else None,
    }


def _version_document(version: "EntityVersion") -> dict[str, Any]:
    from omnigraph.errors.conflict import to_json_value

    return {
        **_commit_members(version.commit),
        "op": version.op,
        "changed": list(version.changed),
        "before": to_json_value(version.before),
        "after": to_json_value(version.values),
        "endpoints": version.endpoints,
    }


def _property_document(blamed: "Blamed") -> dict[str, Any]:
    from omnigraph.errors.conflict import to_json_value

    return {"property": blamed.name, "value": to_json_value(blamed.value), **_commit_members(blamed.commit)}


def _commit_members(commit: "Commit | None") -> dict[str, Any]:
    """Describe the commit that set a value; all members are None if a cleanup removed the commit."""
    return {
        "graph_commit_id": commit.id if commit is not None else None,
        "actor_id": commit.actor if commit is not None else None,
        "published_at": commit.published_at if commit is not None else None,
        "message": commit.message if commit is not None else None,
    }
