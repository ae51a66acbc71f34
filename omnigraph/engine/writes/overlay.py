"""An overlay that combines the stored rows with the rows that an operation has written so far.

This module lets an operation read its own writes. A written row hides the stored row with the same id, so each id has
at most one visible row. Removed rows are not visible. Every read of stored rows is recorded as a requirement of the
commit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.expressions.evaluate import TableSource, true_mask
from omnigraph.engine.operators.fetch import columns_read
from omnigraph.engine.operators.pushdown import to_storage_filter
from omnigraph.errors import KeyConflict
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import NEW_ROW, NO_IDS, UNRESOLVED_ROW, Delta, as_single_array
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.rules.row_rules import row_violations
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.large_blobs import comparable_rows
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.value_equality import same_rows
from omnigraph.values.table_key import TableKey

from .table_overlay import TableOverlay, apply_write, build_table_delta, discard_written

ParamValues = Mapping[str, Any]
_ENDPOINT_COLUMNS = ("src", "dst")


@dataclass(slots=True)
class Overlay:
    """All tables in a base version, overlaid with the changes that one operation has made."""

    txn: WriteTxn
    ir: SchemaIR
    overlay_by_key: dict[TableKey, TableOverlay] = field(default_factory=dict)
    lookup: RecordingLookup = None  # type: ignore[assignment]
    change_count: int = 0
    _pending_writes: dict[TableKey, list["_PendingWrite"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lookup = RecordingLookup(self.txn)

    @property
    def catalog(self) -> Catalog:
        """The catalog of the schema in the base version."""
        return self.ir.catalog

    def row_schema_of(self, type_key: TableKey) -> pa.Schema:
        """Return the Arrow schema for the rows of a table."""
        return row_schema(self.txn.table(type_key).schema)

    def write(self, type_key: TableKey, new_rows: pa.Table, origin: int, *, reject_existing: bool = False) -> None:
        """Add rows, replacing any rows with the same ids.

        With `reject_existing`, raise `KeyConflict` instead of replacing a row.
        """
        if reject_existing and origin != NEW_ROW:
            self.insert(type_key, new_rows)
            self.overlay_of(type_key)
        else:
            self._add_pending(type_key, _PendingWrite(new_rows, origin))

    def insert(self, type_key: TableKey, new_rows: pa.Table) -> None:
        """Add new rows. If an id already exists, applying the pending writes raises `KeyConflict`."""
        self._add_pending(type_key, _PendingWrite(new_rows, NEW_ROW, rejects_existing=True))

    def _add_pending(self, type_key: TableKey, pending_write: "_PendingWrite") -> None:
        self._check_row_rules(type_key, pending_write.rows)
        self._pending_writes.setdefault(type_key, []).append(pending_write)
        self.change_count += 1

    def apply_pending(self) -> None:
        """Apply all pending writes. For each table, all ids that must be new are looked up at once."""
        for type_key in list(self._pending_writes):
            self.overlay_of(type_key)

    def update(
        self,
        type_key: TableKey,
        predicate: plan.Predicate,
        params: ParamValues,
        assigned_columns: Callable[[pa.Table], Mapping[str, pa.Array]],
    ) -> pa.Array:
        """Assign computed columns to all rows that match a predicate, and return the ids of these rows."""
        stored_rows = self._match_stored(type_key, predicate, params, self.row_schema_of(type_key).names)
        written_mask = self._match_written(self.overlay_of(type_key), predicate, params)
        return self._replace_rows(
            type_key, stored_rows, written_mask, lambda rows: _assign_columns(rows, assigned_columns(rows))
        )

    def update_by_id(
        self, type_key: TableKey, ids: pa.Array, columns: Mapping[str, pa.Array], *, skip_unchanged: bool = False
    ) -> pa.Array:
        """Assign column values to the rows with the given ids.

        The ids must be distinct and in the same order as the values. Returns the ids of the rows that exist. With
        `skip_unchanged`, stored rows with equal values are not written.
        """
        stored_rows = self._find_stored(type_key, ids, self.row_schema_of(type_key).names)
        written_mask = self._find_written(type_key, ids)
        written_ids = self.overlay_of(type_key).written_rows["id"].filter(pa.array(written_mask))
        existing_ids = pa.concat_arrays([as_single_array(stored_rows["id"]), as_single_array(written_ids)])
        if skip_unchanged:
            assigned_rows = _assign_by_id(stored_rows, ids, columns).select(list(columns))
            stored_rows = stored_rows.filter(
                pa.array(~same_rows(comparable_rows(assigned_rows), comparable_rows(stored_rows)))
            )
        self._replace_rows(type_key, stored_rows, written_mask, lambda rows: _assign_by_id(rows, ids, columns))
        return existing_ids

    def _replace_rows(
        self,
        type_key: TableKey,
        stored_rows: pa.Table,
        written_mask: np.ndarray[Any, np.dtype[np.bool_]],
        assign: Callable[[pa.Table], pa.Table],
    ) -> pa.Array:
        table_overlay, row_columns = self.overlay_of(type_key), self.row_schema_of(type_key)
        updated_rows = pa.concat_tables(
            [
                stored_rows.select(row_columns.names).cast(row_columns),
                table_overlay.written_rows.filter(pa.array(written_mask)),
            ]
        )
        if not updated_rows.num_rows:
            return NO_IDS
        updated_rows = assign(updated_rows)
        self._check_row_rules(type_key, updated_rows)
        stored_ids = stored_rows[ROW_ID].to_numpy().astype(np.int64)
        row_ids = np.concatenate([stored_ids, table_overlay.row_ids[written_mask]])
        addresses = np.concatenate([stored_rows[ROW_ADDRESS].to_numpy(), table_overlay.addresses[written_mask]])
        discard_written(table_overlay, written_mask)
        if type_key.is_edge:  # if an edge was moved, its previous endpoints are affected, too
            replaced_edges = stored_rows.select(table_overlay.replaced_rows.column_names)
            table_overlay.replaced_rows = pa.concat_tables(
                [table_overlay.replaced_rows, replaced_edges.cast(table_overlay.replaced_rows.schema)]
            )
        table_overlay.written_rows = pa.concat_tables([table_overlay.written_rows, updated_rows])
        table_overlay.row_ids = np.concatenate([table_overlay.row_ids, row_ids])
        table_overlay.addresses = np.concatenate([table_overlay.addresses, addresses])
        self.change_count += 1
        return as_single_array(updated_rows["id"])

    def delete(self, type_key: TableKey, predicate: plan.Predicate, params: ParamValues) -> pa.Array:
        """Remove the rows that match a predicate and return their ids."""
        table_overlay = self.overlay_of(type_key)
        stored_rows = self._match_stored(type_key, predicate, params, _identity_columns(table_overlay.entity_type))
        return self._remove_rows(table_overlay, stored_rows, self._match_written(table_overlay, predicate, params))

    def delete_by_id(self, type_key: TableKey, ids: pa.Array) -> pa.Array:
        """Remove the rows with these ids and return the ids of the removed rows."""
        table_overlay = self.overlay_of(type_key)
        stored_rows = self._find_stored(type_key, ids, _identity_columns(table_overlay.entity_type))
        return self._remove_rows(table_overlay, stored_rows, self._find_written(type_key, ids))

    def delete_edges_of(self, edge_type: EdgeType, node_type: str, deleted_ids: pa.Array) -> pa.Array:
        """Remove the edges attached to deleted nodes and return the ids of the removed edges."""
        table_overlay = self.overlay_of(TableKey.edge(edge_type.name))
        endpoint_columns = [
            endpoint_column
            for endpoint_column, endpoint_type in zip(
                _ENDPOINT_COLUMNS, (edge_type.source, edge_type.target), strict=True
            )
            if endpoint_type == node_type
        ]
        matching_edges = [
            self.lookup.find(
                table_overlay.table_key, {endpoint: deleted_ids}, _identity_columns(edge_type), with_row_ids=True
            )
            for endpoint in endpoint_columns
        ]
        stored_edges = self._exclude_overwritten(table_overlay, _distinct_by_id(pa.concat_tables(matching_edges)))
        written_mask = np.zeros(table_overlay.written_rows.num_rows, bool)
        for endpoint in endpoint_columns:
            written_mask |= pc.is_in(table_overlay.written_rows[endpoint], value_set=deleted_ids).to_numpy()
        return self._remove_rows(table_overlay, stored_edges, written_mask)

    def overlay_of(self, type_key: TableKey) -> TableOverlay:
        """Return the changes to a table, with all pending writes applied."""
        table_overlay = self.overlay_by_key.get(type_key)
        if table_overlay is None:
            table_overlay = self.overlay_by_key[type_key] = self._empty_overlay(type_key)
        pending_writes = self._pending_writes.pop(type_key, ())
        stored_ids = self._find_stored_ids(type_key, pending_writes)
        for pending_write in pending_writes:
            if pending_write.rejects_existing:
                _reject_existing_ids(table_overlay, pending_write.ids, stored_ids)
            apply_write(table_overlay, pending_write.rows, pending_write.origin)
        return table_overlay

    def delta(self) -> Delta:
        """Apply all pending writes, and return the net effect of all changes."""
        self.apply_pending()
        delta_by_key = {
            type_key: build_table_delta(table_overlay) for type_key, table_overlay in self.overlay_by_key.items()
        }
        return Delta(
            {
                type_key: table_delta
                for type_key, table_delta in sorted(delta_by_key.items())
                if not table_delta.is_empty
            },
            True,
        )

    def _empty_overlay(self, type_key: TableKey) -> TableOverlay:
        entity_type = type_for_key(self.catalog, type_key)
        id_columns = _identity_columns(entity_type)
        id_schema = pa.schema([(column_name, pa.string()) for column_name in id_columns])
        location_fields = pa.schema([(ROW_ID, pa.uint64()), (ROW_ADDRESS, pa.uint64())])
        no_removed = pa.schema([*id_schema, *location_fields]).empty_table()
        no_rows = self.row_schema_of(type_key).empty_table()
        no_locations = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        return TableOverlay(entity_type, no_rows, *no_locations, no_removed, id_schema.empty_table())

    def _match_stored(
        self, type_key: TableKey, predicate: plan.Predicate, params: ParamValues, columns: list[str]
    ) -> pa.Table:
        """Return the stored rows that match a predicate, except rows that the operation has changed."""
        constants = TableSource(pa.table({}), params).constant
        table_schema = self.txn.table(type_key).schema
        storage_filter = to_storage_filter(table_schema, predicate, constants)
        filter_columns = (
            [] if storage_filter is not None else sorted({column_name for _, column_name in columns_read(predicate)})
        )
        read_columns = list(dict.fromkeys([*columns, *filter_columns]))
        stored_rows = self.lookup.select(type_key, read_columns, storage_filter)
        if storage_filter is None and stored_rows.num_rows:
            stored_rows = stored_rows.filter(pa.array(true_mask(TableSource(stored_rows, params), predicate)))
        return self._exclude_overwritten(self.overlay_of(type_key), stored_rows)

    def _find_stored(self, type_key: TableKey, ids: pa.Array, columns: list[str]) -> pa.Table:
        """Return the stored rows with the given ids, except rows that the operation has changed."""
        stored_rows = self.lookup.select_by_id(type_key, columns, ids)
        return self._exclude_overwritten(self.overlay_of(type_key), stored_rows)

    def _find_written(self, type_key: TableKey, ids: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        written_ids = as_single_array(self.overlay_of(type_key).written_rows["id"])
        is_selected: np.ndarray[Any, np.dtype[np.bool_]] = pc.is_in(written_ids, value_set=ids).to_numpy(
            zero_copy_only=False
        )
        return is_selected

    def _exclude_overwritten(self, table_overlay: TableOverlay, stored_rows: pa.Table) -> pa.Table:
        for overwritten_ids in (table_overlay.written_rows["id"], table_overlay.removed_rows["id"]):
            if len(overwritten_ids) and stored_rows.num_rows:
                stored_rows = stored_rows.filter(
                    pc.invert(pc.is_in(stored_rows["id"], value_set=as_single_array(overwritten_ids)))
                )
        return stored_rows

    def _match_written(
        self, table_overlay: TableOverlay, predicate: plan.Predicate, params: ParamValues
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return a mask of the written rows that match a predicate."""
        if not table_overlay.written_rows.num_rows:
            return np.zeros(0, bool)
        return true_mask(TableSource(table_overlay.written_rows, params), predicate)

    def _remove_rows(
        self, table_overlay: TableOverlay, stored_rows: pa.Table, written_mask: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> pa.Array:
        removed_columns = table_overlay.removed_rows.column_names
        dropped_rows = table_overlay.written_rows.filter(pa.array(written_mask))
        deleted_ids = pa.concat_arrays([as_single_array(stored_rows["id"]), as_single_array(dropped_rows["id"])])
        located_rows = self._locate_stored(table_overlay, written_mask)
        table_overlay.removed_rows = pa.concat_tables(
            [
                table_overlay.removed_rows,
                *(
                    removed_part.select(removed_columns).cast(table_overlay.removed_rows.schema)
                    for removed_part in (stored_rows, located_rows)
                ),
            ]
        )
        discard_written(table_overlay, written_mask)
        self.change_count += len(deleted_ids) > 0
        return deleted_ids

    def _locate_stored(
        self, table_overlay: TableOverlay, written_mask: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> pa.Table:
        """Return the stored rows that were replaced by the written rows in `written_mask`."""
        located_mask = written_mask & (table_overlay.row_ids >= 0)
        id_columns = _identity_columns(table_overlay.entity_type)
        located_rows = table_overlay.written_rows.filter(pa.array(located_mask)).select(id_columns)
        located_rows = located_rows.append_column(
            ROW_ID, pa.array(table_overlay.row_ids[located_mask].astype(np.uint64))
        )
        located_rows = located_rows.append_column(ROW_ADDRESS, pa.array(table_overlay.addresses[located_mask]))
        unknown_mask = written_mask & (table_overlay.row_ids == UNRESOLVED_ROW)
        if not unknown_mask.any():
            return located_rows
        unknown_ids = as_single_array(table_overlay.written_rows.filter(pa.array(unknown_mask))["id"])
        looked_up = self.lookup.find(table_overlay.table_key, {"id": unknown_ids}, id_columns, with_row_ids=True)
        return pa.concat_tables([located_rows, looked_up.cast(located_rows.schema)])

    def _find_stored_ids(self, type_key: TableKey, pending_writes: Iterable["_PendingWrite"]) -> pa.Array:
        """Return the ids that must be new but already belong to stored rows."""
        id_arrays = [pending_write.ids for pending_write in pending_writes if pending_write.rejects_existing]
        if not id_arrays:
            return NO_IDS
        stored_matches = self.lookup.find(type_key, {"id": pa.concat_arrays(id_arrays).unique()}, ["id"])
        return as_single_array(stored_matches["id"])

    def _check_row_rules(self, type_key: TableKey, rows: pa.Table) -> None:
        """Check every row against the constraints, including rows that a later statement will replace."""
        first_violation = next(row_violations(type_for_key(self.catalog, type_key), rows), None)
        if first_violation is not None:
            raise first_violation.to_error()


@dataclass(frozen=True, slots=True)
class _PendingWrite:
    """Rows that an operation has written but that will not be added to the overlay until the table is next read."""

    rows: pa.Table
    origin: int
    rejects_existing: bool = False

    @property
    def ids(self) -> pa.Array:
        return as_single_array(self.rows["id"])


def _reject_existing_ids(table_overlay: TableOverlay, ids: pa.Array, stored_ids: pa.Array) -> None:
    """Raise `KeyConflict` if an id belongs to a stored row that is not removed, or to a row already written."""
    removed_ids = as_single_array(table_overlay.removed_rows["id"])
    still_stored = stored_ids.filter(pc.invert(pc.is_in(stored_ids, value_set=removed_ids)))
    existing_ids = pa.concat_arrays([still_stored, as_single_array(table_overlay.written_rows["id"])])
    conflicting_ids = ids.filter(pc.is_in(ids, value_set=existing_ids))
    if len(conflicting_ids):
        raise KeyConflict(
            type_key=table_overlay.table_key,
            entity_id=conflicting_ids[0].as_py(),
            hint="use `upsert` to change existing entities",
        )


def _assign_columns(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for column_name, values in columns.items():
        column_index = rows.schema.get_field_index(column_name)
        rows = rows.set_column(column_index, rows.schema.field(column_index), values)
    return rows


def _assign_by_id(rows: pa.Table, ids: pa.Array, columns: Mapping[str, pa.Array]) -> pa.Table:
    positions = pc.index_in(as_single_array(rows["id"]), value_set=ids)
    return _assign_columns(rows, {column_name: values.take(positions) for column_name, values in columns.items()})


def _distinct_by_id(edges: pa.Table) -> pa.Table:
    """Drop duplicate edges, which occur if an edge was found through both of its endpoints."""
    ids = as_single_array(edges["id"])
    first_positions = pc.index_in(ids.unique(), value_set=ids)
    return edges.take(first_positions)


def _identity_columns(entity_type: NodeType | EdgeType) -> list[str]:
    return ["id", "src", "dst"] if isinstance(entity_type, EdgeType) else ["id"]
