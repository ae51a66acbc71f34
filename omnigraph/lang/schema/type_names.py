"""Look up types by name, and raise a uniform error for unknown names.

Query and schema checks do not use this module, because they report unknown types with positions in the text.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, overload

from omnigraph.errors import InputError, InternalError
from omnigraph.values.name_rules import quote_name, require_names, require_text
from omnigraph.values.table_key import TableKey

from .catalog import Catalog, EdgeType, NodeType
from .names import did_you_mean


@overload
def resolve_type(catalog: Catalog, type_name: str, kind: Literal["node"]) -> NodeType: ...


@overload
def resolve_type(catalog: Catalog, type_name: str, kind: Literal["edge"], *, ignore_case: bool = False) -> EdgeType: ...


@overload
def resolve_type(
    catalog: Catalog,
    type_name: str,
    kind: str | None = None,
    *,
    ignore_case: bool = False,
    fallback_hint: str | None = None,
) -> NodeType | EdgeType: ...


def resolve_type(
    catalog: Catalog,
    type_name: str,
    kind: str | None = None,
    *,
    ignore_case: bool = False,
    fallback_hint: str | None = None,
) -> NodeType | EdgeType:
    """Return the type with this name. If no kind is given, node types take precedence over edge types.

    If `ignore_case` is true, edge types are looked up as in queries: by exact name first, then case-insensitively.
    If the name is unknown, raise `InputError` with a hint that suggests the most similar name, or with `fallback_hint`.
    """
    require_text(type_name, "type")
    if kind in (None, "node") and (node_type := catalog.node(type_name)) is not None:
        return node_type
    find_edge_type = catalog.edge_ignoring_case if ignore_case else catalog.edge
    if kind in (None, "edge") and (edge_type := find_edge_type(type_name)) is not None:
        return edge_type
    raise unknown_type_error(type_name, type_names(catalog, kind), kind, fallback_hint)


def type_for_key(catalog: Catalog, table_key: TableKey) -> NodeType | EdgeType:
    """Return the type that a table stores. Every table in a branch is guaranteed to have a type."""
    kind, type_name = table_key.kind, table_key.type_name
    entity_type: NodeType | EdgeType | None = catalog.node(type_name) if kind == "node" else catalog.edge(type_name)
    if entity_type is None:
        raise InternalError(reason=f"the schema has no type for table {table_key}")
    return entity_type


def type_names(catalog: Catalog, kind: str | None = None) -> list[str]:
    """Return the names of all node and edge types, or only those of one kind."""
    node_names = [node_type.name for node_type in catalog.nodes if kind in (None, "node")]
    return node_names + [edge_type.name for edge_type in catalog.edges if kind in (None, "edge")]


def unknown_type_error(
    type_name: str, known_names: Iterable[str], kind: str | None = None, fallback_hint: str | None = None
) -> InputError:
    """Return the error for an unknown type name, with a suggestion.

    >>> print(unknown_type_error("Persn", ["Person", "City"], "node"))
    unknown node type 'Persn'
    hint: did you mean `Person`?
    """
    described_kind = "type" if kind is None else f"{kind} type"
    hint = did_you_mean(type_name, known_names, fallback_hint)
    return InputError(reason=f"unknown {described_kind} {quote_name(type_name)}", hint=hint)


def select_declared_types(catalog: Catalog, type_names: Sequence[str] | None) -> list[NodeType | EdgeType]:
    """Return the types with the given names (by default all types), nodes first; raise an error for unknown names."""
    all_types: list[NodeType | EdgeType] = [*catalog.nodes, *catalog.edges]
    if type_names is None:
        return all_types
    type_names = require_names(type_names)
    known_names = {entity_type.name for entity_type in all_types}
    for type_name in type_names:
        if type_name not in known_names:
            raise unknown_type_error(type_name, known_names)
    return [entity_type for entity_type in all_types if entity_type.name in type_names]
