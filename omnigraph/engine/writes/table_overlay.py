"""Track the changes that an operation has made to one table, and apply new writes to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.rules.delta import Addresses, Positions, TableDelta, as_single_array
from omnigraph.storage.arrow import table_key
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.values.table_key import TableKey


@dataclass(slots=True)
class TableOverlay:
    """The changes that an operation has made to one table so far.

    `row_ids` and `addresses` are aligned with `written_rows` and identify the stored row that each written row
    replaces.
    """

    entity_type: NodeType | EdgeType
    written_rows: pa.Table
    row_ids: Positions
    addresses: Addresses
    removed_rows: pa.Table
    replaced_rows: pa.Table

    @property
    def table_key(self) -> TableKey:
        """The key of the table, such as `node:Person`."""
        return table_key(self.entity_type)


def apply_write(table_overlay: TableOverlay, new_rows: pa.Table, origin: int) -> None:
    """Add written rows to the changes, replacing any rows with the same ids."""
    ids = as_single_array(new_rows["id"])
    row_ids = np.full(len(ids), origin, np.int64)
    addresses = np.zeros(len(ids), np.uint64)
    if table_overlay.written_rows.num_rows:
        _replace_written(table_overlay, ids, row_ids, addresses)
    if table_overlay.removed_rows.num_rows:
        _restore_removed(table_overlay, ids, row_ids, addresses)
    table_overlay.written_rows = pa.concat_tables(
        [table_overlay.written_rows, new_rows.select(table_overlay.written_rows.column_names)]
    )
    table_overlay.row_ids = np.concatenate([table_overlay.row_ids, row_ids])
    table_overlay.addresses = np.concatenate([table_overlay.addresses, addresses])


def _replace_written(table_overlay: TableOverlay, ids: pa.Array, row_ids: Positions, addresses: Addresses) -> None:
    written_ids = as_single_array(table_overlay.written_rows["id"])
    match_index = pc.index_in(ids, value_set=written_ids)
    is_match = pc.is_valid(match_index).to_numpy(zero_copy_only=False)
    if is_match.any():
        matched = match_index.drop_null().to_numpy()
        row_ids[is_match] = table_overlay.row_ids[matched]
        addresses[is_match] = table_overlay.addresses[matched]
        discard_written(table_overlay, pc.is_in(written_ids, value_set=ids).to_numpy(zero_copy_only=False))


def _restore_removed(table_overlay: TableOverlay, ids: pa.Array, row_ids: Positions, addresses: Addresses) -> None:
    """If a removed row is written again, record the new row as a replacement of the stored row."""
    removed_ids = as_single_array(table_overlay.removed_rows["id"])
    match_index = pc.index_in(ids, value_set=removed_ids)
    is_match = pc.is_valid(match_index).to_numpy(zero_copy_only=False)
    if is_match.any():
        restored = table_overlay.removed_rows.take(match_index.drop_null())
        row_ids[is_match] = restored[ROW_ID].to_numpy().astype(np.int64)
        addresses[is_match] = restored[ROW_ADDRESS].to_numpy()
        table_overlay.replaced_rows = pa.concat_tables(
            [table_overlay.replaced_rows, restored.select(table_overlay.replaced_rows.column_names)]
        )
        table_overlay.removed_rows = table_overlay.removed_rows.filter(pc.invert(pc.is_in(removed_ids, value_set=ids)))


def discard_written(table_overlay: TableOverlay, written_mask: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    """Drop written rows.

    The stored rows that they replaced become visible, unless the caller writes or removes rows with the same ids.
    """
    if written_mask.any():
        table_overlay.written_rows = table_overlay.written_rows.filter(pa.array(~written_mask))
        table_overlay.row_ids = table_overlay.row_ids[~written_mask]
        table_overlay.addresses = table_overlay.addresses[~written_mask]


def build_table_delta(table_overlay: TableOverlay) -> TableDelta:
    """Return the net effect of the changes to a table."""
    is_edge_table = isinstance(table_overlay.entity_type, EdgeType)
    return TableDelta(
        table_overlay.table_key,
        table_overlay.written_rows,
        np.arange(table_overlay.written_rows.num_rows),
        table_overlay.row_ids,
        table_overlay.addresses,
        removed_rows=table_overlay.removed_rows,
        replaced_edges=table_overlay.replaced_rows if is_edge_table else None,
        row_rules_checked=True,
    )
