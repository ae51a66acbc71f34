"""Change some columns of many rows: one more data file per fragment, with only these columns.

The old values stay in the old files, which no longer name the columns; compaction removes them.
Rows, row ids and fragments keep their place, and indexes on other columns keep covering them. A file
has a value for every row of its fragment, so changes of few rows replace whole rows instead.
"""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceOperation

from .blobs import is_blob_field
from .store import Store
from .table import StagedChange, Table, data_files, fragment_fingerprint, schema_fingerprint

MIN_ROWS = 1_000  # fewer changed rows are replaced as whole rows
LARGE_SHARE = 0.5  # share of changed rows from which the size of the columns does not matter

RowAddresses = npt.NDArray[np.uint64]


def pays_off(table: Table, addresses: RowAddresses, columns: pa.Table) -> bool:
    """Return whether new files for these columns are likely smaller than the rows at these addresses."""
    if len(addresses) < MIN_ROWS or any(is_blob_field(table.schema.field(name)) for name in columns.column_names):
        return False
    fragments = [table.dataset.get_fragment(int(fragment_id)) for fragment_id in np.unique(addresses >> np.uint64(32))]
    fragment_rows = sum(fragment.physical_rows for fragment in fragments)
    file_sizes = [data_file.file_size_bytes for fragment in fragments for data_file in fragment.metadata.files]
    changed_share: float = len(addresses) / fragment_rows
    if changed_share >= LARGE_SHARE:
        return True
    # Sizes in memory and in compressed files differ, in favor of whole rows; an unknown file size counts as zero.
    return bool(columns.nbytes / changed_share <= sum(size or 0 for size in file_sizes) * changed_share)


def stage_patched_columns(
    store: Store, table: Table, addresses: RowAddresses, row_ids: npt.NDArray[np.int64], columns: pa.Table
) -> StagedChange:
    """Stage new values for columns of the rows with these addresses and row ids, in the same order."""
    fragment_ids = addresses >> np.uint64(32)
    updated_fragments, touched, old_files = [], [], set[str]()
    modified_fields: set[int] = set()
    for fragment_id in np.unique(fragment_ids):
        fragment = table.dataset.get_fragment(int(fragment_id))
        is_in_fragment = fragment_ids == fragment_id
        new_values = _fragment_values(table, columns.filter(pa.array(is_in_fragment)), row_ids[is_in_fragment])
        write_columns = partial(fragment.update_columns, new_values)
        metadata, field_ids = store.effects.run("stage", table.location, write_columns)
        updated_fragments.append(metadata)
        modified_fields |= set(field_ids)
        touched.append(fragment_fingerprint(fragment.metadata))
        old_files |= set(data_files(table, [fragment.metadata]))
    new_files = tuple(name for name in data_files(table, updated_fragments) if name not in old_files)
    return StagedChange(
        table.location,
        _column_update(updated_fragments, sorted(modified_fields)),
        schema_fingerprint(table),
        tuple(touched),
        written_files=new_files,
        checksums=store.read_back_checksums(new_files),
    )


def _fragment_values(table: Table, columns: pa.Table, row_ids: npt.NDArray[np.int64]) -> pa.Table:
    stored_schema = pa.schema([table.schema.field(name) for name in columns.column_names])
    return columns.cast(stored_schema).append_column("_rowid", pa.array(row_ids.astype(np.uint64)))


def _column_update(fragments: list[Any], field_ids: list[int]) -> Any:
    # The field ids make Lance drop the fragments from the indexes on these columns.
    return LanceOperation.Update(updated_fragments=fragments, fields_modified=field_ids, update_mode="rewrite_columns")
