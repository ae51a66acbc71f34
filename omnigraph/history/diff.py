"""Compute what changed between two snapshots, entity by entity, reading only where tables differ.

Tables with equal content ids are never opened. Rows are matched by entity id, never by row id, because
the row ids of two branches are unrelated. Values are equal if their bytes are equal.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ChangeSchemaBoundary, StorageError
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.storage.arrow import PROPERTY_ID_KEY
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.differing_rows import are_rows_equal, differing_rows, rows_by_id
from omnigraph.storage.find_rows import read_rows
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.value_equality import same_rows
from omnigraph.storage.version_difference import compare_versions
from omnigraph.values.table_key import TableKey

from .commit_log import HistoryLog
from .entities import TableChanges
from .missing_files import explain_missing_files
from .snapshot import Snapshot
from .version_path import VersionStep, find_version_path

_RowIds = npt.NDArray[np.uint64]
_MAX_DIRECT_ROWS = 4_096  # above this many rows, check first whether maintenance only moved them


def changed_table_keys(old_snapshot: Snapshot, new_snapshot: Snapshot) -> list[TableKey]:
    """Return the sorted keys of the tables whose content differs, without reading any table.

    A table that was only renamed appears under its new key.
    """
    candidate_keys = {*old_snapshot.tables, *new_snapshot.tables} - {
        find_old_key(old_snapshot, new_snapshot, table_key) for table_key in new_snapshot.tables
    }
    return sorted(
        table_key
        for table_key in {*candidate_keys, *new_snapshot.tables}
        if content_differs(old_snapshot, new_snapshot, table_key)
    )


def content_differs(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> bool:
    """Return whether a table (by its key in the new snapshot) differs in content or exists in only one snapshot."""
    old_entry, new_entry = (
        old_snapshot.tables.get(find_old_key(old_snapshot, new_snapshot, table_key)),
        new_snapshot.tables.get(table_key),
    )
    return old_entry is None or new_entry is None or old_entry.content_id != new_entry.content_id


def find_old_key(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> TableKey:
    """Return a table's key in the old snapshot; a renamed table keeps its location."""
    new_entry = new_snapshot.tables.get(table_key)
    if new_entry is None or table_key in old_snapshot.tables:
        return table_key
    return next(
        (old_key for old_key, old_entry in old_snapshot.tables.items() if old_entry.location == new_entry.location),
        table_key,
    )


def diff_snapshots(
    old_snapshot: Snapshot, new_snapshot: Snapshot, table_keys: Iterable[TableKey] | None = None
) -> Iterator[TableChanges]:
    """Yield the changes to every table that differs, or only to the given tables, one table at a time."""
    for table_key in changed_table_keys(old_snapshot, new_snapshot) if table_keys is None else table_keys:
        table_changes = diff_table(old_snapshot, new_snapshot, table_key)
        if not table_changes.is_empty:
            yield table_changes


def diff_table(
    old_snapshot: Snapshot,
    new_snapshot: Snapshot,
    table_key: TableKey,
    *,
    compare_all_rows: bool = False,
    column_defaults: Mapping[str, pa.Scalar] | None = None,
) -> TableChanges:
    """Return the changes to one table.

    With `compare_all_rows`, every row is compared by id; tests use this option to verify the usual shortcuts. Nullable
    properties that the type gained are null in the old rows; any other difference between its properties raises
    `ChangeSchemaBoundary`. With `column_defaults`, the old rows instead get the new columns, filled with these values
    where a row had no value.
    """
    with explain_missing_files(old_snapshot), explain_missing_files(new_snapshot):
        return _diff_table(
            old_snapshot, new_snapshot, table_key, compare_all_rows=compare_all_rows, column_defaults=column_defaults
        )


def _diff_table(
    old_snapshot: Snapshot,
    new_snapshot: Snapshot,
    table_key: TableKey,
    *,
    compare_all_rows: bool,
    column_defaults: Mapping[str, pa.Scalar] | None,
) -> TableChanges:
    old_key = find_old_key(old_snapshot, new_snapshot, table_key)
    old_table = old_snapshot.table(old_key) if old_key in old_snapshot.tables else None
    new_table = new_snapshot.table(table_key) if table_key in new_snapshot.tables else None
    if (
        old_table is not None
        and new_table is not None
        and column_defaults is None
        and not _can_express_rows(new_snapshot, table_key, old_table, new_table)
    ):
        type_name = table_key.type_name
        raise ChangeSchemaBoundary(graph_commit_id=new_snapshot.commit_id, type_name=type_name)
    if old_table is not None and new_table is not None and old_key == table_key and not compare_all_rows:
        changes = _diff_around_maintenance(old_snapshot, new_snapshot, table_key, (old_table, new_table))
        if changes is not None:
            return changes
    return diff_tables(
        new_snapshot.store,
        table_key,
        old_table,
        new_table,
        compare_all_rows=compare_all_rows,
        column_defaults=column_defaults,
    )


def _diff_around_maintenance(
    old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey, table_pair: tuple[Table, Table]
) -> TableChanges | None:
    """Compare a table version by version, skipping maintenance; return None if this would not read fewer rows."""
    old_table, new_table = table_pair
    if old_table.location != new_table.location or old_table.schema.names != new_table.schema.names:
        return None
    direct_row_count = compare_versions(old_table, new_table).max_rows_read
    path_segments = (
        find_version_path(old_snapshot, new_snapshot, table_key) if direct_row_count > _MAX_DIRECT_ROWS else None
    )
    if path_segments is None:
        return None
    try:
        return _diff_segments(new_snapshot.store, table_key, path_segments, new_table, direct_row_count)
    except (FileNotFoundError, StorageError):  # a cleanup removed an intermediate version
        return None


def count_rows_to_compare(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> int:
    """Return an upper bound on the number of rows to compare in a table, without reading any row."""
    old_table, new_table = old_snapshot.table(table_key), new_snapshot.table(table_key)
    if old_table.location != new_table.location:
        return int(old_table.dataset.count_rows() + new_table.dataset.count_rows())
    direct_row_count = compare_versions(old_table, new_table).max_rows_read
    path_segments = (
        find_version_path(old_snapshot, new_snapshot, table_key) if direct_row_count > _MAX_DIRECT_ROWS else None
    )
    if path_segments is None:
        return direct_row_count
    try:
        return min(
            direct_row_count,
            sum(
                compare_versions(*_open_segment(new_snapshot.store, segment)).max_rows_read for segment in path_segments
            ),
        )
    except (FileNotFoundError, StorageError):  # a cleanup removed an intermediate version
        return direct_row_count


def _diff_segments(
    store: Store, table_key: TableKey, path_segments: Iterable[VersionStep], new_table: Table, row_limit: int
) -> TableChanges | None:
    """Combine the changes along a version path; return None unless this reads fewer rows than the limit."""
    table_pairs = [_open_segment(store, segment) for segment in path_segments]
    same_schema = all(table.schema.equals(new_table.schema) for table_pair in table_pairs for table in table_pair)
    if not same_schema or sum(compare_versions(*table_pair).max_rows_read for table_pair in table_pairs) >= row_limit:
        return None
    combined_changes = empty_changes(table_key, new_table)
    for older_table, newer_table in table_pairs:
        combined_changes = _combine_changes(combined_changes, diff_tables(store, table_key, older_table, newer_table))
    return combined_changes


def _open_segment(store: Store, segment: VersionStep) -> list[Table]:
    return [open_table(store, entry.location, entry.lance_version) for entry in segment]


def _combine_changes(earlier_changes: TableChanges, later_changes: TableChanges) -> TableChanges:
    """Combine two successive sets of changes into one."""
    old_rows = [
        earlier_changes.updated_before,
        earlier_changes.deleted,
        *_exclude_ids((later_changes.updated_before, later_changes.deleted), earlier_changes.ids),
    ]
    new_rows = [
        later_changes.inserted,
        later_changes.updated_after,
        *_exclude_ids((earlier_changes.inserted, earlier_changes.updated_after), later_changes.ids),
    ]
    arrow_schema = earlier_changes.inserted.schema
    return match_rows_by_id(earlier_changes.key, pa.concat_tables(old_rows), pa.concat_tables(new_rows), arrow_schema)


def _exclude_ids(row_tables: Iterable[pa.Table], excluded_ids: pa.Array) -> list[pa.Table]:
    return [rows.filter(pc.invert(pc.is_in(rows["id"], value_set=excluded_ids))) for rows in row_tables]


def diff_tables(
    store: Store,
    table_key: TableKey,
    old_table: Table | None,
    new_table: Table | None,
    *,
    compare_all_rows: bool = False,
    column_defaults: Mapping[str, pa.Scalar] | None = None,
) -> TableChanges:
    """Return the changes from one version of a table to another; None stands for a missing table."""
    arrow_schema = row_schema((new_table or old_table).schema)  # type: ignore[union-attr]
    if old_table is None or new_table is None:
        old_rows = arrow_schema.empty_table() if old_table is None else read_rows(old_table, old_table.schema.names)
        new_rows = arrow_schema.empty_table() if new_table is None else read_rows(new_table, new_table.schema.names)
        return match_rows_by_id(table_key, old_rows, new_rows, arrow_schema)
    same_columns = old_table.schema.names == new_table.schema.names
    if old_table.location == new_table.location and not compare_all_rows:
        old_rows, new_rows = differing_rows(store, compare_versions(old_table, new_table), same_columns=same_columns)
    else:
        old_row_ids, new_row_ids = _find_differing_rows(old_table, new_table, same_columns=same_columns)
        old_rows, new_rows = rows_by_id(old_table, old_row_ids), rows_by_id(new_table, new_row_ids)
    return match_rows_by_id(
        table_key, align_columns(old_rows, old_table.schema, new_table.schema, column_defaults), new_rows, arrow_schema
    )


def empty_changes(table_key: TableKey, table: Table) -> TableChanges:
    """Return an empty set of changes to a table."""
    empty_rows = row_schema(table.schema).empty_table()
    return TableChanges(table_key, empty_rows, empty_rows, empty_rows, empty_rows)


def _find_differing_rows(old_table: Table, new_table: Table, *, same_columns: bool) -> tuple[_RowIds, _RowIds]:
    """Match all rows of both tables by entity id and return the row ids of the rows that differ."""
    old_ids, new_ids = (read_rows(table, ["id"], with_row_ids=True) for table in (old_table, new_table))
    old_row_ids, new_row_ids = old_ids[ROW_ID].to_numpy(), new_ids[ROW_ID].to_numpy()
    new_positions = pc.index_in(old_ids["id"].combine_chunks(), value_set=new_ids["id"].combine_chunks())
    matched_old = np.flatnonzero(pc.is_valid(new_positions).to_numpy(zero_copy_only=False))
    matched_new = new_positions.drop_null().to_numpy()
    if not same_columns or not len(matched_old):
        return old_row_ids, new_row_ids
    are_equal = are_rows_equal(old_table, old_row_ids[matched_old], new_table, new_row_ids[matched_new])
    return np.delete(old_row_ids, matched_old[are_equal]), np.delete(new_row_ids, matched_new[are_equal])


def match_rows_by_id(
    table_key: TableKey, old_rows: pa.Table, new_rows: pa.Table, arrow_schema: pa.Schema
) -> TableChanges:
    """Match the rows of two states by entity id; rows equal in both are not changes."""
    old_rows, new_rows = (old_rows.cast(arrow_schema).sort_by("id"), new_rows.cast(arrow_schema).sort_by("id"))
    old_ids, new_ids = old_rows["id"].combine_chunks(), new_rows["id"].combine_chunks()
    is_deleted = pc.invert(pc.is_in(old_ids, value_set=new_ids))
    is_inserted = pc.invert(pc.is_in(new_ids, value_set=old_ids))
    common_old, common_new = (old_rows.filter(pc.invert(is_deleted)), new_rows.filter(pc.invert(is_inserted)))
    is_updated = pa.array(~same_rows(common_old, common_new))
    return TableChanges(
        table_key,
        new_rows.filter(is_inserted),
        common_old.filter(is_updated),
        common_new.filter(is_updated),
        old_rows.filter(is_deleted),
    )


def snapshot_at(context_snapshot: Snapshot, log: HistoryLog, commit_id: str) -> Snapshot:
    """Return the snapshot of any commit in a log."""
    if commit_id == context_snapshot.commit_id:
        return context_snapshot
    tables, schema = log.tables_and_schema_at(commit_id)
    manifest_version = log.get(commit_id).manifest_version
    store, erased = context_snapshot.store, frozenset(context_snapshot.schema.erased_directories)
    return Snapshot(store, context_snapshot.branch, commit_id, manifest_version, schema, tables, log, True, erased)


def _can_express_rows(new_snapshot: Snapshot, table_key: TableKey, old_table: Table, new_table: Table) -> bool:
    """Return whether old rows fit the new columns: properties may be renamed, and nullable properties may be added."""
    old_types, new_types = _property_types(old_table.schema), _property_types(new_table.schema)
    if len(old_types) == len(new_types):
        return old_types == new_types
    if not old_types.items() <= new_types.items():
        return False
    declared_type = type_for_key(new_snapshot.schema.ir.catalog, table_key)
    added_names = [field.name for field in new_table.schema if _property_identity(field) not in old_types]
    added_properties = [declared_type.property(name) for name in added_names]
    return all(added is not None and added.type.nullable for added in added_properties)


def _property_types(schema: pa.Schema) -> dict[bytes, str]:
    return {_property_identity(field): str(field.type) for field in schema}


def _property_identity(field: pa.Field) -> bytes:
    identity: bytes = (field.metadata or {}).get(PROPERTY_ID_KEY, field.name.encode())
    return identity


def align_columns(
    rows: pa.Table, old_schema: pa.Schema, new_schema: pa.Schema, column_defaults: Mapping[str, pa.Scalar] | None = None
) -> pa.Table:
    """Return rows with the columns of a different schema, matched by property identity.

    A column that did not exist gets its value from `column_defaults`, or null if it has no default.
    """
    if old_schema.names == new_schema.names:
        return rows
    old_fields = {_property_identity(field): field for field in old_schema}
    columns = {}
    for new_field, plain_field in zip(new_schema, row_schema(new_schema), strict=True):
        old_field = old_fields.get(_property_identity(new_field))
        if old_field is not None and old_field.type == new_field.type:
            columns[new_field.name] = rows[old_field.name]
        elif old_field is not None:  # a numeric type that was widened
            columns[new_field.name] = rows[old_field.name].cast(plain_field.type)
        elif column_defaults is not None and new_field.name in column_defaults:
            columns[new_field.name] = pa.repeat(column_defaults[new_field.name], rows.num_rows)
        else:
            columns[new_field.name] = pa.nulls(rows.num_rows, plain_field.type)
    return pa.table(columns)
