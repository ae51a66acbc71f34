"""Change some columns in many rows by adding a data file with only these columns to each affected fragment.

The old values remain in the old files until compaction removes them, but they are no longer read. Rows do not move, row
ids and fragments stay the same, and indexes on other columns keep their coverage. Each new file contains a value for
every row in its fragment. If only a few rows change, it is therefore usually cheaper to replace these rows as a whole.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation

from .blobs import is_blob_field
from .checksums import FileChecksum
from .store import Store
from .table import StagedChange, Table, data_files, fragment_fingerprint, schema_fingerprint

MIN_ROWS = 1_000  # if fewer rows change, whole rows are replaced
LARGE_SHARE = 0.5  # if at least half of the rows change, new columns are written regardless of their size

RowAddresses = npt.NDArray[np.uint64]
RowIds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PatchSize:
    """The fragments that a patch changes, the number of changed rows, and the size of the new values in bytes."""

    fragment_ids: frozenset[int]
    row_count: int
    column_bytes: int


def pays_off(table: Table, size: PatchSize, column_names: Sequence[str]) -> bool:
    """Return whether writing new files for the patched columns is likely to be cheaper than replacing whole rows."""
    if size.row_count < MIN_ROWS or any(is_blob_field(table.schema.field(name)) for name in column_names):
        return False
    fragments = [table.dataset.get_fragment(fragment_id) for fragment_id in size.fragment_ids]
    changed_share: float = size.row_count / sum(fragment.physical_rows for fragment in fragments)
    if changed_share >= LARGE_SHARE:
        return True
    # This compares in-memory sizes with compressed file sizes, which favors whole rows. An unknown file size counts as
    # 0.
    file_sizes = (data_file.file_size_bytes for fragment in fragments for data_file in fragment.metadata.files)
    return bool(size.column_bytes / changed_share <= sum(size or 0 for size in file_sizes) * changed_share)


def stage_patched_columns(
    store: Store, table: Table, addresses: RowAddresses, row_ids: RowIds, columns: pa.Table
) -> StagedChange:
    """Stage new column values. `addresses`, `row_ids` and `columns` must list the rows in the same order."""
    fragment_ids = addresses >> np.uint64(32)
    written_fragments = []
    for fragment_id in np.unique(fragment_ids):
        is_in_fragment = fragment_ids == fragment_id
        new_values = columns.filter(pa.array(is_in_fragment))
        written_fragments.append(
            write_fragment_columns(store, table, int(fragment_id), row_ids[is_in_fragment], new_values)
        )
    return stage_column_fragments(table, written_fragments)


def write_fragment_columns(
    store: Store, table: Table, fragment_id: int, row_ids: RowIds, columns: pa.Table
) -> dict[str, Any]:
    """Write a file with new column values for a fragment, and return the new description of the fragment.

    The result also contains the ids of the changed fields, and the name and checksum of the file.
    """
    fragment = table.dataset.get_fragment(fragment_id)
    write_columns = partial(fragment.update_columns, _fragment_values(table, columns, row_ids))
    metadata, field_ids = store.effects.run("stage", table.location, write_columns)
    new_files = set(data_files(table, [metadata])) - set(data_files(table, [fragment.metadata]))
    checksums = store.read_back_checksums(sorted(new_files))
    return {
        "fragment": metadata.to_json(),
        "fields": list(field_ids),
        "checksums": {file_name: checksum.to_json() for file_name, checksum in checksums.items()},
    }


def stage_column_fragments(table: Table, written_fragments: Sequence[Mapping[str, Any]]) -> StagedChange:
    """Stage fragments for which one or more writers have written new columns."""
    fragments = [FragmentMetadata.from_json(json.dumps(written["fragment"])) for written in written_fragments]
    checksums = {
        file_name: FileChecksum.from_json(checksum_json)
        for written in written_fragments
        for file_name, checksum_json in written["checksums"].items()
    }
    modified_fields = sorted({field_id for written in written_fragments for field_id in written["fields"]})
    touched = (fragment_fingerprint(table.dataset.get_fragment(fragment.id).metadata) for fragment in fragments)
    return StagedChange(
        table.location,
        _column_update(fragments, modified_fields),
        schema_fingerprint(table),
        tuple(touched),
        written_files=tuple(checksums),
        checksums=checksums,
    )


def _fragment_values(table: Table, columns: pa.Table, row_ids: RowIds) -> pa.Table:
    stored_schema = pa.schema([table.schema.field(name) for name in columns.column_names])
    return columns.cast(stored_schema).append_column("_rowid", pa.array(row_ids.astype(np.uint64)))


def _column_update(fragments: list[Any], field_ids: list[int]) -> Any:
    # Lance uses the field ids to remove these fragments from the coverage of indexes on the changed columns.
    return LanceOperation.Update(updated_fragments=fragments, fields_modified=field_ids, update_mode="rewrite_columns")
