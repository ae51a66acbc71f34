"""Tail compaction: table and index maintenance that is committed along with small writes.

This module determines when tail compaction is due. Each single-row insert creates a fragment with one row. As soon as
there are four such fragments, they are merged into one, along with preceding fragments that are not much larger than
the merged ones. As a result, even an old table has few fragments, and each row is moved only about fifteen times. A
write never depends on this maintenance. If the maintenance fails, the write continues without it. Work that is too
large for a write is left to `optimize`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from .blobs import is_blob_field
from .bounded_rows import known_value_bytes, read_newest_rows
from .column_index import stage_index_extension
from .compact import index_bound_fragments, stage_joined_rows
from .failures import attempt_maintenance
from .sizes import FRAGMENT_BYTES
from .store import Store
from .table import StagedChange, Table, fragment_files

MIN_FRAGMENTS = 4  # minimum number of fragments to compact
# A preceding fragment is included if it has at most eight times as many rows as the fragments already chosen.
MAX_SIZE_RATIO = 8
MAX_FRAGMENT_ROWS = 1 << 16  # fragments that reach this limit or `MAX_FRAGMENT_BYTES` are not compacted
MAX_FRAGMENT_BYTES = 16 << 20
# The limit on the uncompressed size of the values in a joined fragment, because Lance can neither join nor read a batch
# with more than 2 GiB of text. The size of a data file gives no indication, because long repetitive texts shrink a
# thousandfold.
MAX_VALUE_BYTES = FRAGMENT_BYTES
MIN_INDEXED_ROWS = 512  # fragments with fewer rows are not indexed
# The number of trailing fragments that a write searches for compacted rows that are not indexed yet.
_RECENT_FRAGMENTS = 4


def with_tail_maintenance(
    store: Store,
    table: Table,
    staged: StagedChange,
    index_kinds: Mapping[str, str],
    are_files_intact: Callable[[Iterable[str]], bool],
) -> StagedChange:
    """Return the change, preceded by table maintenance if maintenance is due.

    `index_kinds` maps each column that has or needs an index to its index kind. `are_files_intact` compares files with
    their checksums. Damaged files are not rewritten, so that `check` can still detect them.
    """
    touched_ids = {fingerprint.fragment_id for fingerprint in staged.touched_fragments}
    untouched_fragments = [
        fragment for fragment in table.dataset.get_fragments() if fragment.fragment_id not in touched_ids
    ]
    maintenance = attempt_maintenance(
        table.location,
        lambda: (
            _compact_tail(store, table, untouched_fragments, are_files_intact)
            or _index_tail(store, table, untouched_fragments, index_kinds)
        ),
    )
    return replace(staged, prior_maintenance=(maintenance,)) if maintenance is not None else staged


def _compact_tail(
    store: Store, table: Table, fragments: Sequence[Any], are_files_intact: Callable[[Iterable[str]], bool]
) -> StagedChange | None:
    if len(fragments) < MIN_FRAGMENTS or any(is_blob_field(column) for column in table.schema):
        return None
    tail = _small_tail(store, table, fragments)
    due_count = due_fragment_count([_live_row_count(fragment) for fragment in tail])
    compacted_fragments = _unindexed_tail(table, tail[-due_count:]) if due_count else []
    if len(compacted_fragments) < MIN_FRAGMENTS or not are_files_intact(
        fragment_files(table, [fragment.metadata for fragment in compacted_fragments])
    ):
        return None
    newest_rows = read_newest_rows(store, table, compacted_fragments, MAX_VALUE_BYTES)
    if newest_rows is None:
        return None
    return stage_joined_rows(store, table, *newest_rows)


def _unindexed_tail(table: Table, fragments: Sequence[Any]) -> list[Any]:
    """Return the trailing fragments that can be compacted without losing index coverage."""
    indexed_ids = index_bound_fragments(table)
    return list(takewhile(lambda fragment: fragment.fragment_id not in indexed_ids, reversed(fragments)))[::-1]


def _index_tail(
    store: Store, table: Table, fragments: Sequence[Any], index_kinds: Mapping[str, str]
) -> StagedChange | None:
    recent_fragments = fragments[-_RECENT_FRAGMENTS:]
    compacted_ids = [
        fragment.fragment_id
        for fragment in recent_fragments
        if MIN_INDEXED_ROWS <= fragment.physical_rows <= 2 * MAX_FRAGMENT_ROWS
    ]
    return stage_index_extension(store, table, index_kinds, compacted_ids) if compacted_ids else None


def due_fragment_count(row_counts: Sequence[int]) -> int:
    """Return how many trailing fragments to merge into one, or 0 for none, given the row counts of all fragments.

    At least `MIN_FRAGMENTS` fragments are merged, starting with the newest. None of them may be larger than the others
    combined. Preceding fragments are added as long as each has at most `MAX_SIZE_RATIO` times as many rows as those
    already chosen, and the total does not exceed twice `MAX_FRAGMENT_ROWS`.

    >>> due_fragment_count([1] * 3), due_fragment_count([1] * 4), due_fragment_count([8, 1, 1, 1])
    (0, 4, 0)
    >>> due_fragment_count([128, 8, 1, 1, 1, 1]), due_fragment_count([64, 8, 1, 1, 1, 1])
    (5, 6)
    """
    total_rows = largest_rows = fragment_count = 0
    is_due = False
    for row_count in reversed(row_counts):
        if (is_due and row_count > MAX_SIZE_RATIO * total_rows) or total_rows + row_count > 2 * MAX_FRAGMENT_ROWS:
            break
        total_rows += row_count
        largest_rows = max(largest_rows, row_count)
        fragment_count += 1
        is_due = is_due or (fragment_count >= MIN_FRAGMENTS and 2 * largest_rows <= total_rows)
    return fragment_count if is_due else 0


def _small_tail(store: Store, table: Table, fragments: Sequence[Any]) -> list[Any]:
    """Return the trailing fragments that are small enough to compact, oldest first.

    The total size of their values is also limited, to the extent that earlier writes have measured this size.
    """
    tail_fragments: list[Any] = []
    value_bytes = 0
    for fragment in reversed(fragments):
        data_bytes = _data_byte_count(fragment)
        value_bytes += known_value_bytes(store, table, fragment)
        is_large = fragment.physical_rows >= MAX_FRAGMENT_ROWS or data_bytes >= MAX_FRAGMENT_BYTES
        if is_large or value_bytes > MAX_VALUE_BYTES:
            break
        tail_fragments.append(fragment)
    return tail_fragments[::-1]


def _live_row_count(fragment: Any) -> int:
    deletion_file = fragment.metadata.deletion_file
    return int(fragment.physical_rows - (deletion_file.num_deleted_rows if deletion_file is not None else 0))


def _data_byte_count(fragment: Any) -> int:
    return sum(data_file.file_size_bytes or 0 for data_file in fragment.metadata.files)
