"""The change that a merge makes to one target table, given the decisions about conflicts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rules.delta import NEW_ROW, UNRESOLVED_ROW, TableDelta, build_table_delta
from omnigraph.rules.lookup import Lookup

from .conflicts import EntityKey
from .decisions import DecidedEntity
from .offloaded_table import OffloadedSides, OffloadEngine, make_offloaded_delta
from .table_merge import TableSides


def make_table_delta(
    table_sides: TableSides,
    decided_entities: Sequence[DecidedEntity],
    dropped_edges: Iterable[EntityKey],
    lookup: Lookup,
    engine: OffloadEngine | None,
) -> TableDelta:
    """Return the rows to write to and remove from one target table."""
    inserted_rows, updated_rows, deleted_ids = table_sides.changes_to_take()
    excluded_ids = {entity_id for key, entity_id in dropped_edges if key == table_sides.table_key}
    excluded_ids |= {entity.id for entity in decided_entities}
    inserted_rows, updated_rows, deleted_ids = _exclude_ids(inserted_rows, updated_rows, deleted_ids, excluded_ids)
    effective = [entity for entity in decided_entities if entity.changes_target]
    decided_rows = [entity.result for entity in effective if entity.result is not None]
    removed_ids = [entity.id for entity in effective if entity.result is None]
    updated_rows = pa.concat_tables([updated_rows, *map(table_sides.to_rule_columns, decided_rows)])
    deleted_ids = pa.concat_arrays([deleted_ids, pa.array(removed_ids, pa.string())])
    written_rows = pa.concat_tables([inserted_rows, updated_rows]).combine_chunks()
    row_origins = np.concatenate(
        [np.full(inserted_rows.num_rows, NEW_ROW, np.int64), np.full(updated_rows.num_rows, UNRESOLVED_ROW, np.int64)]
    )
    id_columns = ["id", "src", "dst"] if table_sides.table_key.startswith("edge:") else ["id"]
    removed_rows = (
        lookup.find(table_sides.table_key, {"id": deleted_ids}, id_columns, with_row_ids=True)
        if len(deleted_ids)
        else None
    )
    addresses = np.zeros(len(row_origins), np.uint64)
    table_delta = TableDelta(
        table_sides.table_key,
        written_rows,
        np.arange(len(row_origins)),
        row_origins,
        addresses,
        removed_rows=removed_rows,
    )
    if not isinstance(table_sides, OffloadedSides):
        return table_delta
    combined_rows, _, _ = _exclude_ids(table_sides.combined_rows, table_sides.combined_rows, deleted_ids, excluded_ids)
    return make_offloaded_delta(table_delta, table_sides, pa.concat_tables([combined_rows, *decided_rows]), engine)


def with_target_rows(table_delta: TableDelta, target_rows: pa.Table) -> TableDelta:
    """Extend a delta so that it also writes the given target rows, except those that it already writes or removes."""
    touched_ids = pa.concat_arrays([table_delta.ids, table_delta.removed_ids])
    added_rows = target_rows.filter(pc.invert(pc.is_in(target_rows["id"], value_set=touched_ids)))
    if not added_rows.num_rows:
        return table_delta
    added_origins = np.full(added_rows.num_rows, UNRESOLVED_ROW, np.int64)
    row_origins = np.concatenate([table_delta.row_ids, added_origins])
    return replace(
        table_delta,
        row_versions=pa.concat_tables([table_delta.row_versions, added_rows]).combine_chunks(),
        latest_positions=np.arange(len(row_origins)),
        row_ids=row_origins,
        addresses=np.zeros(len(row_origins), np.uint64),
    )


def with_our_changes(table_delta: TableDelta | None, table_sides: TableSides) -> TableDelta:
    """Return a delta that also contains the target's own changes since the base, for checking the rules."""
    our_changes = table_sides.ours
    our_rows = pa.concat_tables([our_changes.inserted, our_changes.updated_after])
    if table_delta is None:
        table_delta = build_table_delta(table_sides.table_key, our_rows, "upsert")
    table_delta = with_target_rows(table_delta, our_rows)
    if not table_sides.table_key.is_edge:
        return table_delta
    removed_edges = (
        [our_changes.deleted] if table_delta.removed_rows is None else [our_changes.deleted, table_delta.removed_rows]
    )
    removed_rows = pa.concat_tables([edges.select(["id", "src", "dst"]) for edges in removed_edges])
    return replace(table_delta, removed_rows=removed_rows)


def _exclude_ids(
    inserted_rows: pa.Table, updated_rows: pa.Table, deleted_ids: pa.Array, excluded_ids: set[str]
) -> tuple[pa.Table, pa.Table, pa.Array]:
    if not excluded_ids:
        return inserted_rows, updated_rows, deleted_ids
    excluded_array = pa.array(sorted(excluded_ids), pa.string())
    inserted_rows, updated_rows = (
        rows.filter(pc.invert(pc.is_in(rows["id"], excluded_array))) for rows in (inserted_rows, updated_rows)
    )
    return (inserted_rows, updated_rows, deleted_ids.filter(pc.invert(pc.is_in(deleted_ids, excluded_array))))
