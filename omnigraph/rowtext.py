"""Convenience writes (update, delete, connect) as mutation text and as records.

Never writes a value into query text: values are parameters, typed by their property.
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
    """Return the mutation that sets properties, and its parameters."""
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
    """Return the mutation that deletes entities, and its parameters."""
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
    """Return the node or edge type of that name; a node type takes precedence."""
    require_text(name, "type")
    found = catalog.node(name) or catalog.edge(name)
    if found is None:
        known = [*(one.name for one in catalog.nodes), *(one.name for one in catalog.edges)]
        message = f"unknown type {quote_name(name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(name, known))
    return found


@contextmanager
def inserting() -> Iterator[None]:
    """Replace the hint of a key conflict: suggest `upsert`, not a load mode."""
    try:
        yield
    except KeyConflict as error:
        error.hint = "use upsert to replace existing entities"
        raise


def rows_of(records: tuple[Any, ...]) -> Any:
    """Return records as a load takes them: separate records as a list, a single batch as it is."""
    if len(records) != 1:
        return list(records)
    (only,) = records
    single = isinstance(only, Mapping) or (is_dataclass(only) and not isinstance(only, type))
    return [only] if single else only


def edge_rows(
    ir: SchemaIR, edge_type: str, ends: Iterable[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """Return edges as records, with the keys of both endpoints as ids."""
    edge = ir.catalog.edge_by_word(require_text(edge_type, "type"))
    if edge is None:
        known = [one.name for one in ir.catalog.edges]
        raise InputError(
            f"unknown edge type {quote_name(edge_type)}",
            reason="unknown type",
            hint=did_you_mean(edge_type, known),
        )
    return [_edge_row(ir, edge, one) for one in ends]


def _edge_row(ir: SchemaIR, edge: Edge, given: tuple[Any, ...]) -> dict[str, Any]:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        message = "an edge must be (from, to) or (from, to, properties)"
        raise InputError(message, reason="no edge")
    source, target, *rest = given
    ends = {"from": node_id(ir, edge.source, source), "to": node_id(ir, edge.target, target)}
    return {**(dict(rest[0]) if rest and rest[0] else {}), **ends}


def node_id(ir: SchemaIR, type_name: str, key: Any) -> str:
    """Return the id of a node from its key: a value, a tuple or a mapping of members, or an id.

    A type without a key, and a composite key given as text, is identified by its id alone.
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
            f"key {type_name}.{name}: expected {error.expected}, got {error.actual}",
            reason="no key",
            hint=f"pass the {name} of the {type_name}",
        ) from None
