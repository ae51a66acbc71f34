"""Every edge must have both its nodes in the final state of an operation.

Checks written edges, and stored edges of removed nodes. Makes one lookup per node type, no matter
how many edge types point to it.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ClientError
from omnigraph.lang.schema.catalog import Catalog, Edge, Node
from omnigraph.values import PropertyType, ScalarType, coerce_loaded, entity_id

from .delta import NO_IDS, Delta, TableDelta, flat
from .lookup import Lookup
from .violation import Violation

End = tuple[Edge, str, str]  # the edge type, `src` or `dst`, the node table key
_WORDS = {"src": "from", "dst": "to"}


def ends_of(one: Edge) -> tuple[End, End]:
    """Return both endpoints of an edge type."""
    return (one, "src", f"node:{one.source}"), (one, "dst", f"node:{one.target}")


def endpoint_violations(catalog: Catalog, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Yield written edges without a node, then stored edges that would lose one."""
    gone = {key: _gone(delta.get(key), lookup) for key in _node_keys(catalog, delta)}
    yield from _dangling(catalog, delta, lookup, gone)
    if delta.cascaded:
        return
    for one in catalog.edges:
        for _, column, key in ends_of(one):
            if len(gone.get(key, NO_IDS)):
                yield from _orphaned(one, column, key, delta, lookup, gone[key])


def _node_keys(catalog: Catalog, delta: Delta) -> list[str]:
    used = {key for one in catalog.edges for _, _, key in ends_of(one)}
    return [key for key in delta.tables if key in used]


def _gone(one: TableDelta | None, lookup: Lookup) -> pa.Array:
    """Return the ids of stored nodes that the operation removes."""
    if one is None:
        return NO_IDS
    stored = flat(lookup.scan(one.key, ["id"])["id"]) if one.whole else one.removed_ids
    if not len(stored):
        return stored
    return stored.filter(pc.invert(pc.is_in(stored, value_set=one.ids)))


def _dangling(
    catalog: Catalog, delta: Delta, lookup: Lookup, gone: dict[str, pa.Array]
) -> Iterator[Violation]:
    ends = [
        end for one in catalog.edges for end in ends_of(one) if f"edge:{one.name}" in delta.tables
    ]
    known = {key: _known(key, ends, delta, lookup, gone) for key in {key for _, _, key in ends}}
    for one, column, key in ends:
        written = delta.tables[f"edge:{one.name}"]
        if not written.rows.num_rows:
            continue
        values = flat(written.rows[column])
        missing = pc.invert(pc.is_in(values, value_set=known[key]))
        for at in pc.indices_nonzero(missing).to_pylist():
            names = ("id", "src", "dst")
            row = {name: written.rows[name][at].as_py() for name in names}
            line = written.line(int(written.latest[at]))
            yield dangling(catalog, (one, column, key), row, line)


def dangling(catalog: Catalog, end: End, row: Mapping[str, Any], line: int | None) -> Violation:
    """Return the violation of an edge (`id`, `src` and `dst`) that lacks this endpoint."""
    edge, column, key = end
    value, name = row[column], key.partition(":")[2]
    return Violation(
        "endpoint",
        f"edge:{edge.name}",
        row["id"],
        column,
        f"{column} '{value}' not found in {name}",
        line,
        value,
        rests_on=value,
        edge=f"'{row['src']}' -> '{row['dst']}'",
        hint=_advice(catalog, name, column, value),
    )


def _advice(catalog: Catalog, name: str, column: str, value: str) -> str:
    """Explain how an endpoint is written, or what to do if it was written correctly."""
    node, end = catalog.node(name), _WORDS[column]
    if node is None or node.key is None:
        return f"`{end}` is the id of a {name}, which has no key: use its given or generated id"
    if len(node.key) > 1:
        members = ", ".join(node.key)
        return f'`{end}` is the id of a {name}: write ({members}) as a string like ["a","b"]'
    prop = node.property(node.key[0])
    meant = None if prop is None else _spelling(node, prop.type, value)
    if meant is not None and meant != value:
        return f"`{end}` is the id of a {name}, which spells this {node.key[0]} '{meant}'"
    return f"add a {name} with {node.key[0]} '{value}', or correct `{end}`"


def _spelling(node: Node, kind: PropertyType, value: str) -> str | None:
    """Return the id of a key that was written in a readable form, such as a date."""
    try:
        number = kind.scalar.is_float or kind.scalar in _NUMBERS
        given = float(value) if kind.scalar.is_float else int(value) if number else value
        stored = coerce_loaded(kind, given, type_name=node.name, property="key")
        return entity_id([kind], [stored])
    except (ClientError, ValueError):
        return None


_NUMBERS = (ScalarType.I32, ScalarType.I64, ScalarType.U32, ScalarType.U64)


def _known(
    key: str, ends: list[End], delta: Delta, lookup: Lookup, gone: dict[str, pa.Array]
) -> pa.Array:
    """Return the endpoint ids of written edges that exist in the final state."""
    tables = [(delta.tables[f"edge:{one.name}"], column) for one, column, to in ends if to == key]
    used = pa.chunked_array(
        chain.from_iterable(written.rows[column].chunks for written, column in tables), pa.string()
    ).unique()
    nodes = delta.get(key)
    here = nodes.ids if nodes is not None else NO_IDS
    left = used.filter(pc.invert(pc.is_in(used, value_set=here)))
    if nodes is not None and nodes.whole:
        return here
    lost = gone.get(key, NO_IDS)
    asked = left.filter(pc.invert(pc.is_in(left, value_set=lost))) if len(lost) else left
    if not len(asked):
        return here
    found = flat(lookup.find(key, {"id": asked}, ["id"])["id"])
    return pa.concat_arrays([here, found])


def _orphaned(
    one: Edge, column: str, key: str, delta: Delta, lookup: Lookup, gone: pa.Array
) -> Iterator[Violation]:
    """Yield unchanged stored edges that point to a removed node."""
    written = delta.get(f"edge:{one.name}")
    if written is not None and written.whole:
        return
    found = lookup.find(f"edge:{one.name}", {column: gone}, ["id", column])
    if written is not None:
        for ids in (written.ids, written.removed_ids):
            found = found.filter(pc.invert(pc.is_in(found["id"], value_set=ids)))
    for entity, value in zip(found["id"].to_pylist(), found[column].to_pylist(), strict=True):
        reason = f"{column} '{value}' not found in {key.partition(':')[2]}"
        yield Violation("endpoint", f"edge:{one.name}", entity, column, reason, value=value)
