"""Add, rename, retype and drop table columns, producing a detached version.

Existing data files are never rewritten, and new files are added only for columns that receive values. A dropped column
stays in old files but is no longer referenced. An added column that contains only nulls needs no file. Row ids,
fragments and the indexes on the remaining columns are preserved. This module assigns field ids and never reuses one:
each new id is higher than any id used before.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from lance import FragmentMetadata, LanceOperation

from .batch_sizes import FIRST_BATCH_ROWS, batch_rows_for, has_long_values
from .blobs import is_blob_field
from .failures import DamagedError
from .store import Store
from .table import StagedChange, Table, commit, data_files, schema_fingerprint
from .table_fields import LanceColumn, build_lance_schema, lance_columns, new_column

_BATCH_ROWS = 16_384  # maximum number of rows to fill per batch


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column in the new table version.

    `source` is the name of the old column that supplies the values, or None for a new column. In a new column, existing
    rows get `default_value`, or null if there is no default.
    """

    field: pa.Field
    source: str | None = None
    default_value: pa.Scalar | None = None

    @property
    def default_bytes(self) -> int:
        """The size of the default value in each row."""
        return 0 if self.default_value is None else int(pa.repeat(self.default_value, 1).nbytes)

    def values_for(self, old_rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return the values of the column for rows from the old version, with blobs as bytes."""
        value_type = pa.large_binary() if is_blob_field(self.field) else self.field.type
        if self.source is not None:
            return old_rows.column(self.source).cast(value_type)
        if self.default_value is None:
            return pa.nulls(old_rows.num_rows, value_type)
        return pa.repeat(self.default_value, old_rows.num_rows)


@dataclass(frozen=True, slots=True)
class _AddedColumn:
    """A column with a new field id. `temporary_name` avoids name clashes until the old column is dropped."""

    target: TargetColumn
    column: LanceColumn
    temporary_name: str

    @property
    def has_values(self) -> bool:
        return self.target.source is not None or self.target.default_value is not None


def reshape_table(
    store: Store, table: Table, targets: Sequence[TargetColumn], highest_field_id: int
) -> tuple[Table, int]:
    """Return a version of the table with exactly these columns, together with the highest field id used so far.

    `highest_field_id` is the highest id that any earlier version used. If the table already has these columns, the
    table itself is returned.
    """
    old_columns = {column.name: column for column in lance_columns(table.dataset.lance_schema)}
    next_field_id = max(highest_field_id, table.highest_field_id) + 1
    added_columns: dict[str, _AddedColumn] = {}
    for target in targets:
        if not _keeps_stored_values(table, target):
            lance_column = new_column(target.field, next_field_id)
            added_columns[target.field.name] = _AddedColumn(target, lance_column, f"#{next_field_id}")
            next_field_id += len(lance_column.field_ids)
    if added_columns:
        table = _add_columns(store, table, list(added_columns.values()))
    final_columns = [_final_column(target, old_columns, added_columns) for target in targets]
    return _project_columns(store, table, final_columns), next_field_id - 1


def _keeps_stored_values(table: Table, target: TargetColumn) -> bool:
    """Return whether the values stored in the source column can be used unchanged."""
    return target.source is not None and table.schema.field(target.source).type == target.field.type


def _final_column(
    target: TargetColumn, old_columns: dict[str, LanceColumn], added_columns: dict[str, _AddedColumn]
) -> LanceColumn:
    added = added_columns.get(target.field.name)
    if added is not None:
        return added.column
    continued = old_columns[target.source or ""].with_name(target.field.name)
    # Never make a nullable column non-null, because deleted rows in the files may contain nulls.
    return continued.as_nullable() if target.field.nullable else continued


def _add_columns(store: Store, table: Table, added_columns: list[_AddedColumn]) -> Table:
    """Append columns to the table under temporary names that no property can have."""
    filled_columns = [added for added in added_columns if added.has_values]
    fragments = table.dataset.get_fragments()
    if filled_columns:
        fill_fragment = partial(_fill_fragment, table, filled_columns)
        filled_fragments: list[Any] = store.effects.run(
            "stage", table.location, lambda: [fill_fragment(fragment) for fragment in fragments]
        )
    else:
        filled_fragments = [fragment.metadata for fragment in fragments]
    temporary_columns = [added.column.with_name(added.temporary_name) for added in added_columns]
    schema = build_lance_schema(
        table.dataset.lance_schema, [*lance_columns(table.dataset.lance_schema), *temporary_columns]
    )
    all_files = data_files(table, filled_fragments) if filled_columns else ()
    old_files = set(data_files(table, [fragment.metadata for fragment in fragments]))
    new_files = tuple(file_name for file_name in all_files if file_name not in old_files)
    return _commit_operation(store, table, LanceOperation.Merge(filled_fragments, schema), new_files)


def _fill_fragment(table: Table, filled_columns: list[_AddedColumn], fragment: Any) -> Any:
    """Add a data file with the filled columns, under their assigned field ids, to a fragment."""

    def compute_values(old_batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([added.target.values_for(old_batch) for added in filled_columns], temporary_names)

    temporary_names = [added.temporary_name for added in filled_columns]
    source_names = [added.target.source for added in filled_columns if added.target.source is not None]
    default_bytes = sum(added.target.default_bytes for added in filled_columns)
    batch_rows = batch_rows_for(
        default_bytes, FIRST_BATCH_ROWS if has_long_values(table.schema, source_names) else _BATCH_ROWS
    )
    metadata, schema = _merge_columns(table, fragment, compute_values, source_names or ["id"], batch_rows)
    lance_ids_by_name = {column.name: column.field_ids for column in lance_columns(schema)}
    our_ids = {
        lance_id: our_id
        for added in filled_columns
        for lance_id, our_id in _pair_ids(lance_ids_by_name[added.temporary_name], added.column.field_ids)
    }
    fragment_json = metadata.to_json()
    fragment_json["files"][-1]["fields"] = [our_ids[field_id] for field_id in fragment_json["files"][-1]["fields"]]
    return FragmentMetadata.from_json(json.dumps(fragment_json))


def _merge_columns(table: Table, fragment: Any, compute_values: Any, columns: list[str], batch_rows: int) -> Any:
    try:
        return fragment.merge_columns(compute_values, columns=columns, batch_size=batch_rows)
    except TypeError as error:
        # Lance reads a few rows to infer the result type, and raises `TypeError` if anything fails while it does so.
        raise DamagedError(f"{table.location} cannot be read: {error.__context__}") from error


def _pair_ids(lance_ids: list[int], our_ids: list[int]) -> Any:
    return zip(lance_ids, our_ids, strict=True)


def _project_columns(store: Store, table: Table, final_columns: list[LanceColumn]) -> Table:
    """Return the table with exactly these columns. A column that is in none of the table's files reads as null."""
    if lance_columns(table.dataset.lance_schema) == final_columns:
        return table
    schema = build_lance_schema(table.dataset.lance_schema, final_columns)
    return _commit_operation(store, table, LanceOperation.Project(schema), ())


def _commit_operation(store: Store, table: Table, operation: Any, new_files: tuple[str, ...]) -> Table:
    checksums = store.read_back_checksums(
        new_files, include_blobs=any(is_blob_field(column) for column in table.schema)
    )
    fingerprint = schema_fingerprint(table)
    staged = StagedChange(table.location, operation, fingerprint, written_files=new_files, checksums=checksums)
    return commit(store, table, staged)
