"""Check the endpoints of edges that have already been written to fragments, one fragment at a time.

The ids of the load's own nodes are kept in memory as sets. All other endpoints are looked up in the graph with one
lookup per node type. Edges are read a second time only if an endpoint is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ingest.id_sets.hashed_ids import HashedIds
from omnigraph.ingest.id_sets.packed_ids import PackedIds, can_pack
from omnigraph.ingest.id_sets.text_hashes import TextArray
from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import NO_IDS, Delta, as_single_array
from omnigraph.rules.endpoints import dangling_violation, endpoint_columns
from omnigraph.rules.lookup import Lookup
from omnigraph.rules.violation import Violation
from omnigraph.storage.fragments import read_staged_fragment
from omnigraph.values.table_key import TableKey

from .run_threads import run_in_threads, thread_count
from .staged_input import StagedType, WrittenFragment

_LOOKUP_TEXTS = 1 << 14  # number of strings looked up together, small enough for the processor's cache
IdSet = PackedIds | HashedIds
EdgeFragment = tuple[EdgeType, WrittenFragment]
IdsByType = dict[TableKey, pa.Array]


@dataclass(frozen=True, slots=True)
class WrittenEdges:
    """The edge fragments of a load, and the ids of the nodes that the load writes."""

    txn: WriteTxn
    fragments: Sequence[EdgeFragment]
    node_ids: Mapping[TableKey, IdSet]

    def read(self, edge_fragment: EdgeFragment, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns of a fragment."""
        edge_type, fragment = edge_fragment
        table = self.txn.table(TableKey.edge(edge_type.name))
        return read_staged_fragment(self.txn.store, table, fragment.description, columns)

    def find_unwritten_endpoints(self, edge_fragment: EdgeFragment) -> IdsByType:
        """Return the endpoints in a fragment that are not nodes of the same load, by node type."""
        unwritten: dict[TableKey, list[pa.Array]] = {}
        for batch in self.read(edge_fragment, ["src", "dst"]):
            for _, column, node_key in endpoint_columns(edge_fragment[0]):
                unwritten_ids = _without_known(batch.column(column), self.node_ids.get(node_key))
                if len(unwritten_ids):
                    unwritten.setdefault(node_key, []).append(unwritten_ids)
        return {node_key: pa.chunked_array(id_arrays).unique() for node_key, id_arrays in unwritten.items()}


def written_edges(
    txn: WriteTxn, catalog: Catalog, delta: Delta, staged_types: Mapping[TableKey, StagedType]
) -> WrittenEdges:
    """Collect the edge fragments whose endpoints must be checked, and the ids that their endpoints may have."""
    fragments = [
        (edge_type, fragment)
        for edge_type in catalog.edges
        if (edge_key := TableKey.edge(edge_type.name)) in staged_types
        for fragment in staged_types[edge_key].fragments
        if not fragment.is_kept
    ]
    node_keys = {node_key for edge_type, _ in fragments for _, _, node_key in endpoint_columns(edge_type)}
    node_ids = {node_key: build_id_set(delta.tables[node_key].ids) for node_key in node_keys & set(delta.tables)}
    return WrittenEdges(txn, fragments, node_ids)


def build_id_set(ids: pa.Array) -> IdSet:
    """Build a set of ids in memory."""
    texts = TextArray.from_arrow(ids)
    return PackedIds.build(texts) if can_pack(texts) else HashedIds.build(texts)


def missing_endpoint_violations(
    edges: WrittenEdges, catalog: Catalog, delta: Delta, lookup: Lookup
) -> Iterator[Violation]:
    """Yield a violation for each endpoint that is neither a node of the load nor a stored node."""
    found_ids = run_in_threads(edges.find_unwritten_endpoints, edges.fragments, thread_count(), Event())
    missing_ids = {
        node_key: _find_missing(
            node_key, [ids[node_key] for ids in found_ids if ids and node_key in ids], delta, lookup
        )
        for node_key in sorted({node_key for ids in found_ids for node_key in ids or ()})
    }
    if not any(map(len, missing_ids.values())):
        return
    for edge_fragment in edges.fragments:
        yield from _fragment_violations(edges, edge_fragment, catalog, missing_ids)


def _find_missing(node_key: TableKey, id_arrays: Sequence[pa.Array], delta: Delta, lookup: Lookup) -> pa.Array:
    endpoint_ids = pa.chunked_array(id_arrays).unique()
    node_delta = delta.get(node_key)
    if node_delta is not None and node_delta.replaces_table:
        return endpoint_ids
    stored_ids = as_single_array(lookup.find(node_key, {"id": endpoint_ids}, ["id"])["id"])
    return endpoint_ids.filter(pc.invert(pc.is_in(endpoint_ids, value_set=stored_ids)))


def _fragment_violations(
    edges: WrittenEdges, edge_fragment: EdgeFragment, catalog: Catalog, missing_ids: IdsByType
) -> Iterator[Violation]:
    edge_type, fragment = edge_fragment
    positions, first_row = fragment.positions, 0
    for batch in edges.read(edge_fragment, ["id", "src", "dst"]):
        for endpoint in endpoint_columns(edge_type):
            is_missing = pc.is_in(batch.column(endpoint[1]), value_set=missing_ids.get(endpoint[2], NO_IDS))
            for row_index in np.flatnonzero(is_missing.to_numpy(zero_copy_only=False)).tolist():
                edge_row = batch.slice(row_index, 1).to_pylist()[0]
                yield dangling_violation(catalog, endpoint, edge_row, int(positions[first_row + row_index]))
        first_row += batch.num_rows


def _without_known(column: pa.Array, known_ids: IdSet | None) -> pa.Array:
    if known_ids is None:
        return column.unique()
    position_arrays = [
        start + known_ids.missing_positions(TextArray.from_arrow(column.slice(start, _LOOKUP_TEXTS)))
        for start in range(0, len(column), _LOOKUP_TEXTS)
    ]
    positions = np.concatenate(position_arrays) if position_arrays else np.zeros(0, np.int64)
    return column.take(pa.array(positions)) if len(positions) else NO_IDS
