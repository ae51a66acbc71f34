"""Compares entire types, kind by kind, and orders the steps of each.

Interfaces, then nodes, then edges; within a kind in name order of the new schema, dropped types
last; within a type: rename, interfaces or endpoints, annotations, properties, constraints,
cardinality.
"""

from collections.abc import Callable, Iterator

from omnigraph.lang.schema.catalog import Edge, Interface
from omnigraph.lang.schema.ir import KINDS, AnyType, SchemaIR, types_of

from .constraints import constraint_steps
from .interfaces import implements_step, remaining_nodes
from .pair import Pair
from .properties import property_steps
from .steps import (
    AddType,
    Cardinality,
    ChangeCardinality,
    ChangeEndpoints,
    DropType,
    Endpoints,
    Mode,
    RenameType,
    Step,
    UpdateTypeMetadata,
    rated,
    unsupported,
)
from .texts import refused_notes, texts_differ

_DROPPED = {"node": "OG-DS-102", "edge": "OG-DS-103"}


def all_steps(before: SchemaIR, after: SchemaIR, mode: Mode) -> Iterator[Step]:
    """Return every step from one schema to the other; types are matched by id, never by name."""
    old = {before.type_id(one.kind, one.name): one for one in types_of(before.catalog)}
    new = {after.type_id(one.kind, one.name): one for one in types_of(after.catalog)}
    for kind in KINDS:
        for number, one in new.items():
            if one.kind == kind and number not in old:
                yield AddType(type_kind=kind, name=one.name)
            elif one.kind == kind:
                yield from type_steps(Pair(before, after, old[number], one, mode))
        for number, one in old.items():
            if one.kind == kind and number not in new:
                yield _dropped(before, after, one, mode)


def type_steps(pair: Pair) -> Iterator[Step]:
    """Return the steps for one type that remains."""
    for part in _PARTS:
        yield from part(pair)


def _rename(pair: Pair) -> Iterator[Step]:
    if pair.old.name != pair.new.name:
        yield RenameType(type_kind=pair.kind, old=pair.old.name, new=pair.new.name)


def _endpoints(pair: Pair) -> Iterator[Step]:
    old, new = pair.old, pair.new
    if not isinstance(old, Edge) or not isinstance(new, Edge):
        return
    was = [pair.before.type_id("node", name) for name in (old.source, old.target)]
    now = [pair.after.type_id("node", name) for name in (new.source, new.target)]
    if was != now:
        yield ChangeEndpoints(
            type_name=new.name,
            old=Endpoints(old.source, old.target),
            new=Endpoints(new.source, new.target),
            **rated("OG-ED-101"),
        )


def _texts(pair: Pair) -> Iterator[Step]:
    old, new = pair.old, pair.new
    if isinstance(old, Interface) or isinstance(new, Interface):
        return
    yield from refused_notes(pair.entity(), old.notes, new.notes)
    if texts_differ(old.notes, new.notes):
        yield UpdateTypeMetadata(type_kind=pair.kind, name=new.name, annotations=new.notes)


def _cardinality(pair: Pair) -> Iterator[Step]:
    old, new = pair.old, pair.new
    if not isinstance(old, Edge) or not isinstance(new, Edge):
        return
    was, now = Cardinality(old.low, old.high), Cardinality(new.low, new.high)
    if was != now:
        risk = rated(None if now.allows(was) else "OG-MF-111")
        yield ChangeCardinality(type_name=new.name, old=was, new=now, **risk)


# The order of the steps of a type.
_PARTS: tuple[Callable[[Pair], Iterator[Step]], ...] = (
    _rename,
    implements_step,
    _endpoints,
    _texts,
    property_steps,
    constraint_steps,
    _cardinality,
)


def _dropped(before: SchemaIR, after: SchemaIR, one: AnyType, mode: Mode) -> Step:
    if isinstance(one, Interface):
        users = remaining_nodes(before, after, one)
        if users:
            reason = f"it is implemented by {', '.join(users)}"
            return unsupported("OG-BC-104", f"interface:{one.name}", reason)
    risk = rated(_DROPPED.get(one.kind))
    if risk and mode == "hard":
        risk["severity"] = "error"
    return DropType(type_kind=one.kind, name=one.name, mode=mode, **risk)
