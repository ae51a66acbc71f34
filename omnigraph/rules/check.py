"""The evaluator: applies every rule to a delta, in a fixed order.

Rows first, then keys and uniqueness, then endpoints, then cardinality. A mutation stops at the
first violation, a load collects all; both get the delta back with the stored rows it replaces.
"""

from collections.abc import Iterator
from itertools import islice

from omnigraph.errors import InternalError
from omnigraph.lang.schema.catalog import Catalog, Edge, Node

from .cardinality import cardinality_violations
from .delta import Delta
from .endpoints import endpoint_violations
from .identity import repeated_ids, resolve
from .lookup import Lookup
from .unique import repeated_records, unique_violations
from .values import row_violations
from .violation import Violation


def check(
    catalog: Catalog, delta: Delta, lookup: Lookup, *, limit: int | None = 1
) -> tuple[Delta, list[Violation]]:
    """Return the delta with its stored rows resolved, and at most `limit` violations."""
    found = list(islice(_of_input(catalog, delta), limit))
    if found and limit == 1:
        return delta, found
    resolved, taken = resolve(delta, lookup)
    found += taken
    found += islice(_of_state(catalog, resolved, lookup), None if limit is None else limit)
    return resolved, found[:limit]


def _of_input(catalog: Catalog, delta: Delta) -> Iterator[Violation]:
    """Yield violations that the delta alone shows."""
    for one in delta.tables.values():
        if not one.judged:
            yield from row_violations(type_named(catalog, one.key), one.versions, one.lines)
    for one in delta.tables.values():
        type_ = type_named(catalog, one.key)
        yield from repeated_records(type_, one)
        if not (one.records and isinstance(type_, Node) and type_.key):
            yield from repeated_ids(one)


def _of_state(catalog: Catalog, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Yield violations that depend on stored rows."""
    for one in delta.tables.values():
        yield from unique_violations(type_named(catalog, one.key), one, lookup)
    yield from endpoint_violations(catalog, delta, lookup)
    for edge in catalog.edges:
        yield from cardinality_violations(edge, delta, lookup)


def type_named(catalog: Catalog, key: str) -> Node | Edge:
    """Return the type of a table key."""
    kind, _, name = key.partition(":")
    found: Node | Edge | None = catalog.node(name) if kind == "node" else catalog.edge(name)
    if found is None:
        raise InternalError(f"the schema has no type for table {key}")
    return found
