"""A table of a merge that another engine compares, because too many rows changed for one process.

Held here are the ids of the rows taken and the columns that rules need, and whole rows only where
both sides clash. Single entities are looked up in the captured snapshots; all other values stay
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

ROW = "#row"  # row id, on the other side, of a row whose values are not held here


class Elsewhere(Protocol):
    """Another engine that compares tables, and writes rows of one version to another table."""

    def takes(self, frame: Frame, keys: Sequence[str]) -> frozenset[str]:
        """Select the tables that this engine compares."""

    def compare(self, frame: Frame, key: str, granularity: Granularity) -> "FarSides":
        """Return what both sides changed in a table."""

    def write(
        self, store: Store, source: Table, target: Table, row_ids: Positions, kept: Positions
    ) -> list[Mapping[str, Any]]:
        """Write rows of one table as fragments of another; rows with a row id to keep retain it."""


@dataclass(frozen=True)
class FarSides(Sides):
    """The changes of both sides of a table; `ours` and `theirs` hold only clashing entities.

    `inserted_rows` and `updated_rows` are the rows taken, limited to the columns that rules read,
    plus `SOURCE_ROW_ID`; `deleted_ids` are the ids removed. `invalid_rows` are whole rows among
    those taken that break a rule of a row. `parallel_candidates` are edges of each side that may
    be the same edge.
    """

    frame: Frame = field(kw_only=True)
    fresh: pa.Table = field(kw_only=True)
    after: pa.Table = field(kw_only=True)
    gone: pa.Array = field(kw_only=True)
    twins: tuple[pa.Table, pa.Table] = field(kw_only=True)
    broken: pa.Table = field(kw_only=True)
    known: dict[str, "_Known"] = field(kw_only=True, default_factory=dict, compare=False)

    def taken(self) -> tuple[pa.Table, pa.Table, pa.Array]:
        """Return what only the other side changed: rows to add, rows to replace, ids to remove."""
        return self.fresh, pa.concat_tables([self.after, self.slim(self.combined)]), self.gone

    def slim(self, rows: pa.Table) -> pa.Table:
        """Limit whole rows to the columns of the rows that are taken."""
        names = self.fresh.column_names[:-1]
        here = rows.select(names).append_column(ROW, pa.nulls(rows.num_rows, pa.int64()))
        return here.cast(self.fresh.schema)

    def added(self) -> tuple[pa.Table, pa.Table]:
        """Return the edges that each side added and the other may have added, too."""
        return self.twins

    def learn(self, entities: Iterable[str]) -> None:
        """Load entities in one lookup that will later be requested one by one."""
        wanted = sorted({*entities} - {*self.known})
        if wanted:
            found = [self._where({"id": pa.array(wanted, pa.string())}, one) for one in self._three]
            for entity in wanted:
                self.known[entity] = _Known(*(row_of(rows, entity) for rows in found))

    def state(self, side: Choice, entity: str) -> pa.Table | None:
        """Return an entity on a side, if either changed it; None if that side lacks it."""
        if super().knows(entity):
            return super().state(side, entity)
        known = self._known(entity)
        if not known.changed:
            return None
        return known.ours if side == "ours" else known.theirs

    def knows(self, entity: str) -> bool:
        """Whether either side changed an entity."""
        return super().knows(entity) or self._known(entity).changed

    def base_row(self, entity: str) -> pa.Table | None:
        """Return an entity as it was in the base, if either side changed it."""
        if super().knows(entity):
            return super().base_row(entity)
        known = self._known(entity)
        return known.base if known.changed else None

    def edges_from(self, source: str) -> list[str]:
        """Return the edges that either side added, changed or removed at a node."""
        where = {"src": pa.array([source], pa.string())}
        base, *sides = (self._where(where, one) for one in self._three)
        found: set[str] = set()
        for one in (matched(self.key, base, side, base.schema) for side in sides):
            for table in (one.inserted, one.after, one.deleted):
                found |= set(table["id"].to_pylist())
        return sorted(found)

    def only_gone_on(self, side: Choice, ends: Mapping[str, pa.Array]) -> pa.Table:
        """Return edges at some nodes that one side deleted and the other left unchanged."""
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
    """An entity in all three versions."""

    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None

    @property
    def changed(self) -> bool:
        return not (_same(self.base, self.ours) and _same(self.base, self.theirs))

    def only_gone_on(self, side: Choice) -> bool:
        """Whether one side deleted the entity and the other left it unchanged."""
        mine, other = (self.ours, self.theirs) if side == "ours" else (self.theirs, self.ours)
        return self.base is not None and mine is None and _same(self.base, other)


def _same(one: pa.Table | None, other: pa.Table | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(same_rows(one, other).all())


@dataclass(frozen=True)
class FarDelta(TableDelta):
    """The change of a table whose row values are held elsewhere, except for `local_rows`.

    `suspect_rows` may break a rule of a row: the local rows, and those found to be invalid.
    """

    here: pa.Table = field(kw_only=True)
    suspect: pa.Table = field(kw_only=True)
    frame: Frame = field(kw_only=True)
    away: Elsewhere | None = field(kw_only=True)

    @property
    def _places(self) -> tuple[Positions, Any]:
        """Return the source row ids of offloaded rows, and a mask of these among all rows."""
        column = self.rows[ROW].combine_chunks()
        far = pc.is_valid(column).to_numpy(zero_copy_only=False)
        return column.drop_null().to_numpy(), far

    def stage(self, txn: WriteTxn) -> Staged:
        """Write all rows and return them as one staged change."""
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
        """Write the local rows, in the order of the delta's ids."""
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
        """Read all rows with all their values; needs memory for all of them."""
        source = self.frame.theirs.table(self.key)
        places, _ = self._places
        rows = take_bytes(source, pa.array(places, pa.uint64()))
        shape = row_schema(source.schema)
        return pa.concat_tables([rows.cast(shape), self.here.select(shape.names).cast(shape)])

    def counts(self) -> dict[Op, int]:
        """Count the changed entities of the target by operation; reads only local rows."""
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
    """Make a delta from rows of rule columns and the whole rows that are held here."""
    made = replace(made, judged=True)
    facts = {one.name: getattr(made, one.name) for one in fields(TableDelta)}
    written = made.versions.filter(pc.is_valid(made.versions[ROW]))["id"].combine_chunks()
    broken = sides.broken.filter(pc.is_in(sides.broken["id"], value_set=written))
    suspect = pa.concat_tables([here, broken.select(here.column_names).cast(here.schema)])
    return FarDelta(**facts, here=here, suspect=suspect, frame=sides.frame, away=away)


def stage_all(txn: WriteTxn, delta: Delta) -> dict[str, Staged]:
    """Stage the change of every table that changes, offloaded or not."""
    far = {key: one for key, one in delta.tables.items() if isinstance(one, FarDelta)}
    near = {key: one for key, one in delta.tables.items() if key not in far}
    writes = dict(stage_tables(txn, replace(delta, tables=near)))
    return writes | {key: one.stage(txn) for key, one in far.items() if not one.empty}


def untouched(frame: Frame, key: str, granularity: Granularity) -> FarSides:
    """Return sides without changes to take, through which entities can still be looked up."""
    nothing = no_changes(key, frame.ours.table(key))
    empty = nothing.inserted
    slim = empty.append_column(ROW, pa.array([], pa.int64()))
    gone = pa.array([], pa.string())
    return FarSides(
        key, nothing, nothing, granularity,
        frame=frame, fresh=slim, after=slim, gone=gone, twins=(empty, empty), broken=empty,
    )  # fmt: skip
