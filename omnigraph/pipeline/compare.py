"""Tasks of a merge on Spark: list rows that may differ, compare them, write rows to the target.

Runs on executors, with the same comparison and storage code as a merge in one process. Only ids and
row ids are shuffled; values are read where they are compared, a piece at a time. Publishes nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.diff import fitted
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.merging.far import ROW
from omnigraph.rules.values import row_violations
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.difference import lone_rows
from omnigraph.storage.equality import same_rows
from omnigraph.storage.find import take_bytes
from omnigraph.storage.fragments import read_fragments, write_rows
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.storage.table import Table

from .packed import packed
from .place import Place

BASE, OURS, THEIRS = "base", "ours", "theirs"
SOURCE, TARGET = "source", "target"
# Row ids of an entity that may have changed: in the base and on the side, for each side.
COLUMNS = ("was_ours", "ours", "was_theirs", "theirs")
ENTRIES = ", ".join(["id string", *(f"{name} bigint" for name in COLUMNS)])
TOLD = "kind string, data binary"
_ENTRY = pa.schema([("id", pa.string()), *((name, pa.int64()) for name in COLUMNS)])
_PIECE = 8_192  # rows compared together
_ROWS, _BYTES = FRAGMENT_ROWS, FRAGMENT_BYTES  # limits of a fragment
Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Batches]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """Fragments in which a side differs from the base.

    `only_deletions`: both fragments have the same data files and differ only in deleted rows.
    """

    side: str
    was: tuple[int, ...] = ()
    now: tuple[int, ...] = ()
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Trio:
    """One table in three versions: base, ours and theirs.

    `rule_columns` are the columns that rules about all rows read; `initial_values` fill columns
    that the base did not have.
    """

    place: Place
    type: Node | Edge
    columns: tuple[str, ...]
    first: Mapping[str, Any] = field(default_factory=dict)

    @property
    def edges(self) -> bool:
        """Whether the rows are edges."""
        return "src" in self.columns


def may_differ(place: Place, parts: Sequence[Part]) -> Work:
    """Make the Spark function that lists the rows that may have changed, for fragment set numbers.

    The shipped function yields batches of `ENTRY_DDL`.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _entries(place, parts[number])

    return run


def _entries(place: Place, part: Part) -> Batches:
    names = (BASE, part.was), (part.side, part.now)
    if part.marked:
        old, new = ((place.table(name), some[0]) for name, some in names)
        was, now = (iter(one.to_batches()) for one in lone_rows(place.store(), old, new))
    else:
        was, now = (
            read_fragments(place.table(name), some, ["id"], places=True) if some else iter(())
            for name, some in names
        )
    for batches, column in ((was, f"was_{part.side}"), (now, part.side)):
        for rows in batches:
            found = {"id": rows.column("id"), column: rows.column("_rowid").cast(pa.int64())}
            gaps = pa.nulls(rows.num_rows, pa.int64())
            arrays = [found.get(name, gaps) for name in _ENTRY.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ENTRY)


def compared(trio: Trio) -> Work:
    """Make the Spark function that compares matched entries and yields one table per result kind.

    `insert`, `update`: rows that only the other side changed; `delete`: ids of rows that it
    removed; `broken`: taken rows that violate a rule of a row. `clash`: row ids, in all versions,
    of entities that both sides changed differently. `added`: edges that the target added.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for start in range(0, batch.num_rows, _PIECE):
                yield from _told(trio, batch.slice(start, _PIECE))

    return run


def _told(trio: Trio, rows: pa.RecordBatch) -> Batches:
    ids, (was_ours, ours, was_theirs, theirs) = rows.column("id"), map(rows.column, COLUMNS)
    mine = _changed(trio, OURS, was_ours, ours)
    other = _changed(trio, THEIRS, was_theirs, theirs)
    taken, there = other & ~mine, _there(theirs)
    for kind, mask in (("insert", ~_there(was_theirs)), ("update", _there(was_theirs))):
        found = np.flatnonzero(taken & there & mask)
        if len(found):
            yield from _taken(trio, kind, theirs.take(pa.array(found)))
    gone = np.flatnonzero(taken & ~there)
    if len(gone):
        yield _cell("delete", pa.table({"id": ids.take(pa.array(gone))}))
    clash = pa.array(np.flatnonzero(_clashing(trio, mine & other, ours, theirs)))
    if len(clash):
        names, columns = ("id", BASE, OURS, THEIRS), (ids, was_ours, ours, theirs)
        told = [one.take(clash) for one in columns]
        yield _cell("clash", pa.table(dict(zip(names, told, strict=True))))
    added = np.flatnonzero(mine & ~other & _there(ours) & ~_there(was_ours))
    if trio.edges and len(added):
        places = ours.take(pa.array(added))
        ends = _rows(trio.place.table(OURS), places, ("id", "src", "dst"))
        yield _cell("added", ends.append_column(ROW, places))


def _taken(trio: Trio, kind: str, places: pa.Array) -> Batches:
    """Rows taken from the other side, checked row by row: they may never have been validated."""
    table = trio.place.table(THEIRS)
    rows = _rows(table, places).cast(row_schema(table.schema))
    told = rows.select(trio.columns).append_column(ROW, places)
    yield _cell(kind, told)
    bad = {str(one.entity_id) for one in row_violations(trio.type, rows)}
    if bad:
        broken = told.filter(pc.is_in(told["id"], value_set=pa.array(sorted(bad), pa.string())))
        yield _cell("broken", broken.select(["id", ROW]))


def _there(column: pa.Array) -> Mask:
    found: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return found


def _changed(trio: Trio, side: str, was: pa.Array, now: pa.Array) -> Mask:
    """Which entities a side changed: a row exists in one version only, or its values differ."""
    before, after = _there(was), _there(now)
    both = pa.array(np.flatnonzero(before & after))
    changed = before ^ after
    changed[both.to_numpy()] = ~_same(trio, side, was.take(both), now.take(both))
    return changed


def _same(trio: Trio, side: str, was: pa.Array, now: pa.Array) -> Mask:
    if not len(was):
        return np.ones(0, np.bool_)
    old, new = trio.place.table(BASE), trio.place.table(side)
    shape = row_schema(new.schema)
    before = fitted(_rows(old, was), old.schema, new.schema, trio.first).cast(shape)
    return same_rows(before, _rows(new, now).cast(shape))


def _clashing(trio: Trio, both: Mask, ours: pa.Array, theirs: pa.Array) -> Mask:
    """Which of the entities that both sides changed differ between the sides."""
    mine, other = _there(ours), _there(theirs)
    clash = both & (mine ^ other)
    rows = pa.array(np.flatnonzero(both & mine & other))
    if len(rows):
        one = _rows(trio.place.table(OURS), ours.take(rows))
        two = _rows(trio.place.table(THEIRS), theirs.take(rows))
        clash[rows.to_numpy()] = ~same_rows(one, two)
    return clash


def _rows(table: Table, rows: pa.Array, columns: Sequence[str] | None = None) -> pa.Table:
    return take_bytes(table, rows.cast(pa.uint64()), columns)


def _cell(kind: str, rows: pa.Table) -> pa.RecordBatch:
    cells = [pa.array([kind]), pa.array([packed(rows)], pa.binary())]
    return pa.RecordBatch.from_arrays(cells, names=["kind", "data"])


def written(place: Place) -> Work:
    """Make the Spark function that writes rows as fragments of the target table.

    Its input columns are `row`, the row id in the source, and `kept`, the row id to keep in the
    target or a negative number.
    """

    def run(batches: Batches) -> Batches:
        stacks = {False: _Stack(place, keeps=False), True: _Stack(place, keeps=True)}
        for batch in batches:
            kept = batch.column("kept").to_numpy()
            for keeps, stack in stacks.items():
                rows = batch.filter(pa.array((kept >= 0) == keeps))
                for start in range(0, rows.num_rows, _PIECE):
                    yield from stack.add(rows.slice(start, _PIECE))
        for stack in stacks.values():
            yield from stack.flush()

    return run


class _Stack:
    """Rows waiting to be written as one fragment."""

    def __init__(self, place: Place, *, keeps: bool) -> None:
        self.place, self.keeps = place, keeps
        self.parts: list[pa.Table] = []
        self.kept: list[int] = []
        self.rows = self.size = 0

    def add(self, rows: pa.RecordBatch) -> Batches:
        found = _rows(self.place.table(SOURCE), rows.column("row"))
        self.parts.append(found)
        self.kept += rows.column("kept").to_pylist() if self.keeps else []
        self.rows, self.size = self.rows + found.num_rows, self.size + found.nbytes
        if self.rows >= _ROWS or self.size >= _BYTES:
            yield from self.flush()

    def flush(self) -> Batches:
        if not self.rows:
            return
        rows, kept = pa.concat_tables(self.parts), self.kept if self.keeps else None
        target = self.place.table(TARGET)
        facts = json.dumps(write_rows(self.place.store(), target, rows, kept)).encode()
        self.parts, self.kept, self.rows, self.size = [], [], 0, 0
        cells = [pa.array(["fragment"]), pa.array([facts], pa.binary())]
        yield pa.RecordBatch.from_arrays(cells, names=["kind", "data"])
