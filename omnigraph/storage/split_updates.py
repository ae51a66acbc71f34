"""Commit the new rows of a large update separately from its changed rows.

When Lance commits an update, it determines the origin of all new rows by reading the row ids of every fragment between
the lowest and the highest row id in the new fragments. Added rows have the highest row ids in the table. An update that
both changes and adds rows therefore makes Lance read all row ids after those of the changed rows, which takes about 10
ns per row id. Two commits avoid this cost. The first commit creates an intermediate version that no manifest
references.
"""

from dataclasses import replace
from typing import Any

from lance import LanceOperation

# A second commit costs extra requests, so it pays off only if it avoids reading at least this many row ids.
MIN_SAVED_ROWS_LOCAL = 1 << 20
MIN_SAVED_ROWS_REMOTE = 1 << 23


def saves_reading(dataset: Any, last_changed_fragment: int, *, is_local: bool) -> bool:
    """Return whether committing added rows separately is faster, given the last fragment that contains changed rows."""
    least_rows = MIN_SAVED_ROWS_LOCAL if is_local else MIN_SAVED_ROWS_REMOTE
    saved_rows = 0
    for fragment in reversed(dataset.get_fragments()):
        if fragment.fragment_id <= last_changed_fragment or saved_rows >= least_rows:
            break
        saved_rows += fragment.physical_rows
    return saved_rows >= least_rows


def split_update(dataset: Any, operation: Any, *, is_local: bool) -> list[Any]:
    """Return the operations to commit, in order, which usually is only the given operation."""
    if not isinstance(operation, LanceOperation.Update):
        return [operation]
    added_fragments = [fragment for fragment in operation.new_fragments if fragment.row_id_meta is None]
    changed_fragment_ids = [fragment.id for fragment in operation.updated_fragments] + operation.removed_fragment_ids
    is_mixed = 0 < len(added_fragments) < len(operation.new_fragments) and bool(changed_fragment_ids)
    if not is_mixed or not saves_reading(dataset, max(changed_fragment_ids), is_local=is_local):
        return [operation]
    carried_fragments = [fragment for fragment in operation.new_fragments if fragment.row_id_meta is not None]
    return [replace(operation, new_fragments=carried_fragments), LanceOperation.Append(added_fragments)]
