"""The `@card` rule, which limits how many edges of a given type may start at one node.

Edges are counted only for the sources that an operation affects: the sources of written edges, and the previous sources
of moved or removed edges. Sources that the operation removes are skipped.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.values.table_key import TableKey

from .delta import NO_IDS, Delta, Positions, TableDelta, as_single_array
from .lookup import Lookup
from .violation import Violation


def cardinality_violations(edge_type: EdgeType, delta: Delta, lookup: Lookup) -> Iterator[Violation]:
    """Yield a violation for each source that would end up with too few or too many edges."""
    edge_delta = delta.get(TableKey.edge(edge_type.name))
    if edge_delta is None or (edge_type.min_cardinality == 0 and edge_type.max_cardinality is None):
        return
    stored_sources = _read_stored_sources(edge_delta, lookup)
    touched_sources = _touched_sources(edge_type, edge_delta, delta, lookup, stored_sources)
    if not len(touched_sources):
        return
    retained_sources = (
        stored_sources if stored_sources is not None else _read_retained_sources(edge_delta, lookup, touched_sources)
    )
    final_sources = (
        [as_single_array(edge_delta.rows["src"])]
        if edge_delta.replaces_table
        else [as_single_array(edge_delta.rows["src"]), retained_sources]
    )
    edge_counts = _count_by_source(touched_sources, pa.chunked_array(final_sources, pa.string()))
    out_of_bounds = edge_counts < edge_type.min_cardinality
    if edge_type.max_cardinality is not None:
        out_of_bounds |= edge_counts > edge_type.max_cardinality
    for source_index in np.flatnonzero(out_of_bounds):
        yield _locate_violation(
            edge_type, edge_delta, touched_sources[int(source_index)].as_py(), int(edge_counts[source_index])
        )


def _read_stored_sources(edge_delta: TableDelta, lookup: Lookup) -> pa.Array | None:
    """Return the sources of all stored edges if the operation replaces the whole table, or None otherwise."""
    return as_single_array(lookup.scan(edge_delta.table_key, ["src"])["src"]) if edge_delta.replaces_table else None


def _touched_sources(
    edge_type: EdgeType, edge_delta: TableDelta, delta: Delta, lookup: Lookup, stored_sources: pa.Array | None
) -> pa.Array:
    source_chunks = [*edge_delta.rows["src"].chunks]
    source_chunks += edge_delta.removed_rows["src"].chunks if edge_delta.removed_rows is not None else []
    source_chunks += edge_delta.replaced_edges["src"].chunks if edge_delta.replaced_edges is not None else []
    source_chunks += [stored_sources] if stored_sources is not None else []
    sources = pa.chunked_array(source_chunks, pa.string()).unique()
    node_delta = delta.get(TableKey.node(edge_type.source))
    if node_delta is None or not len(sources):
        return sources
    if node_delta.replaces_table:
        return sources.filter(pc.is_in(sources, value_set=node_delta.ids))
    removed_nodes = node_delta.removed_ids
    return sources.filter(pc.invert(pc.is_in(sources, value_set=removed_nodes))) if len(removed_nodes) else sources


def _read_retained_sources(edge_delta: TableDelta, lookup: Lookup, sources: pa.Array) -> pa.Array:
    """Return the sources of stored edges that the operation leaves unchanged."""
    stored_edges = lookup.find(edge_delta.table_key, {"src": sources}, ["id", "src"])
    for excluded_ids in (edge_delta.ids, edge_delta.removed_ids):
        stored_edges = stored_edges.filter(pc.invert(pc.is_in(stored_edges["id"], value_set=excluded_ids)))
    return as_single_array(stored_edges["src"]) if stored_edges.num_rows else NO_IDS


def _count_by_source(sources: pa.Array, edge_sources: pa.ChunkedArray) -> Positions:
    source_positions = pc.index_in(edge_sources, value_set=sources).drop_null().to_numpy()
    return np.bincount(source_positions, minlength=len(sources))


def _locate_violation(edge_type: EdgeType, edge_delta: TableDelta, source_id: str, edge_count: int) -> Violation:
    row_position = pc.index(edge_delta.rows["src"], pa.scalar(source_id)).as_py()
    input_line = edge_delta.input_line(int(edge_delta.latest_positions[row_position])) if row_position >= 0 else None
    return cardinality_violation(edge_type, source_id, edge_count, input_line)


def cardinality_violation(edge_type: EdgeType, source_id: str, edge_count: int, input_line: int | None) -> Violation:
    """Return the violation for a source whose `edge_count` is out of bounds."""
    expected_bound = (
        f"at least {edge_type.min_cardinality}"
        if edge_count < edge_type.min_cardinality
        else f"at most {edge_type.max_cardinality}"
    )
    edges = f"{edge_count} edge{'s'[: edge_count != 1]}"
    reason = f"source '{source_id}' has {edges}, but must have {expected_bound}"
    # If input rows are rejected, a source may end up with too few edges, but never with too many.
    required_id = source_id if edge_count < edge_type.min_cardinality else None
    table_key = TableKey.edge(edge_type.name)
    return Violation("@card", table_key, source_id, None, reason, input_line, edge_count, required_id=required_id)
