r"""The output of `\d`: the types in a graph, or the properties of one type."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.errors import NotFound
from omnigraph.lang.schema.names import find_nearest_name
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph


def describe_schema(graph: "Graph") -> Iterator[str]:
    """Yield one line for each type: its kind, its name, its endpoints or property count, and its row count."""
    tables = graph.snapshot.tables
    rows = [("kind", "type", "endpoints", "properties", "rows")]
    for declared in _table_types(graph):
        endpoints = f"{declared.source} -> {declared.target}" if declared.kind == "edge" else ""
        row_count = tables[TableKey.of(declared.kind, declared.name)].row_count
        rows.append((declared.kind, declared.name, endpoints, str(len(declared.properties)), str(row_count)))
    yield from align_columns(rows)


def describe_type(graph: "Graph", type_name: str) -> Iterator[str]:
    """Yield a type's kind and one line for each property; raise `NotFound` for an unknown type."""
    catalog = graph.schema.ir.catalog
    declared_types = (*catalog.interfaces, *_table_types(graph))
    declared: Any = next((declared for declared in declared_types if declared.name == type_name), None)
    if declared is None:
        nearest = find_nearest_name(type_name, [declared.name for declared in declared_types])
        raise NotFound(f"unknown type '{type_name}'", hint=f"did you mean `{nearest}`?" if nearest else None)
    endpoints = f": {declared.source} -> {declared.target}" if declared.kind == "edge" else ""
    yield f"{declared.kind} {declared.name}{endpoints}"
    rules = getattr(declared, "constraints", ())
    rows = [
        (definition.name, definition.type.display(), _name_rules(rules, definition))
        for definition in declared.properties
    ]
    yield from (f"  {line}" for line in align_columns([("property", "type", "constraints"), *rows]))


def _table_types(graph: "Graph") -> tuple[Any, ...]:
    catalog = graph.schema.ir.catalog
    return (*catalog.nodes, *catalog.edges)


def _name_rules(constraints: Sequence[Any], definition: Any) -> str:
    names = []
    for constraint in constraints:
        columns: tuple[str, ...] = getattr(constraint, "columns", ()) or (constraint.column,)
        if definition.name in columns:
            name = f"@{type(constraint).__name__.lower()}"
            names.append(f"{name}({', '.join(columns)})" if len(columns) > 1 else name)
    return " ".join([*names, *(["@default"] if definition.default is not None else [])])


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as lines with aligned columns.

    >>> list(align_columns([("a", "bc"), ("def", "g")]))
    ['a    bc', 'def  g']
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
