"""What a small write does for its table on the way: fold the tail, and index what was folded.

Owns when that is due. Single inserts leave fragments of one row; four of them become one, together
with whatever is before them and not much larger, so that a table of any age has few and a row moves
some fifteen times. A write can always do without, and what is larger than a write should carry is
left to `optimize`.
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

FEWEST = 4  # fragments that are worth a fold
LARGER = 8  # times what is folded: so large may a fragment be that goes in with it
LARGEST = 1 << 16  # rows; such a fragment, or one of so many bytes, is folded no more
HEAVIEST = 16 << 20
INDEXED = 512  # rows of a fragment that is worth an index
_FRESH = 4  # fragments at the end: so many writes after a fold look for its index


def tidied(
    store: Store,
    table: Table,
    staged: Staged,
    columns: Mapping[str, str],
    intact: Callable[[Iterable[str]], bool],
) -> Staged:
    """The change, with upkeep of its table before it when that is due.

    `columns` are those that have an index, or shall get one, with its kind. `intact` tells whether
    files are as they were written: what is not stays where `check` finds it.
    """
    touched = {one.fragment for one in staged.touched}
    every = [one for one in table.dataset.get_fragments() if one.fragment_id not in touched]
    made = _folded(store, table, every, intact) or _indexed(store, table, every, columns)
    return replace(staged, upfront=(made,)) if made is not None else staged


def _folded(
    store: Store, table: Table, every: Sequence[Any], intact: Callable[[Iterable[str]], bool]
) -> Staged | None:
    if len(every) < FEWEST or any(is_blob(one) for one in table.schema):
        return None
    tail = _tail(every)
    due = due_of([_rows(one) for one in tail])
    chosen = _free(table, tail[-due:]) if due else []
    if len(chosen) < FEWEST or not intact(files_of(table, [one.metadata for one in chosen])):
        return None
    return stage_joined(store, table, chosen)


def _free(table: Table, fragments: Sequence[Any]) -> list[Any]:
    """Those at the end that cost no index when they are put together."""
    held = held_fragments(table)
    return list(takewhile(lambda one: one.fragment_id not in held, reversed(fragments)))[::-1]


def _indexed(
    store: Store, table: Table, every: Sequence[Any], columns: Mapping[str, str]
) -> Staged | None:
    recent = every[-_FRESH:]
    folded = [one.fragment_id for one in recent if INDEXED <= one.physical_rows <= 2 * LARGEST]
    return extended(store, table, columns, folded) if folded else None


def due_of(sizes: Sequence[int]) -> int:
    """How many fragments at the end should become one, given their rows; 0 is none.

    They are at least four of which none outweighs the others together; then all before them that
    are at most `LARGER` times what is there, up to twice `LARGEST` rows.

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
    """The fragments at the end that are small enough to be folded, oldest first."""
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
