"""Changed entities: their old and new values, and which properties differ.

This module only defines how changes are represented: as aligned Arrow tables and as records. Other modules find the
changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.records.cached_property import cached_property
from omnigraph.storage.value_equality import same_values
from omnigraph.values.table_key import TableKey

Op = Literal["insert", "update", "delete"]
OPS: tuple[Op, ...] = ("insert", "update", "delete")
_ENDPOINT_COLUMNS = ("src", "dst")
_ROWS_PER_BATCH = 4_096  # number of rows converted to records per batch


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One changed entity. `before` and `after` hold its properties, or None if the entity does not exist in that state.

    `changed` lists the properties that an update changed, which may include `src` and `dst`.
    """

    kind: str
    type: str
    id: str
    op: Op
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    endpoints_before: dict[str, str] | None = None
    endpoints_after: dict[str, str] | None = None

    @property
    def endpoints(self) -> dict[str, str] | None:
        """An edge's endpoints (the last ones if the edge was deleted), or None for a node."""
        return self.endpoints_after or self.endpoints_before


@dataclass(frozen=True)
class TableChanges:
    """The changes to one type.

    Each table is sorted by id, and the two `updated` tables list the same entities in the same order.
    """

    key: TableKey
    inserted: pa.Table
    updated_before: pa.Table
    updated_after: pa.Table
    deleted: pa.Table

    @property
    def total(self) -> int:
        """The number of changed entities."""
        return int(self.inserted.num_rows + self.updated_after.num_rows + self.deleted.num_rows)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return self.total == 0

    @property
    def ids(self) -> pa.Array:
        """The ids of all changed entities."""
        id_columns = (self.inserted["id"], self.updated_after["id"], self.deleted["id"])
        return pa.concat_arrays([id_column.combine_chunks() for id_column in id_columns])

    @cached_property
    def counts(self) -> dict[Op, int]:
        """The number of changed entities by operation."""
        rows_by_op = (self.inserted, self.updated_after, self.deleted)
        return {op: changed_rows.num_rows for op, changed_rows in zip(OPS, rows_by_op, strict=True)}

    def select_ops(self, ops: Sequence[str]) -> "TableChanges":
        """Return only the changes made by the given operations."""
        row_slices = {op: slice(None) if op in ops else slice(0) for op in OPS}
        update_slice = row_slices["update"]
        return TableChanges(
            self.key,
            self.inserted[row_slices["insert"]],
            self.updated_before[update_slice],
            self.updated_after[update_slice],
            self.deleted[row_slices["delete"]],
        )

    def records(self) -> Iterator[EntityChange]:
        """Yield the changes in id order, converting a few thousand rows at a time."""
        change_iterators = (self._insert_records(), self._update_records(), self._delete_records())
        yield from _merge_by_id([iter(changes) for changes in change_iterators])

    def _insert_records(self) -> Iterator[EntityChange]:
        for row in _iter_rows(self.inserted):
            yield _build_change(self.key, "insert", None, row)

    def _delete_records(self) -> Iterator[EntityChange]:
        for row in _iter_rows(self.deleted):
            yield _build_change(self.key, "delete", row, None)

    def _update_records(self) -> Iterator[EntityChange]:
        changed_names = changed_columns(self.updated_before, self.updated_after)
        row_pairs = zip(_iter_rows(self.updated_before), _iter_rows(self.updated_after), changed_names, strict=True)
        for old_row, new_row, changed_properties in row_pairs:
            yield _build_change(self.key, "update", old_row, new_row, changed_properties)


def changed_columns(old_rows: pa.Table, new_rows: pa.Table) -> list[tuple[str, ...]]:
    """Return the names of the columns that differ in each pair of aligned rows."""
    changed_by_row: list[list[str]] = [[] for _ in range(old_rows.num_rows)]
    for column_name in old_rows.column_names:
        for row_index in np.flatnonzero(~same_values(old_rows[column_name], new_rows[column_name])):
            changed_by_row[int(row_index)].append(column_name)
    return [tuple(column_names) for column_names in changed_by_row]


def _merge_by_id(sorted_changes: list[Iterator[EntityChange]]) -> Iterator[EntityChange]:
    """Merge sorted sequences into one, ordering ids by their UTF-8 bytes as Arrow does."""
    from heapq import merge

    op_ranks = {op: rank for rank, op in enumerate(OPS)}
    return merge(*sorted_changes, key=lambda change: (change.id.encode(), op_ranks[change.op]))


def _iter_rows(changed_rows: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in changed_rows.to_batches(max_chunksize=_ROWS_PER_BATCH):
        yield from batch.to_pylist()


def _build_change(
    table_key: TableKey,
    op: Op,
    old_row: dict[str, Any] | None,
    new_row: dict[str, Any] | None,
    changed_properties: tuple[str, ...] = (),
) -> EntityChange:
    kind, type_name = table_key.kind, table_key.type_name
    entity_id = (new_row or old_row or {})["id"]
    property_images = _select_properties(old_row, kind), _select_properties(new_row, kind)
    endpoint_images = (_select_endpoints(old_row), _select_endpoints(new_row)) if kind == "edge" else (None, None)
    return EntityChange(kind, type_name, entity_id, op, *property_images, changed_properties, *endpoint_images)


def _select_properties(row: dict[str, Any] | None, kind: str) -> dict[str, Any] | None:
    hidden_columns = ("id", *_ENDPOINT_COLUMNS) if kind == "edge" else ("id",)
    return (
        None
        if row is None
        else {column_name: value for column_name, value in row.items() if column_name not in hidden_columns}
    )


def _select_endpoints(row: dict[str, Any] | None) -> dict[str, str] | None:
    return None if row is None else {column_name: row[column_name] for column_name in _ENDPOINT_COLUMNS}
