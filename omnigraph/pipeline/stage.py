"""Tasks of a load: parse, shape, check the rules of a row, write fragments, report to the driver.

Runs on executors, with the same parser, rules and storage code as a load in one process. A task
makes nothing visible and knows nothing of other tasks: rules that need all records are checked by
the driver from the reports.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError, InputError
from omnigraph.ingest.frames import take_table
from omnigraph.ingest.intake import Intake, Shelf
from omnigraph.ingest.limits import LoadLimits
from omnigraph.ingest.load import LoadMode
from omnigraph.ingest.ndjson import read_blocks
from omnigraph.ingest.problem import Problems
from omnigraph.ingest.unchanged import without_unchanged
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_text
from omnigraph.rules.delta import Delta, Positions, TableDelta, written
from omnigraph.rules.identity import resolve
from omnigraph.rules.unique import unique_violations
from omnigraph.rules.values import row_violations
from omnigraph.storage.find import find, read
from omnigraph.storage.fragments import write_rows
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.values import ScalarType

from .keys import key_notes, unique_notes
from .notes import note, notes
from .place import Place, type_of
from .sources import Piece, blocks_of_piece, first_spot, tables_of_piece
from .staged import Fragment, pack_spots

Notes = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Job:
    """A load as its tasks see it.

    `filled_keys` are tables that have rows; records at `skipped_positions` are not written.
    """

    ir: SchemaIR
    place: Place
    keys: tuple[str, ...]
    mode: LoadMode
    filled: frozenset[str] = frozenset()
    writes: bool = True
    limits: LoadLimits = field(default_factory=LoadLimits)
    rows: int = FRAGMENT_ROWS
    bytes: int = FRAGMENT_BYTES
    skip: frozenset[int] = frozenset()


def on_pieces(job: Job, pieces: Sequence[Piece]) -> Callable[[Notes], Notes]:
    """Make the Spark function that loads pieces by their numbers."""

    def run(batches: Notes) -> Notes:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _told(number, partial(_take, job, pieces[number]))

    return run


def on_frame(job: Job, key: str, first: int) -> Callable[[Notes], Notes]:
    """Make the Spark function that loads a DataFrame of one type; partitions count from `first`."""

    def run(batches: Notes) -> Notes:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = first + (context.partitionId() if context is not None else 0)
        tables = (from_spark(pa.Table.from_batches([one]), type_of(job.ir, key)) for one in batches)
        yield from _told(number, partial(_take_tables, job, number, key, tables))

    return run


def from_spark(table: pa.Table, one: Node | Edge) -> pa.Table:
    """Cast decimals of U64 columns, which Spark has no type for, back to unsigned integers."""
    whole = {prop.name for prop in one.properties if prop.type.scalar is ScalarType.U64}
    for at, name in enumerate(table.column_names):
        if name in whole and pa.types.is_decimal(table.schema.field(name).type):
            table = table.set_column(at, name, table[name].cast(pa.uint64()))
    return table


def _told(number: int, take: Callable[[], Notes]) -> Notes:
    """Yield the reports of a piece; report an error of the input instead of failing the task."""
    try:
        yield from take()
    except ClientError as error:
        yield note("failure", spot=first_spot(number), data=error)


def _take(job: Job, piece: Piece) -> Notes:
    if piece.input.form != "ndjson":
        key = key_named(job.ir, piece.input.type or "")
        yield from _take_tables(job, piece.number, key, tables_of_piece(piece))
        return
    bench = Bench(job)
    first = at = first_spot(piece.number)
    blocks = blocks_of_piece(piece, job.limits.line_bytes)
    truncating = job.mode == "overwrite"
    for after in read_blocks(bench.intake, blocks, truncating=truncating, report=True, first=first):
        at = after
        yield from bench.drain()
    yield from bench.end()
    yield note("lines", grp=piece.number, spot=at - first)


def _take_tables(job: Job, number: int, key: str, tables: Iterator[pa.Table]) -> Notes:
    bench, one = Bench(job), type_of(job.ir, key)
    count, first = 0, first_spot(number)
    for table in tables:
        take_table(bench.intake, one, table, first + count)
        count += table.num_rows
        yield from bench.drain()
    yield from bench.end()
    yield note("lines", grp=number, spot=count)


def key_named(ir: SchemaIR, name: str) -> str:
    """Return the table key of a type; the node type wins if both exist."""
    require_text(name, "type")
    found: Node | Edge | None = ir.catalog.node(name) or ir.catalog.edge_by_word(name)
    if found is None:
        known = [n.name for n in ir.catalog.nodes] + [e.name for e in ir.catalog.edges]
        message = f"there is no type {quote_name(name)}"
        raise InputError(reason=message, hint=did_you_mean(name, known))
    return f"{found.kind}:{found.name}"


@dataclass(slots=True)
class Stack:
    """Rows of one type waiting to be written."""

    parts: list[pa.Table] = field(default_factory=list)
    spots: list[Positions] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    made: bool = True

    def add(self, rows: pa.Table, spots: Positions, *, made: bool) -> None:
        """Append rows."""
        self.parts.append(rows)
        self.spots.append(spots)
        self.rows += rows.num_rows
        self.size += rows.nbytes
        self.made = self.made and made


class Bench:
    """Loads one piece."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.problems = Problems()
        self.intake = Intake(job.ir, self.problems, job.limits)
        self.lookup = Pinned(job.place)
        self.stacks: dict[str, Stack] = {}
        self.sound = True  # once a rule is broken nothing will be published: stop writing

    def drain(self) -> Notes:
        """Check what was parsed so far; write fragments that are full."""
        self.intake.flush()
        for key, shelf in self.intake.shelves.items():
            rows, spots = shelf.drain()
            if rows.num_rows:
                yield from self._look(key, shelf, rows, spots)
        yield from self._unread()
        for key, stack in list(self.stacks.items()):
            if stack.rows >= self.job.rows or stack.size >= self.job.bytes:
                yield from self._write(key)

    def end(self) -> Notes:
        """Write the remaining rows, and report how many records there were."""
        for key in list(self.stacks):
            yield from self._write(key)
        for key, shelf in self.intake.shelves.items():
            emptied = "truncated" if shelf.truncated else None
            yield note("count", type=self._number(key), spot=shelf.count, value=emptied)

    def _number(self, key: str) -> int:
        return self.job.keys.index(key)

    def _unread(self) -> Notes:
        found, self.problems.found = self.problems.found, []
        for one in found:
            self.sound = False
            yield note("unread", spot=one.line, id=one.id, data=one)

    def _look(self, key: str, shelf: Shelf, rows: pa.Table, spots: Positions) -> Notes:
        if self.job.skip:
            kept = ~np.isin(spots, np.fromiter(self.job.skip, np.int64))
            rows, spots = rows.filter(pa.array(kept)), spots[kept]
        one, number = shelf.type, self._number(key)
        for broken in row_violations(one, rows, spots):
            self.sound = False
            yield note("broken", type=number, spot=broken.line, data=broken)
        self.stacks.setdefault(key, Stack()).add(rows, spots, made=shelf.made)

    def _write(self, key: str) -> Notes:
        stack, number, one = self.stacks.pop(key), self._number(key), type_of(self.job.ir, key)
        rows, spots = pa.concat_tables(stack.parts), np.concatenate(stack.spots)
        delta = replace(
            written(key, rows, "fresh" if stack.made else "upsert", lines=spots, records=True),
            strict=self.job.mode == "append",
        )
        if self.job.mode != "overwrite" and key in self.job.filled:
            resolved, taken = resolve(Delta({key: delta}), self.lookup)
            delta = resolved.tables[key]
            for broken in taken:
                yield note("taken", type=number, spot=broken.line, id=broken.entity_id, data=broken)
            for held in unique_violations(one, delta, self.lookup):
                yield note(
                    "held", type=number, spot=held.line, src=held.other_id, id=held.entity_id,
                    data=held,
                )  # fmt: skip
            yield from _old_notes(one, number, delta)
            if self.job.mode == "merge":
                delta = without_unchanged(Delta({key: delta}), self.lookup).tables[key]
            self.sound = self.sound and not taken
        left = np.ones(len(spots), bool)
        if self.job.writes and self.sound:
            yield from self._fragments(key, number, delta, made=stack.made)
            kept = delta_spots(delta)
            left = ~np.isin(spots, kept) if len(kept) < len(spots) else left[:0]
        if left.any():
            yield from self._noted(key, rows.filter(pa.array(left)), spots[left], made=stack.made)

    def _noted(self, key: str, rows: pa.Table, spots: Positions, *, made: bool) -> Notes:
        """Report records that are in no fragment."""
        one, number = type_of(self.job.ir, key), self._number(key)
        yield from key_notes(one, number, rows, spots, made=made)
        yield from unique_notes(one, number, rows, spots)
        written = self.job.writes and self.sound
        yield note("noted", type=number, value=None if written else "unwritten")

    def _fragments(self, key: str, number: int, delta: TableDelta, *, made: bool) -> Notes:
        table, store = self.job.place.table(key), self.job.place.store()
        replaces, spots = delta.row_ids >= 0, delta_spots(delta)
        new = ~replaces
        if new.any():
            rows = delta.rows if new.all() else delta.rows.filter(pa.array(new))
            facts = write_rows(store, table, rows)
            told = Fragment(key, facts, pack_spots(spots[new]), rows.num_rows, made)
            yield note("fragment", type=number, data=told)
        if replaces.any():
            rows = delta.rows.filter(pa.array(replaces))
            facts = write_rows(store, table, rows, delta.row_ids[replaces].tolist())
            told = Fragment(key, facts, pack_spots(spots[replaces]), rows.num_rows, made)
            yield note("fragment", type=number, data=told)
            yield note("removed", type=number, data=delta.addresses[replaces])


def delta_spots(delta: TableDelta) -> Positions:
    """Return the input positions of the rows that count."""
    assert delta.lines is not None  # noqa: S101 - records of a load have positions
    return delta.lines[delta.latest]


def _old_notes(one: Node | Edge, number: int, delta: TableDelta) -> Notes:
    bounded = isinstance(one, Edge) and (one.low or one.high is not None)
    if bounded and delta.previous is not None and delta.previous.num_rows:
        old = delta.previous
        yield notes("old", old.num_rows, type=number, id=old["id"], src=old["src"])


@dataclass(frozen=True, slots=True)
class Pinned:
    """Looks up stored rows at the pinned version."""

    place: Place

    def find(
        self,
        key: str,
        where: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        places: bool = False,
    ) -> pa.Table:
        """Find rows by column values."""
        return find(self.place.table(key), where, columns, places=places)

    def scan(self, key: str, columns: Sequence[str]) -> Any:
        """Read all rows."""
        return read(self.place.table(key), columns)
