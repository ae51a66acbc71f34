"""Merges with too many changes for one process: Spark compares their tables and writes rows.

Executors read only the fragments that differ, match rows by id in one shuffle of ids and row ids,
and compare and write values where they are read. The driver receives ids, the columns that rules
about all rows need, and clashing rows; conflicts and the publish are handled as in any merge.
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConfigError
from omnigraph.history.bases import Frame
from omnigraph.history.diff import fitted, matched, rows_between
from omnigraph.history.entities import TableChanges
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.defaults import first_values
from omnigraph.merging.far import ROW, FarSides
from omnigraph.merging.sides import Granularity
from omnigraph.rules.check import type_named
from omnigraph.rules.delta import Positions
from omnigraph.rules.unique import judged_columns
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.difference import compare
from omnigraph.storage.find import take_bytes
from omnigraph.storage.fragments import fragment_sizes
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .compare import (
    BASE,
    COLUMNS,
    ENTRIES,
    OURS,
    SOURCE,
    TARGET,
    THEIRS,
    TOLD,
    Part,
    Trio,
    compared,
    may_differ,
    written,
)
from .engine import Engine, check_engine
from .packed import unpacked
from .pick import session_for
from .place import place_of
from .scan import tasks_of
from .session import spark_session, watched
from .versions import check_versions

ROWS = 2_000_000  # changed rows of both sides together from which Spark is used
LIMIT = "OMNIGRAPH_MERGE_SPARK_ROWS"
_SMALL = 10_000  # tables with fewer changed rows are always compared in this process
_log = logging.getLogger("omnigraph")


def merge_engine(engine: Engine = "auto", session: Any = None) -> "SparkMerge | None":
    """Return the engine for large tables of a merge; None if this process compares all tables."""
    check_engine(engine)
    return None if engine == "local" else SparkMerge(session, asked=engine == "spark")


def threshold() -> int:
    """Read `OMNIGRAPH_MERGE_SPARK_ROWS`: the changed rows from which a merge runs on Spark."""
    given = os.environ.get(LIMIT) or str(ROWS)
    if not given.isdecimal():
        raise ConfigError(f"{LIMIT} must be a number of rows, not '{given}'")
    return int(given)


@dataclass(slots=True)
class SparkMerge:
    """Compares and writes tables of a merge on Spark: all of them if `forced`, else large ones."""

    session: Any = None
    asked: bool = False

    def takes(self, frame: Frame, keys: Sequence[str]) -> frozenset[str]:
        """Select the tables to compare on Spark; none if the merge is small."""
        if self.asked:
            return frozenset(keys)
        least = threshold()
        # The bound from row counts needs no table to be opened, so it is checked first.
        if sum(_at_most(frame, key) for key in keys) < least:
            return frozenset()
        sizes = {key: _size(frame, key) for key in keys}
        if sum(sizes.values()) < least:
            return frozenset()
        self.session = session_for("auto", self.session, lambda: True)
        if self.session is None:
            _log.info("a large merge runs in this process: Spark is not available")
            return frozenset()
        return frozenset(key for key, size in sizes.items() if size >= _SMALL)

    def compare(self, frame: Frame, key: str, granularity: Granularity) -> FarSides:
        """Return what both sides changed in a table."""
        type_ = type_named(frame.ours.schema.ir.catalog, key)
        states = {BASE: frame.base, OURS: frame.ours, THEIRS: frame.theirs}
        pinned = {name: _pinned(one.table(key)) for name, one in states.items()}
        place = place_of(frame.ours.store, pinned)
        trio = Trio(place, type_, tuple(judged_columns(type_)), first_values(type_))
        found = self._run(trio, _parts(frame, key))
        return _sides(frame, key, granularity, trio, found)

    def write(
        self, store: Store, source: Table, target: Table, row_ids: Positions, kept: Positions
    ) -> list[Mapping[str, Any]]:
        """Write rows of one table as fragments of another; rows with a row id to keep retain it."""
        spark = self._spark()
        place = place_of(store, {SOURCE: _pinned(source), TARGET: _pinned(target)})
        order = np.lexsort((row_ids, kept >= 0))
        with watched(spark):
            units = spark.createDataFrame(pa.table({"row": row_ids[order], "kept": kept[order]}))
            told = units.mapInArrow(written(place), TOLD).toArrow()
        return [json.loads(one) for one in told["data"].to_pylist()]

    def _run(self, trio: Trio, parts: Sequence[Part]) -> Mapping[str, list[pa.Table]]:
        from pyspark.sql import functions as sql

        found: dict[str, list[pa.Table]] = {}
        if not parts:
            return found
        spark = self._spark()
        with watched(spark):
            units = spark.range(0, len(parts), 1, len(parts))
            entries = units.mapInArrow(may_differ(trio.place, parts), ENTRIES)
            same_id = entries.groupBy("id").agg(*(sql.max(name).alias(name) for name in COLUMNS))
            # Sort by row id, so that neighbouring rows are read together.
            order = sql.coalesce("theirs", "ours", "was_theirs", "was_ours")
            told = same_id.sortWithinPartitions(order).mapInArrow(compared(trio), TOLD).toArrow()
        for kind, data in zip(told["kind"].to_pylist(), told["data"].to_pylist(), strict=True):
            found.setdefault(kind, []).append(unpacked(data))
        return found

    def _spark(self) -> Any:
        if self.session is None:
            self.session = spark_session()
        check_versions(self.session)
        return self.session


def _pinned(table: Table) -> tuple[str, int]:
    return table.location, table.version


def _at_most(frame: Frame, key: str) -> int:
    """Upper bound of the changed rows, computed without opening a table."""
    return sum(2 * one.tables[key].rows for one in (frame.base, frame.ours, frame.theirs))


def _size(frame: Frame, key: str) -> int:
    """Count the rows of both sides that have to be compared."""
    return sum(rows_between(frame.base, one, key) for one in (frame.ours, frame.theirs))


def _parts(frame: Frame, key: str) -> list[Part]:
    """The fragments in which the sides differ from the base, grouped for tasks."""
    base, parts = frame.base.table(key), []
    for side, shown in ((OURS, frame.ours), (THEIRS, frame.theirs)):
        table = shown.table(key)
        was, now = fragment_sizes(base), fragment_sizes(table)
        if table.location == base.location:
            found = compare(base, table)
            was, now = (
                {one.fragment_id: one.physical_rows for one in some}
                for some in (found.gone, found.come)
            )
            pairs = [(one.old.fragment_id, one.new.fragment_id) for one in found.marked]
            parts += [Part(side, (old,), (new,), marked=True) for old, new in pairs]
        parts += [Part(side, was=tuple(some)) for some in tasks_of(was)]
        parts += [Part(side, now=tuple(some)) for some in tasks_of(now)]
    return parts


def _sides(
    frame: Frame,
    key: str,
    granularity: Granularity,
    trio: Trio,
    found: Mapping[str, list[pa.Table]],
) -> FarSides:
    shape = row_schema(frame.theirs.table(key).schema)
    slim = pa.schema([*(shape.field(name) for name in trio.columns), (ROW, pa.int64())])
    fresh, after = (_together(found.get(kind, ()), slim) for kind in ("insert", "update"))
    gone = _together(found.get("delete", ()), pa.schema([shape.field("id")]))["id"]
    clash = _together(found.get("clash", ()), _CLASH)
    ours, theirs = (_clashing(frame, key, trio, clash, side) for side in (OURS, THEIRS))
    added = _together(found.get("added", ()), _ADDED)
    twins = _twins(frame, key, added, fresh)
    broken = _taken(frame.theirs.table(key), _together(found.get("broken", ()), _BROKEN)[ROW])
    return FarSides(
        key, ours, theirs, granularity,
        frame=frame, fresh=fresh, after=after, gone=gone.combine_chunks(), twins=twins,
        broken=broken,
    )  # fmt: skip


def _together(parts: Sequence[pa.Table], shape: pa.Schema) -> pa.Table:
    """Concatenate the tables of all tasks in id order, like a comparison in one process."""
    found = pa.concat_tables([shape.empty_table(), *(one.cast(shape) for one in parts)])
    return found.sort_by("id").combine_chunks()


def _clashing(frame: Frame, key: str, trio: Trio, clash: pa.Table, side: str) -> TableChanges:
    """The changes of one side to entities that both sides changed differently, with all values."""
    base, table = frame.base.table(key), _shown(frame, side).table(key)
    shape = row_schema(table.schema)
    was, now = (_taken(one, clash[name]) for one, name in ((base, BASE), (table, side)))
    before = fitted(was, base.schema, table.schema, trio.first)
    return matched(key, before, now, shape)


def _twins(frame: Frame, key: str, added: pa.Table, fresh: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Edges that each side added between nodes for which the other side added one too."""
    ours, theirs = frame.ours.table(key), frame.theirs.table(key)
    if not added.num_rows or not fresh.num_rows:
        return _taken(ours, added[ROW][:0]), _taken(theirs, fresh[ROW][:0])
    mine, other = _ends(added), _ends(fresh)
    here = added.filter(pc.is_in(mine, value_set=other))
    there = fresh.filter(pc.is_in(other, value_set=mine))
    return _taken(ours, here[ROW]), _taken(theirs, there[ROW])


def _ends(rows: pa.Table) -> pa.Array:
    """Both endpoints as one text; callers compare the rows, so a chance collision is harmless."""
    found: pa.ChunkedArray = pc.binary_join_element_wise(rows["src"], rows["dst"], "\0")
    return found.combine_chunks()


def _taken(table: Table, rows: pa.ChunkedArray) -> pa.Table:
    found = take_bytes(table, rows.combine_chunks().drop_null().cast(pa.uint64()))
    return found.cast(row_schema(table.schema))


def _shown(frame: Frame, side: str) -> Snapshot:
    return frame.ours if side == OURS else frame.theirs


_BROKEN = pa.schema([("id", pa.string()), (ROW, pa.int64())])
_CLASH = pa.schema([("id", pa.string()), *((name, pa.int64()) for name in (BASE, OURS, THEIRS))])
_ADDED = pa.schema([*((name, pa.string()) for name in ("id", "src", "dst")), (ROW, pa.int64())])
