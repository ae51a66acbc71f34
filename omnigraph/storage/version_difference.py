"""Compare two table versions, reading only the fragments and rows that differ.

The comparison starts with the fragment lists. Files are never modified in place, so a fragment with the same files in
both versions has the same rows. Rows that compaction merely moved keep their row ids and values, so they do not count
as changed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.records.frozen import record

from .bounded_scans import take_from_fragment
from .failures import to_storage_error
from .fragment_rows import StoredRowIds, fragment_row_ids, read_fragments
from .scan import ROW_ID
from .table import Table
from .value_equality import same_rows
from .wide_rows import take_positions


@record
class FragmentPair:
    """A fragment that has the same data files but different deletions in the two versions."""

    old_fragment: Any
    new_fragment: Any


@record
class FragmentDifference:
    """The fragments that differ between two table versions.

    `removed` contains the fragments that exist only in the old version, and `added` the fragments that exist only in
    the new version. `redeleted` contains pairs of fragments with the same data files but different deletions.
    """

    old_table: Table
    new_table: Table
    removed: tuple[Any, ...]
    added: tuple[Any, ...]
    redeleted: tuple[FragmentPair, ...]

    @property
    def is_empty(self) -> bool:
        """Whether both versions have the same data files and the same deletions."""
        return not (self.removed or self.added or self.redeleted)

    @property
    def max_rows_read(self) -> int:
        """An upper bound on the number of rows that a comparison reads, not counting reads of row ids only."""
        fragment_rows = sum(fragment.physical_rows for fragment in (*self.removed, *self.added))
        deletion_total = sum(
            _deletion_count(pair.old_fragment) + _deletion_count(pair.new_fragment) for pair in self.redeleted
        )
        return int(fragment_rows + deletion_total)


def compare_versions(old_table: Table, new_table: Table) -> FragmentDifference:
    """Compare two versions of a table by their fragment lists, without reading any file."""
    old_fragments = _fragments_by_content(old_table)
    new_fragments = _fragments_by_content(new_table)
    old_only = [key for key in old_fragments if key not in new_fragments]
    new_only = [key for key in new_fragments if key not in old_fragments]
    new_by_files = {key[0]: key for key in new_only}
    key_pairs = [(key, new_by_files[key[0]]) for key in old_only if key[0] in new_by_files]
    paired_keys = {key for pair in key_pairs for key in pair}
    return FragmentDifference(
        old_table,
        new_table,
        tuple(old_fragments[key] for key in old_only if key not in paired_keys),
        tuple(new_fragments[key] for key in new_only if key not in paired_keys),
        tuple(FragmentPair(old_fragments[old_key], new_fragments[new_key]) for old_key, new_key in key_pairs),
    )


def read_changes(difference: FragmentDifference, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the rows that differ between the versions, as (old rows, new rows), with `_rowid`.

    If a row exists in both versions but differs in one of the columns, both results contain it.
    """
    try:
        old_parts, new_parts = [], []
        for pair in difference.redeleted:
            old_ids = fragment_row_ids(difference.old_table, pair.old_fragment)
            new_ids = fragment_row_ids(difference.new_table, pair.new_fragment)
            old_parts.append(_rows_absent_from(difference.old_table, pair.old_fragment, old_ids, new_ids, columns))
            new_parts.append(_rows_absent_from(difference.new_table, pair.new_fragment, new_ids, old_ids, columns))
        old_rows = pa.concat_tables([read_fragments(difference.old_table, difference.removed, columns), *old_parts])
        new_rows = pa.concat_tables([read_fragments(difference.new_table, difference.added, columns), *new_parts])
    except OSError as error:
        raise to_storage_error(error, effect="none") from error
    return _drop_moved_rows(old_rows, new_rows)


def _fragments_by_content(table: Table) -> dict[tuple[str, str], Any]:
    """Return the fragments in a version, by content.

    Each key is a pair: the data files together with the row ids, and the deletions. The metadata objects are read
    directly, because converting them to JSON takes ten times as long.
    """
    fragments_by_key = {}
    for fragment in table.dataset.get_fragments():
        metadata = fragment.metadata
        row_id_entry, deletion_entry = (
            None if entry is None else entry.asdict() for entry in (metadata.row_id_meta, metadata.deletion_file)
        )
        overlays = metadata.to_json()["overlays"] if metadata.overlays else None
        file_entries = [vars(data_file) for data_file in metadata.files]
        fragments_by_key[repr((file_entries, metadata.physical_rows, row_id_entry, overlays)), repr(deletion_entry)] = (
            fragment
        )
    return fragments_by_key


def _deletion_count(fragment: Any) -> int:
    return int(fragment.num_deletions)


def _rows_absent_from(
    table: Table, fragment: Any, own_ids: StoredRowIds, other_ids: StoredRowIds, columns: Sequence[str]
) -> pa.Table:
    """Return the rows in a fragment whose row ids do not occur in the other version."""
    positions = np.flatnonzero(~np.isin(own_ids, other_ids))
    if len(positions) == 0:
        return read_fragments(table, [], columns)
    taken_rows = take_from_fragment(table, fragment, positions.tolist(), columns)
    return taken_rows.append_column(ROW_ID, pa.array(own_ids[positions], pa.uint64()))


def _drop_moved_rows(old_rows: pa.Table, new_rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Drop from both tables the rows that have the same row id and the same values."""
    old_ids, new_ids = old_rows[ROW_ID].to_numpy(), new_rows[ROW_ID].to_numpy()
    _, old_positions, new_positions = np.intersect1d(old_ids, new_ids, assume_unique=True, return_indices=True)
    if len(old_positions) == 0:
        return old_rows, new_rows
    value_columns = [column_name for column_name in old_rows.column_names if column_name != ROW_ID]
    shared_old_rows = take_positions(old_rows.select(value_columns), pa.array(old_positions))
    shared_new_rows = take_positions(new_rows.select(value_columns), pa.array(new_positions))
    is_equal = same_rows(shared_old_rows, shared_new_rows)
    return _drop_positions(old_rows, old_positions[is_equal]), _drop_positions(new_rows, new_positions[is_equal])


def _drop_positions(rows: pa.Table, positions: npt.NDArray[np.intp]) -> pa.Table:
    is_retained = np.ones(rows.num_rows, np.bool_)
    is_retained[positions] = False
    return rows.filter(pa.array(is_retained))
