"""Compute which entities changed between two snapshots, reading only where tables differ.

Tables with equal content ids are never opened. Rows are matched by entity id, never by row id, because row ids on
different branches are unrelated. Values are equal if their bytes are equal.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.column_identity import align_columns, contains_hidden_values, have_same_columns
from omnigraph.storage.differing_rows import are_rows_equal, differing_rows, rows_by_id
from omnigraph.storage.find_rows import read_rows
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.value_equality import same_rows
from omnigraph.storage.version_difference import compare_versions
from omnigraph.storage.wide_rows import sort_by_id
from omnigraph.values.table_key import TableKey

from .commit import TableEntry
from .commit_log import HistoryLog
from .entities import TableChanges
from .matched_types import find_transition
from .missing_files import explain_missing_files
from .schema_boundary import check_expressible, replaced_type_error
from .snapshot import Snapshot
from .version_path import VersionStep, find_version_path

_RowIds = npt.NDArray[np.uint64]
_MAX_DIRECT_ROWS = 4_096  # with more rows, check first whether maintenance merely moved the rows


def changed_table_keys(old_snapshot: Snapshot, new_snapshot: Snapshot) -> list[TableKey]:
    """Return the sorted keys of the tables whose content differs, without reading any table.

    A table that was only renamed appears under its new key.
    """
    continued_keys = {find_old_key(old_snapshot, new_snapshot, table_key) for table_key in new_snapshot.tables}
    candidate_keys = old_snapshot.tables.keys() - continued_keys
    return sorted(
        table_key
        for table_key in {*candidate_keys, *new_snapshot.tables}
        if content_differs(old_snapshot, new_snapshot, table_key)
    )


def content_differs(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> bool:
    """Return whether a table, given by its new key, differs in content or exists in only one snapshot."""
    old_entry = find_old_entry(old_snapshot, new_snapshot, table_key)
    new_entry = new_snapshot.tables.get(table_key)
    return old_entry is None or new_entry is None or old_entry.content_id != new_entry.content_id


def find_old_key(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> TableKey | None:
    """Return the old snapshot's table key for a type in the new snapshot, or None if the old snapshot lacks the type.

    Types are matched by identity: a renamed type is still the same type, but a different type with the same name is
    not.
    """
    if old_snapshot.schema_row == new_snapshot.schema_row:
        return table_key if table_key in old_snapshot.tables else None
    if table_key not in new_snapshot.tables:
        return None
    transition = find_transition(old_snapshot.schema.ir, new_snapshot.schema.ir, table_key)
    return transition.old_key if transition is not None and transition.old_key in old_snapshot.tables else None


def find_old_entry(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> TableEntry | None:
    """Return the old snapshot's entry for a type in the new snapshot, or None if the old snapshot lacks the type.

    A type that exists only in the old snapshot is found by its table key.
    """
    old_key = find_old_key(old_snapshot, new_snapshot, table_key) if table_key in new_snapshot.tables else table_key
    return None if old_key is None else old_snapshot.tables.get(old_key)


def diff_snapshots(
    old_snapshot: Snapshot, new_snapshot: Snapshot, table_keys: Iterable[TableKey] | None = None
) -> Iterator[TableChanges]:
    """Yield the changes to all tables that differ, or only to the given tables, one table at a time."""
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
) -> TableChanges:
    """Return the changes to one table, with old rows converted to the new snapshot's type.

    With `compare_all_rows`, every row is compared by id. Tests use this option to verify the comparisons that skip
    rows. Raises `ChangeSchemaBoundary` if a value in an old row does not fit its property's new type.
    """
    with explain_missing_files(old_snapshot), explain_missing_files(new_snapshot):
        old_entry = find_old_entry(old_snapshot, new_snapshot, table_key)
        if old_entry is None and _is_replaced(old_snapshot, new_snapshot, table_key):
            raise replaced_type_error(old_snapshot, new_snapshot, table_key)
        old_table = None if old_entry is None else old_snapshot.table(old_entry.key)
        new_table = new_snapshot.table(table_key) if table_key in new_snapshot.tables else None
        if old_table is None or new_table is None:
            return diff_tables(new_snapshot.store, table_key, old_table, new_table)
        if table_key in old_snapshot.tables and not compare_all_rows:
            changes = _diff_around_maintenance(old_snapshot, new_snapshot, table_key, (old_table, new_table))
            if changes is not None:
                return changes
        transition = None
        if not have_same_columns(old_table, new_table):
            transition = find_transition(old_snapshot.schema.ir, new_snapshot.schema.ir, table_key)
        if transition is None:
            return diff_tables(new_snapshot.store, table_key, old_table, new_table, compare_all_rows=compare_all_rows)
        old_rows, new_rows = read_differing_rows(
            new_snapshot.store, old_table, new_table, compare_all_rows=compare_all_rows
        )
        check_expressible(old_snapshot, new_snapshot, transition, old_rows)
        return match_rows_by_id(table_key, transition.convert(old_rows), new_rows, transition.row_schema)


def _is_replaced(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> bool:
    """Return whether the new snapshot reuses an old type's name for a different type."""
    if table_key not in old_snapshot.tables or table_key not in new_snapshot.tables:
        return False
    return find_transition(new_snapshot.schema.ir, old_snapshot.schema.ir, table_key) is None


def _diff_around_maintenance(
    old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey, table_pair: tuple[Table, Table]
) -> TableChanges | None:
    """Compare a table one version at a time, skipping maintenance versions; return None if this would save no reads."""
    old_table, new_table = table_pair
    if old_table.location != new_table.location or not have_same_columns(old_table, new_table):
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
    """Combine two consecutive sets of changes into one."""
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
) -> TableChanges:
    """Return the changes between two table versions, which must have the same columns.

    None represents a missing table.
    """
    arrow_schema = row_schema((new_table or old_table).schema)  # type: ignore[union-attr]
    if old_table is None or new_table is None:
        old_rows = arrow_schema.empty_table() if old_table is None else read_rows(old_table, old_table.schema.names)
        new_rows = arrow_schema.empty_table() if new_table is None else read_rows(new_table, new_table.schema.names)
        return match_rows_by_id(table_key, old_rows, new_rows, arrow_schema)
    old_rows, new_rows = read_differing_rows(store, old_table, new_table, compare_all_rows=compare_all_rows)
    return match_rows_by_id(
        table_key, align_columns(old_rows, old_table.schema, new_table.schema), new_rows, arrow_schema
    )


def read_differing_rows(
    store: Store, old_table: Table, new_table: Table, *, compare_all_rows: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Return the rows that may differ between two versions. Each row has the columns of its own version."""
    same_columns = have_same_columns(old_table, new_table)
    same_place = old_table.location == new_table.location
    if same_place and not compare_all_rows and (same_columns or not contains_hidden_values(old_table, new_table)):
        return differing_rows(store, compare_versions(old_table, new_table), same_columns=same_columns)
    old_row_ids, new_row_ids = _find_differing_rows(old_table, new_table, same_columns=same_columns)
    return rows_by_id(old_table, old_row_ids), rows_by_id(new_table, new_row_ids)


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
    """Match rows from two states by entity id and return the changes. Rows that are equal in both are omitted."""
    old_rows, new_rows = (sort_by_id(rows.cast(arrow_schema)) for rows in (old_rows, new_rows))
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
    """Return the snapshot for any commit in a log."""
    if commit_id == context_snapshot.commit_id:
        return context_snapshot
    tables, schema = log.tables_and_schema_at(commit_id)
    manifest_version = log.get(commit_id).manifest_version
    store, erased = context_snapshot.store, frozenset(context_snapshot.schema.erased_directories)
    return Snapshot(store, context_snapshot.branch, commit_id, manifest_version, schema, tables, log, True, erased)
