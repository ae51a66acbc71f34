"""Convenience writes as mutation text and as records: update, delete, connect.

Never writes a value into a text: values are parameters, typed by the property they are for.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

from omnigraph.errors import InputError, KeyConflict, ParameterError, UsageError
from omnigraph.lang.schema.catalog import Catalog, Edge, Node
from omnigraph.lang.schema.ir import SchemaIR, key_order
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_text
from omnigraph.predicate import declared, translate
from omnigraph.values import PropertyType, ScalarType, entity_id
from omnigraph.values.coerce import coerce_parameter

_TEXT = PropertyType(ScalarType.STRING)
_ENDS = {"from": _TEXT, "to": _TEXT}

Text = tuple[str, dict[str, Any]]


def update_text(
    catalog: Catalog,
    type_name: str,
    where: str,
    values: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Text:
    """The mutation that gives values to properties, and its parameters."""
    one = type_called(catalog, type_name)
    known = {prop.name: prop.type for prop in one.properties}
    if not values:
        raise UsageError(reason="set must name at least one property")
    types, sets = dict[str, str](), list[str]()
    for number, (name, value) in enumerate(values.items()):
        if name not in known:
            raise InputError(
                f"{type_name} has no property '{name}'",
                reason="unknown property",
                hint=did_you_mean(name, known),
            )
        types[f"p{number}"] = declared(known[name], value)
        sets.append(f"{name}: $p{number}")
    condition, more = _where(one, where, given)
    head = _head("update", types | more)
    given_to = ", ".join(sets)
    text = head + f" {{ update {one.name} set {{ {given_to} }} where {condition} }}"  # noqa: S608
    return text, dict(zip(types, values.values(), strict=True)) | dict(given)


def delete_text(catalog: Catalog, type_name: str, where: str, given: Mapping[str, Any]) -> Text:
    """The mutation that deletes entities, and its parameters."""
    one = type_called(catalog, type_name)
    condition, types = _where(one, where, given)
    return f"{_head('delete', types)} {{ delete {one.name} where {condition} }}", dict(given)


def _where(one: Node | Edge, where: str, given: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    known = {"id": _TEXT, **(_ENDS if isinstance(one, Edge) else {})}
    known |= {prop.name: prop.type for prop in one.properties}
    found = translate(where, known, given, owner=one.name)
    return found.text, dict(found.types)


def _head(verb: str, types: Mapping[str, str]) -> str:
    declared = ", ".join(f"${name}: {kind}" for name, kind in types.items())
    return f"query {verb}_rows({declared})"


def type_called(catalog: Catalog, name: str) -> Node | Edge:
    """The node or edge type of that name; the node wins when both exist."""
    require_text(name, "type")
    found = catalog.node(name) or catalog.edge(name)
    if found is None:
        known = [*(one.name for one in catalog.nodes), *(one.name for one in catalog.edges)]
        message = f"there is no type {quote_name(name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(name, known))
    return found


@contextmanager
def inserting() -> Iterator[None]:
    """An id that exists: whoever inserts is told of the other method, not of a mode."""
    try:
        yield
    except KeyConflict as error:
        error.hint = "use upsert to replace existing entities"
        raise


def rows_of(records: tuple[Any, ...]) -> Any:
    """Records as they come: one by one, or all in one list, table or frame."""
    if len(records) != 1:
        return list(records)
    (only,) = records
    single = isinstance(only, Mapping) or (is_dataclass(only) and not isinstance(only, type))
    return [only] if single else only


def edge_rows(
    ir: SchemaIR, edge_type: str, ends: Iterable[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """Edges as records, the keys of both ends spelled as ids."""
    edge = ir.catalog.edge_by_word(require_text(edge_type, "type"))
    if edge is None:
        known = [one.name for one in ir.catalog.edges]
        raise InputError(
            f"there is no edge type {quote_name(edge_type)}",
            reason="unknown type",
            hint=did_you_mean(edge_type, known),
        )
    return [_edge_row(ir, edge, one) for one in ends]


def _edge_row(ir: SchemaIR, edge: Edge, given: tuple[Any, ...]) -> dict[str, Any]:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise InputError("an edge is (from, to) or (from, to, properties)", reason="no edge")
    source, target, *rest = given
    ends = {"from": node_id(ir, edge.source, source), "to": node_id(ir, edge.target, target)}
    return {**(dict(rest[0]) if rest and rest[0] else {}), **ends}


def node_id(ir: SchemaIR, type_name: str, key: Any) -> str:
    """The id of a node from its key: a value, a tuple or a mapping of members; a text may be an id.

    A type without key, and a composite key given as text, is known by its id alone.
    """
    columns = key_order(ir, type_name)
    if not columns or (len(columns) > 1 and isinstance(key, str)):
        return str(key)
    node = ir.catalog.node(type_name)
    if isinstance(key, Mapping):
        values = [key.get(name) for name in columns]
    else:
        values = list(key) if isinstance(key, tuple) else [key]
    if node is None or len(values) != len(columns):
        told = f"the key of {type_name} is ({', '.join(columns)})"
        raise InputError(told, reason="incomplete key")
    types = [node.by_name[name].type for name in columns]
    pairs = zip(types, columns, values, strict=True)
    stored = [_member(type_name, kind, n, v) for kind, n, v in pairs]
    return entity_id(types, stored, columns)


def _member(type_name: str, kind: PropertyType, name: str, value: Any) -> Any:
    try:
        return coerce_parameter(kind, value, name=name, mode="python")
    except ParameterError as error:
        raise InputError(
            f"{type_name}.{name}, the key of the node: expected {error.expected},"
            f" got {error.actual}",
            reason="no key",
            hint=f"name the {type_name} by its {name}",
        ) from None
