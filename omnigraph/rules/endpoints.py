"""Every edge has both its nodes, in the final image of an operation.

Looks at written edges, and at stored edges of nodes that go. One question per node type, however
many edge types point to it.
"""

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, Edge

from .delta import NO_IDS, Delta, TableDelta, flat
from .lookup import Lookup
from .violation import Violation

End = tuple[Edge, str, str]  # the edge type, src or dst, the key of the node table


def ends_of(one: Edge) -> tuple[End, End]:
    """Both ends of an edge type."""
    return (one, "src", f"node:{one.source}"), (one, "dst", f"node:{one.target}")


def endpoint_violations(catalog: Catalog, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Written edges without a node, then stored edges that would lose one."""
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
    """Ids of stored nodes that are not there afterwards."""
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
            value = values[at].as_py()
            yield Violation(
                "endpoint",
                written.key,
                written.ids[at].as_py(),
                column,
                f"{column} '{value}' not found in {key.partition(':')[2]}",
                written.line(int(written.latest[at])),
                value,
            )


def _known(
    key: str, ends: list[End], delta: Delta, lookup: Lookup, gone: dict[str, pa.Array]
) -> pa.Array:
    """Of the ids that written edges use, those that exist afterwards."""
    tables = [(delta.tables[f"edge:{one.name}"], column) for one, column, to in ends if to == key]
    used = pa.chunked_array(
        chain.from_iterable(one.rows[column].chunks for one, column in tables), pa.string()
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
    """Stored edges that the operation leaves alone, and that point to a node that goes."""
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
