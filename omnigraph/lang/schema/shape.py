"""The canonical shape of a schema: its meaning without order, comments and identity.

Owns the canonical form of a catalog, its JSON and its hash. Two texts with the same meaning have
the same shape, byte for byte. Never assigns identity (see `identity`) and never reads text.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from omnigraph.values import PropertyType

from .catalog import (
    Catalog,
    Check,
    Constraint,
    Edge,
    Index,
    Interface,
    Key,
    Node,
    Note,
    Property,
    Range,
    Unique,
)
from .model import Literal

Json = dict[str, Any]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def shape(catalog: Catalog) -> Json:
    """Return the canonical form of a schema without identity, as plain JSON values.

    >>> from omnigraph.values import ScalarType
    >>> node = Node("Lamp", (Property("watts", PropertyType(ScalarType.I32)),))
    >>> [p["type"] for p in shape(Catalog(nodes=(node,)))["nodes"][0]["properties"]]
    [{'scalar': 'I32', 'nullable': False, 'list': False, 'enum_values': None}]
    """
    ordered = canonical(catalog)
    return {
        "interfaces": [_interface(one) for one in ordered.interfaces],
        "nodes": [_node(one) for one in ordered.nodes],
        "edges": [_edge(one) for one in ordered.edges],
    }


def shape_hash(catalog: Catalog) -> str:
    """Return the hash by which two schemas with the same meaning are recognised.

    >>> shape_hash(Catalog())[:15]
    'sha256:0f1d02a6'
    """
    return json_hash(shape(catalog))


def canonical(catalog: Catalog) -> Catalog:
    """Return the same schema in canonical order, without spans, rename hints and source text."""
    return Catalog(
        _by_name(catalog.interfaces, _plain_interface),
        _by_name(catalog.nodes, _plain_node),
        _by_name(catalog.edges, _plain_edge),
    )


def compact(value: Any) -> str:
    """Return JSON text without spaces, members in given order: the form to hash and compare."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_hash(value: Any) -> str:
    """Return `sha256:` and the digest of the compact JSON text."""
    return "sha256:" + hashlib.sha256(compact(value).encode()).hexdigest()


def type_json(kind: PropertyType) -> Json:
    """Return the JSON form of a property type.

    >>> from omnigraph.values import ScalarType
    >>> type_json(PropertyType(ScalarType.VECTOR, vector_dim=8))["scalar"]
    {'Vector': 8}
    """
    scalar = {"Vector": kind.vector_dim} if kind.is_vector else kind.scalar.value
    values = None if kind.enum_values is None else list(kind.enum_values)
    return {
        "scalar": scalar,
        "nullable": kind.nullable,
        "list": kind.is_list,
        "enum_values": values,
    }


def note_json(note: Note) -> Json:
    """Return the JSON form of an annotation; `kwargs` is present only if there are any."""
    kwargs = {"kwargs": dict(note.options)} if note.options else {}
    return {"name": note.name, "value": note.value} | kwargs


def notes_json(owner: Property) -> list[Json]:
    """Return the annotations of a property, including its default."""
    notes = [*owner.notes]
    if owner.default is not None:
        notes.append(Note("default", owner.default.text))
    return sorted(map(note_json, notes), key=compact)


def default_literal(kind: PropertyType, text: str) -> Literal:
    """Return the literal of a default; the type of its property determines how to read the text."""
    if kind.is_numeric:
        return Literal("int" if kind.is_integer else "float", text)
    return Literal("bool" if kind.scalar.value == "Bool" else "string", text)


def bound_json(bound: int | float | None) -> Json | None:
    """Return the JSON form of a range bound, which distinguishes integers from decimals."""
    if bound is None:
        return None
    return {"Integer": bound} if isinstance(bound, int) else {"Float": bound}


def constraint_json(constraint: Constraint) -> Json:
    """Return the JSON form of a constraint, with its kind as the only member.

    >>> constraint_json(Range("year", 1600, None))
    {'Range': {'property': 'year', 'min': {'Integer': 1600}, 'max': None}}
    """
    match constraint:
        case Key(columns):
            return {"Key": list(columns)}
        case Unique(columns):
            return {"Unique": list(columns)}
        case Index(columns, ()):
            return {"Index": list(columns)}
        case Index(columns, options):
            return {"Index": {"properties": list(columns), "options": dict(options)}}
        case Range(column, low, high):
            bounds = {"min": bound_json(low), "max": bound_json(high)}
            return {"Range": {"property": column} | bounds}
        case Check(column, pattern):
            return {"Check": {"property": column, "pattern": pattern}}


def columns_of(constraint: Constraint) -> tuple[str, ...]:
    """Return the columns that a constraint names."""
    if isinstance(constraint, Range | Check):
        return (constraint.column,)
    return constraint.columns


def sort_key(constraint: Constraint) -> tuple[str, str]:
    """Return a key that orders constraints by `kind:columns`, then by their other content."""
    kind = type(constraint).__name__.lower()
    return f"{kind}:{','.join(columns_of(constraint))}", compact(constraint_json(constraint))


def _interface(one: Interface) -> Json:
    return {"name": one.name, "properties": [_property(p) for p in one.properties]}


def _node(one: Node) -> Json:
    return {
        "name": one.name,
        "annotations": [note_json(note) for note in one.notes],
        "implements": list(one.implements),
        "properties": [_property(p) for p in one.properties],
        "constraints": [constraint_json(c) for c in one.constraints],
    }


def _edge(one: Edge) -> Json:
    return {
        "name": one.name,
        "from_type": one.source,
        "to_type": one.target,
        "cardinality": {"min": one.low, "max": one.high},
        "annotations": [note_json(note) for note in one.notes],
        "properties": [_property(p) for p in one.properties],
        "constraints": [constraint_json(c) for c in one.constraints],
    }


def _property(one: Property) -> Json:
    embed = None if one.embed is None else {"source": one.embed.source, "model": one.embed.model}
    return {
        "name": one.name,
        "type": type_json(one.type),
        "annotations": notes_json(one),
        "constraints": list(one.marks),
        "embed": embed,
        "declared_directly": one.declared_directly,
        "satisfies": [{"interface": i, "property": p} for i, p in one.satisfies],
    }


def _plain_interface(one: Interface) -> Interface:
    return Interface(one.name, _by_name(one.properties, _plain_property))


def _plain_node(one: Node) -> Node:
    return Node(
        one.name,
        _by_name(one.properties, _plain_property),
        _plain_constraints(one.constraints),
        tuple(sorted(set(one.implements))),
        _plain_notes(one.notes),
    )


def _plain_edge(one: Edge) -> Edge:
    return Edge(
        one.name,
        one.source,
        one.target,
        _by_name(one.properties, _plain_property),
        _plain_constraints(one.constraints),
        one.low,
        one.high,
        _plain_notes(one.notes),
    )


def _plain_property(one: Property) -> Property:
    return Property(
        one.name,
        one.type,
        _plain_notes(one.notes),
        tuple(sorted(set(one.marks))),
        one.embed,
        None if one.default is None else default_literal(one.type, one.default.text),
        one.declared_directly,
        tuple(sorted(set(one.satisfies))),
    )


def _plain_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    ordered = {replace(note, options=tuple(sorted(note.options))) for note in notes}
    return tuple(sorted(ordered, key=lambda note: compact(note_json(note))))


def _plain_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    unique = {sort_key(one): one for one in map(_plain_constraint, constraints)}
    return tuple(unique[key] for key in sorted(unique))


def _plain_constraint(one: Constraint) -> Constraint:
    if isinstance(one, Range | Check):
        return one
    columns = tuple(sorted(set(one.columns)))
    if isinstance(one, Index):
        return Index(columns, tuple(sorted(one.options)))
    return replace(one, columns=columns)


def _by_name(things: Iterable[_N], plain: Callable[[_N], _N]) -> tuple[_N, ...]:
    return tuple(plain(one) for one in sorted(things, key=lambda one: one.name))
