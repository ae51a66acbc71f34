"""Commit a large update in two steps: first the removal of the old rows, then an append of the new rows.

When Lance commits an update, it determines the origin of all new rows by reading the row ids of every fragment between
the lowest and the highest row id in the new fragments. This takes about 10 ns per row id, so changes that are spread
over a table take time proportional to its size. An append reads no row ids, and it keeps the row ids that the new
fragments already have. All that is lost is the record of which version created each row, and this record is never read.
The first commit creates an intermediate version that no manifest references.
"""

from dataclasses import replace
from typing import Any

from lance import LanceOperation
from lance.fragment import RowIdSequence

# A second commit costs extra requests, so it pays off only if it avoids reading at least this many row ids.
MIN_SAVED_ROWS_LOCAL = 1 << 20
MIN_SAVED_ROWS_REMOTE = 1 << 23


def split_update(dataset: Any, operation: Any, *, is_local: bool) -> list[Any]:
    """Return the operations to commit, in order. Usually, the given operation is the only one."""
    if not isinstance(operation, LanceOperation.Update):
        return [operation]
    changed_fragment_ids = [fragment.id for fragment in operation.updated_fragments] + operation.removed_fragment_ids
    keeps_row_ids = any(fragment.row_id_meta is not None for fragment in operation.new_fragments)
    if not changed_fragment_ids or not keeps_row_ids:
        return [operation]
    # Added rows have the highest row ids in the table, so Lance also reads all row ids after the changed rows.
    last_read_id = None if any(map(_has_added_rows, operation.new_fragments)) else max(changed_fragment_ids)
    least_rows = MIN_SAVED_ROWS_LOCAL if is_local else MIN_SAVED_ROWS_REMOTE
    if _count_rows_between(dataset, min(changed_fragment_ids), last_read_id) < least_rows:
        return [operation]
    return [replace(operation, new_fragments=[]), LanceOperation.Append(operation.new_fragments)]


def _has_added_rows(fragment: Any) -> bool:
    """Return whether some rows in a new fragment have no row id yet."""
    if fragment.row_id_meta is None:
        return True
    assigned_ids = RowIdSequence.from_inline_metadata(fragment.row_id_meta).to_pyarrow()
    return int(fragment.physical_rows) > len(assigned_ids)


def _count_rows_between(dataset: Any, first_fragment_id: int, last_fragment_id: int | None) -> int:
    """Count the rows in a range of fragments. Without `last_fragment_id`, the range extends to the end of the table."""
    return sum(
        fragment.physical_rows
        for fragment in dataset.get_fragments()
        if fragment.fragment_id >= first_fragment_id
        and (last_fragment_id is None or fragment.fragment_id <= last_fragment_id)
    )
