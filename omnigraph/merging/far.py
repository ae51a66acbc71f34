"""A table of a merge that another engine compared, because too much of it changed for one process.

Here are the ids of what is taken and what rules need of them, and whole rows only where both sides
contradict each other. Single entities are asked of the captured states; all other values stay
where they are until they are written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.bases import Frame
from omnigraph.history.diff import matched, no_changes
from omnigraph.history.entities import OPS, Op
from omnigraph.history.plan import WriteTxn
from omnigraph.ingest.stage import stage_tables
from omnigraph.rules.delta import Delta, Positions, TableDelta
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.equality import same_rows
from omnigraph.storage.find import find, take_bytes
from omnigraph.storage.fragments import appended, changed, write_rows
from omnigraph.storage.store import Store
from omnigraph.storage.table import Staged, Table

from .sides import Choice, Granularity, Sides, row_of
from .virtual import rows_where

ROW = "#row"  # the row id, on the other side, of a row whose values are not here


class Elsewhere(Protocol):
    """Another engine: it compares tables, and writes rows of one state to a table of another."""

    def takes(self, frame: Frame, keys: Sequence[str]) -> frozenset[str]:
        """Which of these tables it compares."""

    def compare(self, frame: Frame, key: str, granularity: Granularity) -> "FarSides":
        """What both sides changed in a table."""

    def write(
        self, store: Store, source: Table, target: Table, row_ids: Positions, kept: Positions
    ) -> list[Mapping[str, Any]]:
        """Fragments of a table with rows of another; those with a row id to keep have it."""


@dataclass(frozen=True)
class FarSides(Sides):
    """The changes of both sides of a table; `ours` and `theirs` are only what is contradictory.

    `fresh` and `after` are the rows that are taken, as far as rules look at them, with `ROW`;
    `gone` the ids that are; `broken` the whole rows among them that break a rule of a row. `twins`
    are edges of each side that may be the same edge.
    """

    frame: Frame = field(kw_only=True)
    fresh: pa.Table = field(kw_only=True)
    after: pa.Table = field(kw_only=True)
    gone: pa.Array = field(kw_only=True)
    twins: tuple[pa.Table, pa.Table] = field(kw_only=True)
    broken: pa.Table = field(kw_only=True)
    known: dict[str, "_Known"] = field(kw_only=True, default_factory=dict, compare=False)

    def taken(self) -> tuple[pa.Table, pa.Table, pa.Array]:
        """What only the other side changed: rows to add, rows to replace, ids to remove."""
        return self.fresh, pa.concat_tables([self.after, self.slim(self.combined)]), self.gone

    def slim(self, rows: pa.Table) -> pa.Table:
        """Whole rows as the rows that are taken have them."""
        names = self.fresh.column_names[:-1]
        here = rows.select(names).append_column(ROW, pa.nulls(rows.num_rows, pa.int64()))
        return here.cast(self.fresh.schema)

    def added(self) -> tuple[pa.Table, pa.Table]:
        """Edges that each side added, of those that the other may have added, too."""
        return self.twins

    def learn(self, entities: Iterable[str]) -> None:
        """Ask for entities together that will be asked for one by one."""
        wanted = sorted({*entities} - {*self.known})
        if wanted:
            found = [self._where({"id": pa.array(wanted, pa.string())}, one) for one in self._three]
            for entity in wanted:
                self.known[entity] = _Known(*(row_of(rows, entity) for rows in found))

    def state(self, side: Choice, entity: str) -> pa.Table | None:
        """An entity as a side has it, if either changed it; None when that side has none."""
        if super().knows(entity):
            return super().state(side, entity)
        known = self._known(entity)
        if not known.changed:
            return None
        return known.ours if side == "ours" else known.theirs

    def knows(self, entity: str) -> bool:
        """Whether a side changed an entity."""
        return super().knows(entity) or self._known(entity).changed

    def base_row(self, entity: str) -> pa.Table | None:
        """An entity as it was in the base, if a side changed it."""
        if super().knows(entity):
            return super().base_row(entity)
        known = self._known(entity)
        return known.base if known.changed else None

    def edges_from(self, source: str) -> list[str]:
        """The edges that a side added, changed or removed at a node."""
        where = {"src": pa.array([source], pa.string())}
        base, *sides = (self._where(where, one) for one in self._three)
        found: set[str] = set()
        for one in (matched(self.key, base, side, base.schema) for side in sides):
            for table in (one.inserted, one.after, one.deleted):
                found |= set(table["id"].to_pylist())
        return sorted(found)

    def only_gone_on(self, side: Choice, ends: Mapping[str, pa.Array]) -> pa.Table:
        """Edges at some nodes that a side deleted, and the other left as they were."""
        asked = {end: nodes for end, nodes in ends.items() if len(nodes)}
        parts = [self._where({end: nodes}, self.frame.base) for end, nodes in asked.items()]
        ids = sorted({one for rows in parts for one in rows["id"].to_pylist()})
        self.learn(ids)
        kept = [one for one in ids if self.known[one].only_gone_on(side)]
        found = [row for one in kept if (row := self.known[one].base) is not None]
        shape = row_schema(self.frame.ours.table(self.key).schema)
        return pa.concat_tables([shape.empty_table(), *found])

    @property
    def _three(self) -> tuple[Any, Any, Any]:
        return self.frame.base, self.frame.ours, self.frame.theirs

    def _where(self, where: Mapping[str, pa.Array], one: Any) -> pa.Table:
        return rows_where(one, self.frame.ours, self.key, where).sort_by("id")

    def _known(self, entity: str) -> "_Known":
        self.learn([entity])
        return self.known[entity]


@dataclass(frozen=True, slots=True)
class _Known:
    """An entity in all three states."""

    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None

    @property
    def changed(self) -> bool:
        return not (_same(self.base, self.ours) and _same(self.base, self.theirs))

    def only_gone_on(self, side: Choice) -> bool:
        """Whether one side deleted it, and the other left it as it was."""
        mine, other = (self.ours, self.theirs) if side == "ours" else (self.theirs, self.ours)
        return self.base is not None and mine is None and _same(self.base, other)


def _same(one: pa.Table | None, other: pa.Table | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(same_rows(one, other).all())


@dataclass(frozen=True)
class FarDelta(TableDelta):
    """The change of a table whose values are elsewhere, but for the rows that are `here`.

    `suspect` are the rows that may break a rule of a row: those here, and those that were found to.
    """

    here: pa.Table = field(kw_only=True)
    suspect: pa.Table = field(kw_only=True)
    frame: Frame = field(kw_only=True)
    away: Elsewhere | None = field(kw_only=True)

    @property
    def _places(self) -> tuple[Positions, Any]:
        """The row ids of rows whose values are elsewhere, and which of all rows these are."""
        column = self.rows[ROW].combine_chunks()
        far = pc.is_valid(column).to_numpy(zero_copy_only=False)
        return column.drop_null().to_numpy(), far

    def stage(self, txn: WriteTxn) -> Staged:
        """Everything written, as one staged change."""
        table, (places, far) = txn.table(self.key), self._places
        fragments = self._own(txn, table, far)
        if self.away is not None and len(places):
            source = self.frame.theirs.table(self.key)
            fragments += self.away.write(txn.store, source, table, places, self.row_ids[far])
        replaces = self.row_ids >= 0
        removed = self.addresses[replaces]
        if self.removed is not None:
            removed = np.concatenate([removed, self.removed["_rowaddr"].to_numpy()])
        if not len(removed):
            return appended(table, fragments)
        kept = self.row_ids[replaces].tolist()
        return changed(txn.store, table, fragments, removed.astype(np.uint64), kept)

    def _own(self, txn: WriteTxn, table: Table, far: Any) -> list[Mapping[str, Any]]:
        """The rows that are here; the order of their ids is that of the delta."""
        if far.all():
            return []
        ids, row_ids = self.ids.filter(pa.array(~far)), self.row_ids[~far]
        rows = self.here.take(pc.index_in(ids, value_set=self.here["id"].combine_chunks()))
        made: list[Mapping[str, Any]] = []
        for kept in (False, True):
            some = (row_ids >= 0) == kept
            if some.any():
                chosen = row_ids[some].tolist() if kept else None
                made.append(write_rows(txn.store, table, rows.filter(pa.array(some)), chosen))
        return made

    def whole_rows(self) -> pa.Table:
        """All rows with all their values; as much memory as they need."""
        source = self.frame.theirs.table(self.key)
        places, _ = self._places
        rows = take_bytes(source, pa.array(places, pa.uint64()))
        shape = row_schema(source.schema)
        return pa.concat_tables([rows.cast(shape), self.here.select(shape.names).cast(shape)])

    def counts(self) -> dict[Op, int]:
        """How many entities of the target change in which way; only rows that are here are read."""
        _, far = self._places
        updated = int((self.row_ids[far] >= 0).sum())
        numbers = int(far.sum()) - updated, updated, len(self.removed_ids)
        counted: dict[Op, int] = dict(zip(OPS, numbers, strict=True))
        if self.here.num_rows:
            table = self.frame.ours.table(self.key)
            before = find(table, {"id": self.here["id"].combine_chunks()}, table.schema.names)
            own = matched(self.key, before, self.here, row_schema(table.schema)).counts
            counted = {op: count + own[op] for op, count in counted.items()}
        return counted


def far_delta(
    made: TableDelta, sides: FarSides, here: pa.Table, away: Elsewhere | None
) -> FarDelta:
    """A delta of slim rows, and the whole rows that are here."""
    facts = {one.name: getattr(made, one.name) for one in fields(TableDelta)}
    written = made.versions.filter(pc.is_valid(made.versions[ROW]))["id"].combine_chunks()
    broken = sides.broken.filter(pc.is_in(sides.broken["id"], value_set=written))
    suspect = pa.concat_tables([here, broken.select(here.column_names).cast(here.schema)])
    facts |= {"judged": True, "here": here, "suspect": suspect}
    return FarDelta(**facts, frame=sides.frame, away=away)


def stage_all(txn: WriteTxn, delta: Delta) -> dict[str, Staged]:
    """The staged change of every table that changes, wherever its rows are."""
    far = {key: one for key, one in delta.tables.items() if isinstance(one, FarDelta)}
    near = {key: one for key, one in delta.tables.items() if key not in far}
    writes = dict(stage_tables(txn, replace(delta, tables=near)))
    return writes | {key: one.stage(txn) for key, one in far.items() if not one.empty}


def untouched(frame: Frame, key: str, granularity: Granularity) -> FarSides:
    """A table of which nothing is taken; its entities can be asked for."""
    nothing = no_changes(key, frame.ours.table(key))
    empty = nothing.inserted
    slim = empty.append_column(ROW, pa.array([], pa.int64()))
    gone = pa.array([], pa.string())
    return FarSides(
        key, nothing, nothing, granularity,
        frame=frame, fresh=slim, after=slim, gone=gone, twins=(empty, empty), broken=empty,
    )  # fmt: skip
