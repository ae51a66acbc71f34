"""What differs between two versions of one table, reading only where they differ.

Owns the comparison of fragment lists. Files are never modified in place, so a fragment with the
same files in both versions has the same rows. Rows that compaction only moved keep their row ids
and values and do not count as changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .blobs import is_blob, row_schema
from .deletion_list import Offsets
from .deletions import deleted_offsets
from .equality import same_rows
from .failures import reported, storage_failure
from .find import batches, read, take_bytes
from .row_ids import row_ids_at
from .scan import ROW_ID
from .store import Store
from .table import Table

_Ids = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
_PIECE = 8_192  # rows of both versions that are compared together
_DENSE = 6  # when more than one row in this many is needed, a scan is faster than a take


@dataclass(frozen=True, slots=True)
class _Pair:
    """A fragment whose data files are in both versions, with different deletions."""

    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """The fragments in which two versions of a table differ.

    `removed` and `added` are fragments of one version only; `redeleted` are pairs with the same
    data files and different deletions.
    """

    old: Table
    new: Table
    gone: tuple[Any, ...]
    come: tuple[Any, ...]
    marked: tuple[_Pair, ...]

    @property
    def empty(self) -> bool:
        """Whether both versions have the same files, with the same rows deleted from them."""
        return not (self.gone or self.come or self.marked)

    @property
    def rows(self) -> int:
        """The largest number of rows to read, besides the row ids of redeleted fragments."""
        whole = sum(one.physical_rows for one in (*self.gone, *self.come))
        marks = sum(_deleted(pair.old) + _deleted(pair.new) for pair in self.marked)
        return int(whole + marks)


def compare(old: Table, new: Table) -> Difference:
    """Compare two versions of one table by their fragment lists; no file is read."""
    before, after = _fragments(old), _fragments(new)
    differing = [key for key in before if key not in after]
    fresh = [key for key in after if key not in before]
    by_files = {key[0]: key for key in fresh}
    pairs = [(key, by_files[key[0]]) for key in differing if key[0] in by_files]
    paired = {key for pair in pairs for key in pair}
    return Difference(
        old,
        new,
        tuple(before[key] for key in differing if key not in paired),
        tuple(after[key] for key in fresh if key not in paired),
        tuple(_Pair(before[one], after[other]) for one, other in pairs),
    )


def changed_rows(old: Table, new: Table, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the rows (with `_rowid`) that only one version has: (old rows, new rows).

    A row whose value in one of the columns changed is in both.
    """
    return read_changes(compare(old, new), columns)


def read_changes(found: Difference, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the rows behind a comparison; see `changed_rows`."""
    try:
        lost, won = [], []
        for pair in found.marked:
            first, second = _row_ids(found.old, pair.old), _row_ids(found.new, pair.new)
            lost.append(_only(found.old, pair.old, first, second, columns))
            won.append(_only(found.new, pair.new, second, first, columns))
        before = pa.concat_tables([_read(found.old, found.gone, columns), *lost])
        after = pa.concat_tables([_read(found.new, found.come, columns), *won])
    except OSError as error:
        raise storage_failure(error, effect="none") from error
    return _without_moves(before, after)


def differing_rows(
    store: Store, found: Difference, *, alike: bool = True
) -> tuple[pa.Table, pa.Table]:
    """Return whole rows that may differ between the versions: (old, new), blobs as bytes.

    In fragments that only lost rows, no other row is read. With `same_columns`, rows that moved to
    other files are compared first, chunk by chunk, if there are many: wide rows that merely moved
    never fill the memory.
    """
    with reported("none"):
        first, second = _ids_of(found.old, found.gone), _ids_of(found.new, found.come)
        if alike and len(np.intersect1d(first, second, assume_unique=True)) > _PIECE:
            moved = _moved(found)
            first, second = (
                np.setdiff1d(row_ids, moved, assume_unique=True) for row_ids in (first, second)
            )
        lost, won = (
            [_rows_in(found.old, found.gone, first)],
            [_rows_in(found.new, found.come, second)],
        )
        for pair in found.marked:
            one, other = _marked(store, found, pair)
            lost.append(one)
            won.append(other)
        return _together(lost), _together(won)


def _moved(found: Difference) -> _Ids:
    """Return the row ids of rows that moved to other files and are otherwise unchanged.

    The old rows are scanned, the new ones taken by position: maintenance keeps the order of rows,
    so neighbors are read together.
    """
    held = [_row_ids(found.new, fragment) for fragment in found.come]
    ids, sizes = np.concatenate(held), [len(one) for one in held]
    order, starts = np.argsort(ids), np.cumsum([0, *sizes])
    same = []
    for batch in _scanned(found.old, found.gone).to_batches():
        mine = batch[ROW_ID].to_numpy()
        at = np.minimum(np.searchsorted(ids, mine, sorter=order), len(ids) - 1)
        here = ids[order[at]] == mine
        kept = batch if here.all() else batch.filter(pa.array(here))
        rows = pa.Table.from_batches([kept]).select(found.old.schema.names)
        other = _taken(found, order[at[here]], starts, mine[here])
        same.append(mine[here][same_rows(rows, other)])
    return np.concatenate(same)


def _taken(found: Difference, places: Places, starts: Places, ids: _Ids) -> pa.Table:
    """Return rows of the added fragments by their position across all of them, in that order."""
    table = found.new
    if any(is_blob(one) for one in table.schema):
        return take_bytes(table, pa.array(ids))
    order = np.argsort(places, kind="stable")
    sorted_places, parts = places[order], []
    for at, fragment in enumerate(found.come):
        low, high = np.searchsorted(sorted_places, starts[at : at + 2])
        if high > low:
            wanted = (sorted_places[low:high] - starts[at]).tolist()
            parts.append(pa.table(fragment.take(wanted, columns=table.schema.names)))
    rows = pa.concat_tables(parts) if parts else row_schema(table.schema).empty_table()
    if bool((order[1:] > order[:-1]).all()):
        return rows
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return rows.take(pa.array(back))


def _scanned(table: Table, fragments: Sequence[Any]) -> Any:
    return table.dataset.scanner(
        columns=table.schema.names,
        fragments=list(fragments),
        with_row_id=True,
        blob_handling="all_binary",
        batch_size=_PIECE,
        batch_readahead=2,
        fragment_readahead=1,
    )


def _marked(store: Store, found: Difference, pair: _Pair) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a fragment that only one of the versions has deleted."""
    old = deleted_offsets(store, found.old, pair.old)
    new = deleted_offsets(store, found.new, pair.new)
    if old is None or new is None:
        first, second = _row_ids(found.old, pair.old), _row_ids(found.new, pair.new)
        only, others = np.setdiff1d(first, second), np.setdiff1d(second, first)
        return rows_at(found.old, only), rows_at(found.new, others)
    lost, won = np.setdiff1d(new, old), np.setdiff1d(old, new)
    return _at_offsets(found.old, pair.old, lost, old), _at_offsets(found.new, pair.new, won, new)


def lone_rows(
    store: Store, old: tuple[Table, int], new: tuple[Table, int]
) -> tuple[pa.Table, pa.Table]:
    """Return `id` and `_rowid` of rows that only one of two forms of a fragment has.

    A form is a table version and the id of the fragment there. Other rows are not read.
    """
    pairs = [(table, table.dataset.get_fragment(number)) for table, number in (old, new)]
    with reported("none"):
        gone = [deleted_offsets(store, *one) for one in pairs]
        if gone[0] is None or gone[1] is None:
            was, now = (_read(table, [fragment], ["id"]) for table, fragment in pairs)
            first, second = was[ROW_ID].to_numpy(), now[ROW_ID].to_numpy()
            return (
                was.filter(pa.array(~np.isin(first, second))),
                now.filter(pa.array(~np.isin(second, first))),
            )
        lost, won = np.setdiff1d(gone[1], gone[0]), np.setdiff1d(gone[0], gone[1])
        return _named(pairs[0][1], lost, gone[0]), _named(pairs[1][1], won, gone[1])


def _named(fragment: Any, wanted: Offsets, deleted: Offsets) -> pa.Table:
    """Return ids and row ids of rows by offset."""
    places = (wanted - np.searchsorted(deleted, wanted)).tolist()
    ids = pa.table(fragment.take(places, columns=["id"])) if places else _NO_IDS
    rows = row_ids_at(fragment, wanted.tolist()) if places else []
    return ids.select(["id"]).append_column(ROW_ID, pa.array(rows, pa.uint64()))


_NO_IDS = pa.table({"id": pa.array([], pa.string())})


def _at_offsets(table: Table, fragment: Any, wanted: Offsets, deleted: Offsets) -> pa.Table:
    """Return rows of a fragment by offset; Lance's positions count only rows not deleted."""
    if not len(wanted) or any(is_blob(one) for one in table.schema):
        ids = row_ids_at(fragment, wanted.tolist()) if len(wanted) else []
        return take_bytes(table, pa.array(ids, pa.uint64()))
    places = wanted - np.searchsorted(deleted, wanted)
    return pa.table(fragment.take(places.tolist(), columns=table.schema.names))


def _rows_in(table: Table, fragments: Sequence[Any], wanted: _Ids) -> pa.Table:
    """Return rows of some fragments by row id; scans them unless only few rows are needed."""
    names = table.schema.names
    if not len(wanted):
        return take_bytes(table, pa.array(wanted))
    if len(wanted) * _DENSE < sum(fragment.physical_rows for fragment in fragments):
        return take_bytes(table, pa.array(wanted))
    keep = pa.array(wanted)
    kept = [
        one.filter(pc.is_in(one[ROW_ID], value_set=keep))
        for one in _scanned(table, fragments).to_batches()
    ]
    return pa.Table.from_batches(kept).select(names)


def _together(parts: Sequence[pa.Table]) -> pa.Table:
    shape = parts[0].schema.remove_metadata()
    bare = pa.schema([pa.field(column.name, column.type) for column in shape])
    return pa.concat_tables([one.cast(bare) for one in parts])


def same_at(old: Table, ours: _Ids, new: Table, theirs: _Ids) -> npt.NDArray[np.bool_]:
    """Return whether rows are equal in two tables with the same columns, pair by pair."""
    same = np.ones(len(ours), np.bool_)
    for at in range(0, len(ours), _PIECE):
        here = slice(at, at + _PIECE)
        one, other = take_bytes(old, pa.array(ours[here])), take_bytes(new, pa.array(theirs[here]))
        same[here] = same_rows(one, other)
    return same


def rows_at(table: Table, row_ids: _Ids) -> pa.Table:
    """Return whole rows by row id, in any order, blobs as bytes; scans if most are needed."""
    if len(row_ids) * _DENSE < table.dataset.count_rows():
        return take_bytes(table, pa.array(row_ids))
    names, wanted = table.schema.names, pa.array(row_ids)
    kept = [read(table, names, pc.scalar(False), places=True)]
    kept += (
        pa.table(one.filter(pc.is_in(one[ROW_ID], value_set=wanted)))
        for one in batches(table, names, places=True)
    )
    return pa.concat_tables(kept).select(names)


def _fragments(table: Table) -> dict[tuple[str, str], Any]:
    """Return fragments by content: (data files and row ids, deletions).

    Reads the metadata objects directly: their JSON takes ten times as long for each fragment.
    """
    found = {}
    for one in table.dataset.get_fragments():
        facts = one.metadata
        ids, gone = (
            None if part is None else part.asdict()
            for part in (facts.row_id_meta, facts.deletion_file)
        )
        laid_over = facts.to_json()["overlays"] if facts.overlays else None
        files = [vars(file) for file in facts.files]
        found[repr((files, facts.physical_rows, ids, laid_over)), repr(gone)] = one
    return found


def _deleted(fragment: Any) -> int:
    return int(fragment.num_deletions)


def _read(table: Table, fragments: Sequence[Any], columns: Sequence[str]) -> pa.Table:
    if not fragments:
        kinds = [table.schema.field(name) for name in columns]
        return pa.schema([*kinds, pa.field(ROW_ID, pa.uint64())]).empty_table()
    found: pa.Table = table.dataset.scanner(
        columns=list(columns), fragments=list(fragments), with_row_id=True
    ).to_table()
    return found


def _row_ids(table: Table, fragment: Any) -> _Ids:
    return _ids_of(table, [fragment])


def _ids_of(table: Table, fragments: Sequence[Any]) -> _Ids:
    found: _Ids = _read(table, fragments, [])[ROW_ID].to_numpy()
    return found


def _only(table: Table, fragment: Any, own: _Ids, other: _Ids, columns: Sequence[str]) -> pa.Table:
    """Return the rows of a fragment whose row ids are not among the other ones."""
    places = np.flatnonzero(~np.isin(own, other))
    if len(places) == 0:
        return _read(table, [], columns)
    taken = fragment.take(places.tolist(), columns=list(columns))
    return pa.table(taken).append_column(ROW_ID, pa.array(own[places], pa.uint64()))


def _without_moves(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Drop from both the rows with the same row id and the same values."""
    first, second = before[ROW_ID].to_numpy(), after[ROW_ID].to_numpy()
    _, mine, theirs = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    if len(mine) == 0:
        return before, after
    columns = [name for name in before.column_names if name != ROW_ID]
    one = before.select(columns).take(pa.array(mine))
    same = same_rows(one, after.select(columns).take(pa.array(theirs)))
    return _dropped(before, mine[same]), _dropped(after, theirs[same])


def _dropped(rows: pa.Table, places: npt.NDArray[np.intp]) -> pa.Table:
    kept = np.ones(rows.num_rows, np.bool_)
    kept[places] = False
    return rows.filter(pa.array(kept))
