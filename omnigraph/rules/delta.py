"""The changes that an operation makes to a graph: the rows that it writes to and removes from each table.

The rules check a delta, and staging writes it to storage. This module defines only the data structure. `existing_rows`
determines which rows already exist, and `check_delta` decides which changes are allowed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.records.cached_property import cached_property
from omnigraph.storage.wide_rows import take_positions
from omnigraph.values.table_key import TableKey

NEW_ROW = -1  # the row must be new, because its id was just generated
UNRESOLVED_ROW = -2  # the row has not been looked up yet

Positions = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TableDelta:
    """The changes to one table.

    `row_versions` contains all written rows in the order in which they were written. Only the last version of each id
    is stored, but earlier versions must also satisfy the row rules. `latest_positions` contains the positions of the
    last versions, and `input_lines` contains the line number of each version in the input. `row_ids` and `addresses`
    have one entry per last version, which identifies the stored row that the version replaces. If there is no such row,
    the row id is `NEW_ROW`; until the row has been looked up, it is `UNRESOLVED_ROW`. `removed_rows` contains the
    stored rows to remove, with the columns `id`, `_rowid` and `_rowaddr` and, for edges, `src` and `dst`.
    `replaced_edges` contains the stored versions of replaced edges.

    If `replaces_table` is true, all other stored rows are removed. If `rejects_existing` is true, writing an existing
    id is a conflict. If `from_records` is true, the versions are the records of a single input, in which no key may
    occur twice. If `row_rules_checked` is true, the row rules have already been applied to every version.
    """

    table_key: TableKey
    row_versions: pa.Table
    latest_positions: Positions
    row_ids: Positions
    addresses: Addresses
    input_lines: Positions | None = None
    removed_rows: pa.Table | None = None
    replaced_edges: pa.Table | None = None
    replaces_table: bool = False
    rejects_existing: bool = False
    from_records: bool = False
    row_rules_checked: bool = False

    @cached_property
    def rows(self) -> pa.Table:
        """The rows to store, one per id, in the order of their last versions."""
        all_latest = len(self.latest_positions) == self.row_versions.num_rows
        return self.row_versions if all_latest else take_positions(self.row_versions, pa.array(self.latest_positions))

    @cached_property
    def ids(self) -> pa.Array:
        """The ids of the rows to store."""
        return as_single_array(self.rows["id"])

    @cached_property
    def removed_ids(self) -> pa.Array:
        """The ids of the stored rows to remove."""
        return NO_IDS if self.removed_rows is None else as_single_array(self.removed_rows["id"])

    @property
    def is_empty(self) -> bool:
        """Whether the delta contains no changes."""
        return not (self.replaces_table or self.row_versions.num_rows or len(self.removed_ids))

    def input_line(self, version_index: int) -> int | None:
        """Return the line number of a row version in the input."""
        return None if self.input_lines is None else int(self.input_lines[version_index])


NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Delta:
    """All changes that one operation makes, keyed by table. Tables that are not listed do not change.

    If `edges_cascaded` is true, the removed rows include all edges of removed nodes.
    """

    tables: Mapping[TableKey, TableDelta] = field(default_factory=dict)
    edges_cascaded: bool = False

    def get(self, table_key: TableKey) -> TableDelta | None:
        """Return the changes to a table, or None if there are none."""
        return self.tables.get(table_key)


def as_single_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one contiguous array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


DeltaMode = Literal["fresh", "insert", "upsert", "replace"]


def build_table_delta(
    table_key: TableKey,
    row_versions: pa.Table,
    mode: DeltaMode,
    *,
    input_lines: Positions | None = None,
    from_records: bool = False,
) -> TableDelta:
    """Build a delta from written rows. `mode` specifies whether their ids are new, may exist, or must not exist.

    >>> rows = pa.table({"id": ["a", "b", "a"]})
    >>> build_table_delta("node:N", rows, "upsert").ids.to_pylist()
    ['b', 'a']
    """
    replaces_table = mode == "replace"
    has_new_ids = mode == "fresh"
    latest_positions = np.arange(row_versions.num_rows) if has_new_ids else last_positions(row_versions["id"])
    origin = NEW_ROW if replaces_table or has_new_ids else UNRESOLVED_ROW
    return TableDelta(
        table_key,
        row_versions,
        latest_positions,
        np.full(len(latest_positions), origin, np.int64),
        np.zeros(len(latest_positions), np.uint64),
        input_lines,
        replaces_table=replaces_table,
        rejects_existing=mode == "insert",
        from_records=from_records,
    )


def last_positions(ids: pa.ChunkedArray) -> Positions:
    """Return the position of the last version of each id."""
    if len(ids) < 2 or len(ids.unique()) == len(ids):
        return np.arange(len(ids), dtype=np.int64)
    positions_by_id = pa.table({"id": ids, "at": np.arange(len(ids), dtype=np.int64)})
    last_position = positions_by_id.group_by("id", use_threads=False).aggregate([("at", "max")])["at_max"]
    return np.sort(last_position.to_numpy())
