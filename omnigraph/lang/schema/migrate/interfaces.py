"""Compares the interfaces of nodes before and after.

The interfaces that a node implements and the origin of its properties cannot change yet; an
interface that no remaining node implements may be dropped.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Interface, Node, Property
from omnigraph.lang.schema.ir import AnyType, SchemaIR

from .pair import Pair
from .steps import Step, unsupported


def implements_step(pair: Pair) -> Iterator[Step]:
    """Refuse a change to the list of implemented interfaces."""
    was, now = _implemented(pair.before, pair.old), _implemented(pair.after, pair.new)
    if was == now:
        return
    parts = [f"no longer implements {name}" for name in sorted(set(was.values()) - {*now.values()})]
    parts += [f"now implements {name}" for name in sorted(set(now.values()) - {*was.values()})]
    yield unsupported("OG-BC-102", pair.entity(), "; ".join(parts))


def origin_step(pair: Pair, old: Property, new: Property) -> Iterator[Step]:
    """Refuse to move a property between its type and an interface."""
    if _implemented(pair.before, pair.old) != _implemented(pair.after, pair.new):
        return  # the list of interfaces is already refused as a whole
    was, now = _origin(pair.before, old), _origin(pair.after, new)
    if old.declared_directly != new.declared_directly:
        places = ("in the node", "by an interface")
        here, there = places if old.declared_directly else reversed(places)
        reason = f"was declared {here} and is now declared {there}"
        yield unsupported("OG-BC-103", pair.entity(new.name), reason)
    elif was != now:
        gained = {f"{i}.{p}" for i, p in new.satisfies} - {f"{i}.{p}" for i, p in old.satisfies}
        what = "now satisfies" if gained else "no longer satisfies"
        lost = {f"{i}.{p}" for i, p in old.satisfies} - {f"{i}.{p}" for i, p in new.satisfies}
        reason = f"{what} the interface property {', '.join(sorted(gained or lost))}"
        yield unsupported("OG-BC-103", pair.entity(new.name), reason)


def remaining_nodes(before: SchemaIR, after: SchemaIR, interface: Interface) -> tuple[str, ...]:
    """Return the accepted nodes that implement an interface and are not dropped themselves."""
    kept = {one.type_id for one in after.types}
    return tuple(
        node.name
        for node in before.catalog.nodes
        if interface.name in node.implements and before.type_id("node", node.name) in kept
    )


def _implemented(ir: SchemaIR, one: AnyType) -> dict[int, str]:
    if not isinstance(one, Node):
        return {}
    return {ir.type_id("interface", name): name for name in one.implements}


def _origin(ir: SchemaIR, one: Property) -> frozenset[int]:
    """Return the ids of the interface properties that a property satisfies."""
    return frozenset(ir.property_id("interface", *pair) for pair in one.satisfies)
