"""Row filters, by table, for the stored rows that a patch or a deletion depends on.

A patch depends on the patched properties in the rows that it identifies. A deletion depends on all columns in the rows
that it identifies and, if these are nodes, on their edges.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.publish.unread_changes import RowFilter, RowMask
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import NO_IDS, as_single_array
from omnigraph.values.table_key import TableKey

from .partial_records import PartialRows

_ENDPOINTS = ("src", "dst")
_NO_PAIRS = pa.table(dict.fromkeys(_ENDPOINTS, NO_IDS))


@dataclass(frozen=True, slots=True)
class NamedRows:
    """A filter that selects rows by id, edges by their endpoint pair, and all edges of the given nodes."""

    ids: pa.Array
    columns: frozenset[str] | None = None
    pairs: pa.Table = field(default_factory=lambda: _NO_PAIRS)
    source_ids: pa.Array = field(default_factory=lambda: NO_IDS)
    target_ids: pa.Array = field(default_factory=lambda: NO_IDS)

    def matches(self, _txn: WriteTxn, rows: pa.Table) -> RowMask:
        """Return a mask of the matching rows."""
        is_match = _is_in(rows, "id", self.ids)
        if len(self.source_ids):
            is_match |= _is_in(rows, "src", self.source_ids)
        if len(self.target_ids):
            is_match |= _is_in(rows, "dst", self.target_ids)
        return is_match | self._is_pair(rows) if self.pairs.num_rows else is_match

    def _is_pair(self, rows: pa.Table) -> RowMask:
        named_pairs = set(zip(*(self.pairs[name].to_pylist() for name in _ENDPOINTS), strict=True))
        row_pairs = zip(*(rows[name].to_pylist() for name in _ENDPOINTS), strict=True)
        return np.fromiter((pair in named_pairs for pair in row_pairs), bool, rows.num_rows)


def patched_row_filters(patches: Mapping[TableKey, PartialRows]) -> dict[TableKey, RowFilter | None]:
    """Return filters for the rows that a patch depends on."""
    return {
        key: NamedRows(partial_rows.ids, frozenset({"id", *partial_rows.patched_names}))
        for key, partial_rows in patches.items()
    }


def deleted_row_filters(catalog: Catalog, records: Mapping[TableKey, PartialRows]) -> dict[TableKey, RowFilter | None]:
    """Return filters for the rows that a deletion depends on: the rows to delete and the edges of deleted nodes."""
    filters: dict[TableKey, RowFilter | None] = {}
    node_ids = {key.type_name: partial_rows.ids for key, partial_rows in records.items() if not key.is_edge}
    for key, partial_rows in records.items():
        if not key.is_edge:
            filters[key] = NamedRows(partial_rows.ids)
    for edge_type in catalog.edges:
        edge_key = TableKey.edge(edge_type.name)
        edge_rows = records.get(edge_key)
        source_ids, target_ids = node_ids.get(edge_type.source, NO_IDS), node_ids.get(edge_type.target, NO_IDS)
        if edge_rows is not None or len(source_ids) or len(target_ids):
            ids = NO_IDS if edge_rows is None else edge_rows.ids.drop_null()
            pairs = _NO_PAIRS if edge_rows is None else _named_pairs(edge_rows)
            filters[edge_key] = NamedRows(ids, None, pairs, source_ids, target_ids)
    return filters


def _named_pairs(edge_rows: PartialRows) -> pa.Table:
    return edge_rows.rows.filter(pc.is_null(edge_rows.ids)).select(_ENDPOINTS)


def _is_in(rows: pa.Table, column_name: str, values: pa.Array) -> RowMask:
    is_match: RowMask = pc.is_in(as_single_array(rows[column_name]), value_set=values).to_numpy(zero_copy_only=False)
    return is_match
