"""Evaluate every rule against a delta, in a fixed order.

Row rules come first, followed by keys and uniqueness, endpoints, and cardinality. A mutation stops at the first
violation, whereas a load collects all violations. The evaluator also matches each written row to the stored row that it
replaces.
"""

from collections.abc import Iterator
from itertools import islice

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.type_names import type_for_key

from .cardinality import cardinality_violations
from .delta import Delta
from .endpoints import endpoint_violations
from .existing_rows import repeated_ids, resolve_existing
from .lookup import Lookup
from .row_rules import row_violations
from .unique import repeated_records, unique_violations
from .violation import Violation


def check_delta(
    catalog: Catalog, delta: Delta, lookup: Lookup, *, limit: int | None = 1
) -> tuple[Delta, list[Violation]]:
    """Return at most `limit` violations, and the delta with its written rows matched to stored rows."""
    violations = list(islice(_check_input(catalog, delta), limit))
    if violations and limit == 1:
        return delta, violations
    resolved, conflicts = resolve_existing(delta, lookup)
    violations += conflicts
    violations += islice(_check_final_state(catalog, resolved, lookup), None if limit is None else limit)
    return resolved, violations[:limit]


def _check_input(catalog: Catalog, delta: Delta) -> Iterator[Violation]:
    """Yield the violations that can be detected from the delta alone."""
    for table_delta in delta.tables.values():
        if not table_delta.row_rules_checked:
            yield from row_violations(
                type_for_key(catalog, table_delta.table_key), table_delta.row_versions, table_delta.input_lines
            )
    for table_delta in delta.tables.values():
        entity_type = type_for_key(catalog, table_delta.table_key)
        yield from repeated_records(entity_type, table_delta)
        if not (table_delta.from_records and entity_type.key):
            yield from repeated_ids(table_delta)


def _check_final_state(catalog: Catalog, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Yield the violations that can be detected only by reading stored rows."""
    for table_delta in delta.tables.values():
        yield from unique_violations(type_for_key(catalog, table_delta.table_key), table_delta, lookup)
    yield from endpoint_violations(catalog, delta, lookup)
    for edge_type in catalog.edges:
        yield from cardinality_violations(edge_type, delta, lookup)
