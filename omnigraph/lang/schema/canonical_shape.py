"""A schema's canonical shape, which does not depend on declaration order, comments or identity ids.

This module defines a catalog's canonical form, JSON form and hash. Two schemas with the same meaning have the same
shape, byte for byte. This module never assigns ids (see `assign_identity`) or reads schema text.
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
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    PropertyDefinition,
    Range,
    StoredAnnotation,
    Unique,
)
from .model import Literal

JsonObject = dict[str, Any]


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


_NamedItem = TypeVar("_NamedItem", bound=_HasName)


def canonical_shape(catalog: Catalog) -> JsonObject:
    """Return a schema's canonical form as plain JSON values, without identity ids.

    >>> from omnigraph.values import ScalarType
    >>> watts = PropertyDefinition("watts", PropertyType(ScalarType.I32))
    >>> node = NodeType("Lamp", (watts,))
    >>> [p["type"] for p in canonical_shape(Catalog(nodes=(node,)))["nodes"][0]["properties"]]
    [{'scalar': 'I32', 'nullable': False, 'list': False, 'enum_values': None}]
    """
    canonical_catalog = canonicalize(catalog)
    return {
        "interfaces": [_interface_shape(declared_type) for declared_type in canonical_catalog.interfaces],
        "nodes": [_node_shape(declared_type) for declared_type in canonical_catalog.nodes],
        "edges": [_edge_shape(declared_type) for declared_type in canonical_catalog.edges],
    }


def shape_hash(catalog: Catalog) -> str:
    """Return a hash that is the same for all schemas with the same meaning.

    >>> shape_hash(Catalog())[:15]
    'sha256:0f1d02a6'
    """
    return hash_json(canonical_shape(catalog))


def canonicalize(catalog: Catalog) -> Catalog:
    """Return the schema in canonical order, without spans, rename hints or source text."""
    return Catalog(
        _canonicalize_by_name(catalog.interfaces, _canonical_interface),
        _canonicalize_by_name(catalog.nodes, _canonical_node),
        _canonicalize_by_name(catalog.edges, _canonical_edge),
    )


def compact_json(value: Any) -> str:
    """Return JSON text for hashing and comparison, without spaces and with members in their existing order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def hash_json(value: Any) -> str:
    """Return `sha256:` followed by the digest of the compact JSON text."""
    return "sha256:" + hashlib.sha256(compact_json(value).encode()).hexdigest()


def type_json(property_type: PropertyType) -> JsonObject:
    """Return the JSON form of a property type.

    >>> from omnigraph.values import ScalarType
    >>> type_json(PropertyType(ScalarType.VECTOR, vector_dim=8))["scalar"]
    {'Vector': 8}
    """
    scalar = {"Vector": property_type.vector_dim} if property_type.is_vector else property_type.scalar.value
    enum_values = None if property_type.enum_values is None else list(property_type.enum_values)
    return {
        "scalar": scalar,
        "nullable": property_type.nullable,
        "list": property_type.is_list,
        "enum_values": enum_values,
    }


def annotation_json(annotation: StoredAnnotation) -> JsonObject:
    """Return an annotation as JSON. `kwargs` is present only if there are keyword arguments."""
    kwargs = {"kwargs": dict(annotation.options)} if annotation.options else {}
    return {"name": annotation.name, "value": annotation.value} | kwargs


def annotations_json(definition: PropertyDefinition) -> list[JsonObject]:
    """Return a property's annotations as JSON, including its default."""
    annotations = [*definition.annotations]
    if definition.default is not None:
        annotations.append(StoredAnnotation("default", definition.default.text))
    return sorted(map(annotation_json, annotations), key=compact_json)


def default_literal(property_type: PropertyType, text: str) -> Literal:
    """Return a default as a literal. The property type determines how `text` is interpreted."""
    if property_type.is_numeric:
        return Literal("int" if property_type.is_integer else "float", text)
    return Literal("bool" if property_type.scalar.value == "Bool" else "string", text)


def bound_json(bound: int | float | None) -> JsonObject | None:
    """Return a range bound as JSON, or None if there is no bound. Integers and decimals are kept distinct."""
    if bound is None:
        return None
    return {"Integer": bound} if isinstance(bound, int) else {"Float": bound}


def constraint_json(constraint: Constraint) -> JsonObject:
    """Return a constraint as a JSON object whose only member is named after the kind of constraint.

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


def constraint_columns(constraint: Constraint) -> tuple[str, ...]:
    """Return the columns that a constraint refers to."""
    if isinstance(constraint, Range | Check):
        return (constraint.column,)
    return constraint.columns


def constraint_sort_key(constraint: Constraint) -> tuple[str, str]:
    """Return a sort key that orders constraints by `kind:columns`, then by their remaining content."""
    constraint_kind = type(constraint).__name__.lower()
    return f"{constraint_kind}:{','.join(constraint_columns(constraint))}", compact_json(constraint_json(constraint))


def _interface_shape(interface: InterfaceType) -> JsonObject:
    return {"name": interface.name, "properties": [_property_shape(definition) for definition in interface.properties]}


def _node_shape(node_type: NodeType) -> JsonObject:
    return {
        "name": node_type.name,
        "annotations": [annotation_json(annotation) for annotation in node_type.annotations],
        "implements": list(node_type.implements),
        "properties": [_property_shape(definition) for definition in node_type.properties],
        "constraints": [constraint_json(constraint) for constraint in node_type.constraints],
    }


def _edge_shape(edge_type: EdgeType) -> JsonObject:
    return {
        "name": edge_type.name,
        "from_type": edge_type.source,
        "to_type": edge_type.target,
        "cardinality": {"min": edge_type.min_cardinality, "max": edge_type.max_cardinality},
        "annotations": [annotation_json(annotation) for annotation in edge_type.annotations],
        "properties": [_property_shape(definition) for definition in edge_type.properties],
        "constraints": [constraint_json(constraint) for constraint in edge_type.constraints],
    }


def _property_shape(definition: PropertyDefinition) -> JsonObject:
    embed_json = (
        None if definition.embed is None else {"source": definition.embed.source, "model": definition.embed.model}
    )
    return {
        "name": definition.name,
        "type": type_json(definition.type),
        "annotations": annotations_json(definition),
        "constraints": list(definition.inline_constraints),
        "embed": embed_json,
        "declared_directly": definition.declared_directly,
        "satisfies": [
            {"interface": interface_name, "property": property_name}
            for interface_name, property_name in definition.satisfies
        ],
    }


def _canonical_interface(interface: InterfaceType) -> InterfaceType:
    return InterfaceType(interface.name, _canonicalize_by_name(interface.properties, _canonical_property))


def _canonical_node(node_type: NodeType) -> NodeType:
    return NodeType(
        node_type.name,
        _canonicalize_by_name(node_type.properties, _canonical_property),
        _canonical_constraints(node_type.constraints),
        tuple(sorted(set(node_type.implements))),
        _canonical_annotations(node_type.annotations),
    )


def _canonical_edge(edge_type: EdgeType) -> EdgeType:
    return EdgeType(
        edge_type.name,
        edge_type.source,
        edge_type.target,
        _canonicalize_by_name(edge_type.properties, _canonical_property),
        _canonical_constraints(edge_type.constraints),
        edge_type.min_cardinality,
        edge_type.max_cardinality,
        _canonical_annotations(edge_type.annotations),
    )


def _canonical_property(definition: PropertyDefinition) -> PropertyDefinition:
    return PropertyDefinition(
        definition.name,
        definition.type,
        _canonical_annotations(definition.annotations),
        tuple(sorted(set(definition.inline_constraints))),
        definition.embed,
        None if definition.default is None else default_literal(definition.type, definition.default.text),
        definition.declared_directly,
        tuple(sorted(set(definition.satisfies))),
    )


def _canonical_annotations(annotations: Iterable[StoredAnnotation]) -> tuple[StoredAnnotation, ...]:
    unique_annotations = {replace(annotation, options=tuple(sorted(annotation.options))) for annotation in annotations}
    return tuple(sorted(unique_annotations, key=lambda annotation: compact_json(annotation_json(annotation))))


def _canonical_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    by_sort_key = {
        constraint_sort_key(constraint): constraint for constraint in map(_canonical_constraint, constraints)
    }
    return tuple(by_sort_key[key] for key in sorted(by_sort_key))


def _canonical_constraint(constraint: Constraint) -> Constraint:
    if isinstance(constraint, Range | Check):
        return constraint
    sorted_columns = tuple(sorted(set(constraint.columns)))
    if isinstance(constraint, Index):
        return Index(sorted_columns, tuple(sorted(constraint.options)))
    return replace(constraint, columns=sorted_columns)


def _canonicalize_by_name(
    items: Iterable[_NamedItem], canonicalize_item: Callable[[_NamedItem], _NamedItem]
) -> tuple[_NamedItem, ...]:
    return tuple(canonicalize_item(item) for item in sorted(items, key=lambda item: item.name))
