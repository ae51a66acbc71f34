"""Compare entire types, kind by kind, and order the steps for each type.

Interfaces come first, then nodes, then edges. Within a kind, types are ordered by their names in the new schema, with
dropped types last. Within a type, the steps have a fixed order: rename, interfaces or endpoints, annotations,
properties, constraints, cardinality.
"""

from collections.abc import Callable, Iterator

from omnigraph.lang.schema.catalog import EdgeType, InterfaceType
from omnigraph.lang.schema.ir import TYPE_KINDS, CatalogType, SchemaIR, catalog_types

from .annotation_changes import reader_texts_differ, refuse_annotation_changes
from .constraints import constraint_steps
from .interfaces import implements_steps, remaining_nodes
from .properties import property_steps
from .steps import (
    AddType,
    CardinalityBounds,
    ChangeCardinality,
    ChangeEndpoints,
    DropMode,
    DropType,
    EndpointTypes,
    MigrationStep,
    RenameType,
    UpdateTypeMetadata,
    make_unsupported_change,
    rating_members,
)
from .type_pair import TypePair

_DROP_CODES = {"node": "OG-DS-102", "edge": "OG-DS-103"}


def all_steps(
    old_ir: SchemaIR, new_ir: SchemaIR, drop_mode: DropMode, *, is_accepted: bool = False
) -> Iterator[MigrationStep]:
    """Yield every step from one schema to the other. Types are matched by id, not by name.

    If `is_accepted` is true, both schemas belong to commits, or a merge has already checked the new one. In that case,
    a type change that only a merge can make is shown as a conversion, or as a drop and an addition.
    """
    old_types = {
        old_ir.type_id(declared_type.kind, declared_type.name): declared_type
        for declared_type in catalog_types(old_ir.catalog)
    }
    new_types = {
        new_ir.type_id(declared_type.kind, declared_type.name): declared_type
        for declared_type in catalog_types(new_ir.catalog)
    }
    for type_kind in TYPE_KINDS:
        for type_id, declared_type in new_types.items():
            if declared_type.kind == type_kind and type_id not in old_types:
                yield AddType(type_kind=type_kind, name=declared_type.name)
            elif declared_type.kind == type_kind:
                yield from type_steps(
                    TypePair(old_ir, new_ir, old_types[type_id], declared_type, drop_mode, is_accepted)
                )
        for type_id, declared_type in old_types.items():
            if declared_type.kind == type_kind and type_id not in new_types:
                yield _drop_type_step(old_ir, new_ir, declared_type, drop_mode)


def type_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    """Yield the steps for a type that exists in both schemas."""
    for generate_steps in _STEP_GENERATORS:
        yield from generate_steps(type_pair)


def _rename_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    if type_pair.old_type.name != type_pair.new_type.name:
        yield RenameType(type_kind=type_pair.kind, old=type_pair.old_type.name, new=type_pair.new_type.name)


def _endpoint_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    old_edge, new_edge = type_pair.old_type, type_pair.new_type
    if not isinstance(old_edge, EdgeType) or not isinstance(new_edge, EdgeType):
        return
    old_ids = [type_pair.old_ir.type_id("node", type_name) for type_name in (old_edge.source, old_edge.target)]
    new_ids = [type_pair.new_ir.type_id("node", type_name) for type_name in (new_edge.source, new_edge.target)]
    if old_ids != new_ids:
        yield ChangeEndpoints(
            type_name=new_edge.name,
            old=EndpointTypes(old_edge.source, old_edge.target),
            new=EndpointTypes(new_edge.source, new_edge.target),
            **rating_members("OG-ED-101"),
        )


def _annotation_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    old_type, new_type = type_pair.old_type, type_pair.new_type
    if isinstance(old_type, InterfaceType) or isinstance(new_type, InterfaceType):
        return
    yield from refuse_annotation_changes(type_pair.entity_label(), old_type.annotations, new_type.annotations)
    if reader_texts_differ(old_type.annotations, new_type.annotations):
        yield UpdateTypeMetadata(type_kind=type_pair.kind, name=new_type.name, annotations=new_type.annotations)


def _cardinality_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    old_edge, new_edge = type_pair.old_type, type_pair.new_type
    if not isinstance(old_edge, EdgeType) or not isinstance(new_edge, EdgeType):
        return
    old_bounds = CardinalityBounds(old_edge.min_cardinality, old_edge.max_cardinality)
    new_bounds = CardinalityBounds(new_edge.min_cardinality, new_edge.max_cardinality)
    if old_bounds != new_bounds:
        rating = rating_members(None if new_bounds.includes(old_bounds) else "OG-MF-111")
        yield ChangeCardinality(type_name=new_edge.name, old=old_bounds, new=new_bounds, **rating)


# The order in which a type's steps are listed.
_STEP_GENERATORS: tuple[Callable[[TypePair], Iterator[MigrationStep]], ...] = (
    _rename_steps,
    implements_steps,
    _endpoint_steps,
    _annotation_steps,
    property_steps,
    constraint_steps,
    _cardinality_steps,
)


def _drop_type_step(
    old_ir: SchemaIR, new_ir: SchemaIR, dropped_type: CatalogType, drop_mode: DropMode
) -> MigrationStep:
    if isinstance(dropped_type, InterfaceType):
        implementing_nodes = remaining_nodes(old_ir, new_ir, dropped_type)
        if implementing_nodes:
            reason = f"the interface is still implemented by {', '.join(implementing_nodes)}"
            return make_unsupported_change("OG-BC-104", f"interface:{dropped_type.name}", reason)
    rating = rating_members(_DROP_CODES.get(dropped_type.kind))
    if rating and drop_mode == "hard":
        rating["severity"] = "error"
    return DropType(type_kind=dropped_type.kind, name=dropped_type.name, mode=drop_mode, **rating)
