"""Determine which written rows already exist, using one id lookup per table.

A strict insert of an existing id is a conflict. Any other row with an existing id replaces the stored row and keeps its
row id. Rows with newly generated ids are not looked up.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .delta import NEW_ROW, UNRESOLVED_ROW, Delta, TableDelta, as_single_array
from .lookup import Lookup
from .violation import Violation

if TYPE_CHECKING:
    from omnigraph.values.table_key import TableKey


def repeated_ids(table_delta: TableDelta) -> Iterator[Violation]:
    """Yield violations for ids that occur more than once in a strict insert or an overwrite."""
    if (
        not (table_delta.rejects_existing or table_delta.replaces_table)
        or len(table_delta.latest_positions) == table_delta.row_versions.num_rows
    ):
        return
    last_version: dict[str, int] = {}
    for version_index, repeated_id in enumerate(table_delta.row_versions["id"].to_pylist()):
        if repeated_id in last_version:
            yield Violation(
                "key",
                table_delta.table_key,
                repeated_id,
                input_line=table_delta.input_line(version_index),
                conflicting_line=table_delta.input_line(last_version[repeated_id]),
            )
        last_version[repeated_id] = version_index


def resolve_existing(delta: Delta, lookup: Lookup) -> tuple[Delta, list[Violation]]:
    """Return the delta with every written row matched to its stored row, and any id conflicts from strict inserts."""
    resolved_tables: dict[TableKey, TableDelta] = {}
    id_conflicts: list[Violation] = []
    for table_delta in delta.tables.values():
        resolved_tables[table_delta.table_key], table_conflicts = _resolve_table(table_delta, lookup)
        id_conflicts += table_conflicts
    return replace(delta, tables=resolved_tables), id_conflicts


def _resolve_table(table_delta: TableDelta, lookup: Lookup) -> tuple[TableDelta, list[Violation]]:
    unresolved = np.flatnonzero(table_delta.row_ids == UNRESOLVED_ROW)
    if not len(unresolved):
        return table_delta, []
    unresolved_ids = (
        table_delta.ids.take(pa.array(unresolved)) if len(unresolved) < len(table_delta.ids) else table_delta.ids
    )
    endpoint_columns = ["src", "dst"] if table_delta.table_key.is_edge else []
    stored_rows = lookup.find(
        table_delta.table_key, {"id": unresolved_ids}, ["id", *endpoint_columns], with_row_ids=True
    )
    match_index = pc.index_in(unresolved_ids, value_set=as_single_array(stored_rows["id"]))
    is_stored = pc.is_valid(match_index).to_numpy(zero_copy_only=False)
    if table_delta.rejects_existing:
        return table_delta, [_id_conflict(table_delta, int(row_index)) for row_index in unresolved[is_stored]]
    stored_positions = match_index.drop_null().to_numpy()
    row_ids, addresses = table_delta.row_ids.copy(), table_delta.addresses.copy()
    row_ids[unresolved] = NEW_ROW
    row_ids[unresolved[is_stored]] = stored_rows["_rowid"].to_numpy()[stored_positions].astype(np.int64)
    addresses[unresolved[is_stored]] = stored_rows["_rowaddr"].to_numpy()[stored_positions]
    stored_edges = stored_rows.select(["id", *endpoint_columns]) if endpoint_columns else None
    if stored_edges is not None and table_delta.replaced_edges is not None:
        stored_edges = pa.concat_tables(
            [table_delta.replaced_edges, stored_edges.cast(table_delta.replaced_edges.schema)]
        )
    replaced_edges = table_delta.replaced_edges if stored_edges is None else stored_edges
    return replace(table_delta, row_ids=row_ids, addresses=addresses, replaced_edges=replaced_edges), []


def _id_conflict(table_delta: TableDelta, row_index: int) -> Violation:
    version_index = int(table_delta.latest_positions[row_index])
    return Violation(
        "key",
        table_delta.table_key,
        table_delta.ids[row_index].as_py(),
        input_line=table_delta.input_line(version_index),
    )
