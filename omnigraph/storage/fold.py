"""Tail compaction: what a small write does for its table on the way, and the index for the result.

Owns when this is due. Single inserts leave fragments of one row. Four of them become one, together
with preceding fragments that are not much larger, so a table of any age has few fragments and a row
is moved about fifteen times. A write never depends on it, and whatever is too large for a write to
carry is left to `optimize`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from .blobs import is_blob
from .compact import held_fragments, stage_joined
from .index import extended
from .store import Store
from .table import Staged, Table, files_of

FEWEST = 4  # fragments that are worth compacting
LARGER = 8  # a preceding fragment joins if it is at most this many times the rows so far
LARGEST = 1 << 16  # a fragment of this many rows, or of `MAX_FRAGMENT_BYTES`, is left alone
HEAVIEST = 16 << 20
INDEXED = 512  # rows of a fragment that is worth indexing
_FRESH = 4  # trailing fragments in which later writes look for compacted rows without an index


def tidied(
    store: Store,
    table: Table,
    staged: Staged,
    columns: Mapping[str, str],
    intact: Callable[[Iterable[str]], bool],
) -> Staged:
    """Return the change, preceded by maintenance of its table when that is due.

    `index_kinds` maps the columns that have or shall get an index to its kind. `are_files_intact`
    compares files with their checksums: damaged files are not rewritten, so `check` still finds
    them.
    """
    touched = {fingerprint.fragment for fingerprint in staged.touched}
    every = [one for one in table.dataset.get_fragments() if one.fragment_id not in touched]
    made = _folded(store, table, every, intact) or _indexed(store, table, every, columns)
    return replace(staged, upfront=(made,)) if made is not None else staged


def _folded(
    store: Store, table: Table, every: Sequence[Any], intact: Callable[[Iterable[str]], bool]
) -> Staged | None:
    if len(every) < FEWEST or any(is_blob(column) for column in table.schema):
        return None
    tail = _tail(every)
    due = due_of([_rows(one) for one in tail])
    chosen = _free(table, tail[-due:]) if due else []
    if len(chosen) < FEWEST or not intact(files_of(table, [one.metadata for one in chosen])):
        return None
    return stage_joined(store, table, chosen)


def _free(table: Table, fragments: Sequence[Any]) -> list[Any]:
    """Return the trailing fragments whose compaction costs no index."""
    held = held_fragments(table)
    return list(takewhile(lambda one: one.fragment_id not in held, reversed(fragments)))[::-1]


def _indexed(
    store: Store, table: Table, every: Sequence[Any], columns: Mapping[str, str]
) -> Staged | None:
    recent = every[-_FRESH:]
    folded = [one.fragment_id for one in recent if INDEXED <= one.physical_rows <= 2 * LARGEST]
    return extended(store, table, columns, folded) if folded else None


def due_of(sizes: Sequence[int]) -> int:
    """Return how many trailing fragments should become one, given their row counts; 0 for none.

    At least four of which none outweighs the others together; then all preceding ones that have at
    most `MAX_SIZE_RATIO` times the rows so far, up to twice `MAX_FRAGMENT_ROWS`.

    >>> due_of([1] * 3), due_of([1] * 4), due_of([8, 1, 1, 1])
    (0, 4, 0)
    >>> due_of([128, 8, 1, 1, 1, 1]), due_of([64, 8, 1, 1, 1, 1])
    (5, 6)
    """
    total = most = count = 0
    due = False
    for size in reversed(sizes):
        if (due and size > LARGER * total) or total + size > 2 * LARGEST:
            break
        total, most, count = total + size, max(most, size), count + 1
        due = due or (count >= FEWEST and 2 * most <= total)
    return count if due else 0


def _tail(every: Sequence[Any]) -> list[Any]:
    """Return the trailing fragments that are small enough to compact, oldest first."""
    found: list[Any] = []
    for one in reversed(every):
        if one.physical_rows >= LARGEST or _bytes(one) >= HEAVIEST:
            break
        found.append(one)
    return found[::-1]


def _rows(fragment: Any) -> int:
    gone = fragment.metadata.deletion_file
    return int(fragment.physical_rows - (gone.num_deleted_rows if gone is not None else 0))


def _bytes(fragment: Any) -> int:
    return sum(one.file_size_bytes or 0 for one in fragment.metadata.files)
