"""Plan a merge: which tables take part, what each becomes, and which conflicts remain.

Owns the step from the changes of both sides, and from decisions about conflicts, to one change of
the target that the rules have validated. Must only read, never write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.bases import Frame
from omnigraph.history.commit import TableEntry
from omnigraph.history.diff import diff_table, former_key, no_changes
from omnigraph.history.plan import Requirement, WriteTxn
from omnigraph.ingest.defaults import first_values
from omnigraph.rules.check import check, type_named
from omnigraph.rules.delta import FRESH, UNKNOWN, Delta, TableDelta
from omnigraph.rules.lookup import Committed
from omnigraph.rules.values import row_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.difference import compare

from .conflicts import Entity, Found, broken_rule, contested
from .edges import Parallel, parallel_edges
from .far import Elsewhere, FarDelta, FarSides, far_delta, untouched
from .limits import MergeLimits, check_delta
from .lost import LostEdge, lost_edges
from .sides import Choice, Granularity, Sides
from .virtual import virtual_sides

Decision: TypeAlias = Choice | Any  # a side, or the row that replaces both
Decisions: TypeAlias = Mapping[Entity, Decision]


@dataclass(frozen=True, slots=True)
class Options:
    """How a merge combines changes, how much it may hold, and which engine may help it."""

    granularity: Granularity = "entity"
    collapse_edges: bool = False
    limits: MergeLimits = field(default_factory=MergeLimits)
    elsewhere: Elsewhere | None = None


@dataclass(frozen=True)
class Judged:
    """What a merge would do to the target, and every remaining conflict."""

    found: tuple[Found, ...]
    delta: Delta
    adopted: Mapping[str, TableEntry]
    parallel: tuple[Parallel, ...] = ()
    merged_properties: int = 0
    requirements: tuple[Requirement, ...] = ()  # what the rules read from the target
    lost: tuple[LostEdge, ...] = ()
    far: Mapping[str, FarDelta] = field(default_factory=dict)  # also those that are adopted


class Work:
    """Plans one merge; each table is compared once, when it is first needed."""

    def __init__(self, frame: Frame, options: Options | None = None) -> None:
        self.frame = frame
        self.options = options or Options()
        self.catalog = frame.ours.schema.ir.catalog
        self._sides: dict[str, Sides] = {}

    def touched(self) -> list[str]:
        """Return the tables that the source changed, in order; reads no rows."""
        every = sorted({*self.frame.ours.tables, *self.frame.theirs.tables})
        return [key for key in every if self._takes_part(key)]

    def sides(self, key: str) -> Sides:
        """Return what both sides changed in a table."""
        if key not in self._sides:
            self._sides[key] = self._compare(key)
        return self._sides[key]

    def judge(self, decisions: Decisions) -> Judged:
        """Plan the change of the target under some decisions, and check it against the rules."""
        frame = self.frame
        txn = WriteTxn(frame.ours.store, frame.ours.branch, frame.opened, "", 0)
        lookup, away = Committed(txn), self.options.elsewhere
        parallel = tuple(one for key in self.touched() for one in parallel_edges(self.sides(key)))
        dropped = {(one.key, one.theirs) for one in parallel} if self.options.collapse_edges else ()
        tables = {}
        for key in sorted({*self.touched(), *(key for key, _ in decisions)}):
            one = _table_delta(self.sides(key), decisions, dropped, lookup, away)
            if not one.empty:
                tables[key] = one
        check_delta(tables.values(), self.options.limits)
        delta, broken = check(self.catalog, Delta(tables), lookup, limit=None)
        far = {key: one for key, one in delta.tables.items() if isinstance(one, FarDelta)}
        for key, distant in far.items():
            broken += row_violations(type_named(self.catalog, key), distant.suspect)
        found = [*self._contested(decisions), *self._broken(broken)]
        adopted = {key: self._adopted(key) for key in delta.tables if self._whole(key, decisions)}
        if dropped:
            adopted = {k: v for k, v in adopted.items() if all(k != key for key, _ in dropped)}
        left = {key: one for key, one in delta.tables.items() if key not in adopted}
        combined = sum(self.sides(key).combined_properties for key in self.touched())
        order = sorted(found, key=lambda one: one.order)
        delta, read = replace(delta, tables=left), tuple(lookup.requirements)
        lost = lost_edges(self.catalog, self.sides, decisions)
        return Judged(tuple(order), delta, adopted, parallel, combined, read, lost, far)

    def unmoved(self, key: str) -> bool:
        """Whether both sides have the same files of a table: a change was reverted.

        Tables of different row counts are not opened, and no row is read.
        """
        ours, theirs = self.frame.ours.tables.get(key), self.frame.theirs.tables.get(key)
        if ours is None or theirs is None:
            return False
        if (ours.rows, ours.location) != (theirs.rows, theirs.location):
            return False
        return compare(self.frame.ours.table(key), self.frame.theirs.table(key)).empty

    def entry_of(self, key: str) -> TableEntry:
        """Return a table of the source as the target will name it."""
        return self._adopted(key)

    def _takes_part(self, key: str) -> bool:
        ours, theirs = self.frame.ours.tables.get(key), self.frame.theirs.tables.get(key)
        now = theirs.content_id if theirs else None
        if now == (ours.content_id if ours else None):
            return False
        return any(content != now for content in self._base_contents(key))

    def _base_contents(self, key: str) -> list[str | None]:
        near = self.frame.ours if key in self.frame.ours.tables else self.frame.theirs
        found = (one.tables.get(former_key(one, near, key)) for one in self.frame.bases)
        return [None if one is None else one.content_id for one in found]

    @cached_property
    def _far(self) -> frozenset[str]:
        """Keys of the tables that another engine compares."""
        if self.options.elsewhere is None:
            return frozenset()
        keys = [key for key in self.touched() if self._has_one_base(key)]
        return self.options.elsewhere.takes(self.frame, keys)

    def _has_one_base(self, key: str) -> bool:
        """Whether both sides of a table started from one content."""
        frame = self.frame
        there = all(key in one.tables for one in (frame.base, frame.ours, frame.theirs))
        return there and len(set(self._base_contents(key))) == 1

    def _compare(self, key: str) -> Sides:
        frame, how = self.frame, self.options.granularity
        away = self.options.elsewhere
        if away is not None and self._far and self._has_one_base(key):
            if key in self._far:
                return away.compare(frame, key, how)
            if not self._takes_part(key):
                return untouched(frame, key, how)
        first = first_values(type_named(self.catalog, key))
        ours = diff_table(frame.base, frame.ours, key, fit=first) if self._moved(key) else None
        theirs = diff_table(frame.base, frame.theirs, key, fit=first)
        if ours is None:
            ours = no_changes(key, frame.ours.table(key))
        found = Sides(key, ours, theirs, how)
        several = len(set(self._base_contents(key))) > 1
        return virtual_sides(frame, found, how) if several else found

    def _moved(self, key: str) -> bool:
        """Whether the target changed a table since any base."""
        now = self.frame.ours.tables.get(key)
        content = now.content_id if now else None
        return any(one != content for one in self._base_contents(key))

    def _whole(self, key: str, decisions: Decisions) -> bool:
        """Whether the target can adopt the table version of the other side.

        It can if the target still has exactly the base version: nothing of its own would be lost.
        """
        base, ours = self.frame.base.tables.get(key), self.frame.ours.tables.get(key)
        theirs = self.frame.theirs.tables.get(key)
        if base is None or ours is None or theirs is None or len(self.frame.bases) > 1:
            return False
        exact = (base.content_id, base.lance_version) == (ours.content_id, ours.lance_version)
        plain = all(one != key for one, _ in decisions)
        return exact and plain and ours.location == theirs.location

    def _adopted(self, key: str) -> TableEntry:
        theirs, ours = self.frame.theirs.tables[key], self.frame.ours.tables.get(key)
        version = ours.version + 1 if ours is not None else theirs.version
        return replace(theirs, version=version, branch=self.frame.ours.branch)

    def _contested(self, decisions: Decisions) -> Iterable[Found]:
        names = self.frame.ours.branch, self.frame.theirs.branch
        for key in self.touched():
            for one in self.sides(key).contested.values():
                if (key, one.id) not in decisions:
                    yield contested(key, one, *names)

    def _broken(self, broken: Iterable[Violation]) -> Iterable[Found]:
        names = self.frame.ours.branch, self.frame.theirs.branch
        broken = list(broken)
        for key in {one.type_key for one in broken}:
            own = self.sides(key)
            if isinstance(own, FarSides):
                own.learn(one.entity_id or "" for one in broken if one.type_key == key)
        for one in broken:
            yield broken_rule(one, type_named(self.catalog, one.type_key), self.sides, *names)


def _table_delta(
    sides: Sides,
    decisions: Decisions,
    dropped: Iterable[Entity],
    lookup: Committed,
    away: Elsewhere | None,
) -> TableDelta:
    """Return what to write to and remove from one table of the target."""
    fresh, after, gone = sides.taken()
    chosen = {entity: what for (key, entity), what in decisions.items() if key == sides.key}
    unwanted = {*chosen, *(entity for key, entity in dropped if key == sides.key)}
    fresh, after, gone = _clean(fresh, after, gone, unwanted)
    rows, removed = _decided(sides, chosen)
    after = pa.concat_tables([after, *map(sides.slim, rows)])
    gone = pa.concat_arrays([gone, pa.array(removed, pa.string())])
    written = pa.concat_tables([fresh, after]).combine_chunks()
    origin = np.concatenate(
        [np.full(fresh.num_rows, FRESH, np.int64), np.full(after.num_rows, UNKNOWN, np.int64)]
    )
    names = ["id", "src", "dst"] if sides.key.startswith("edge:") else ["id"]
    stored = lookup.find(sides.key, {"id": gone}, names, places=True) if len(gone) else None
    places = np.zeros(len(origin), np.uint64)
    made = TableDelta(sides.key, written, np.arange(len(origin)), origin, places, removed=stored)
    if not isinstance(sides, FarSides):
        return made
    mixed, _, _ = _clean(sides.combined, sides.combined, gone, unwanted)
    return far_delta(made, sides, pa.concat_tables([mixed, *rows]), away)


def _clean(
    fresh: pa.Table, after: pa.Table, gone: pa.Array, unwanted: set[str]
) -> tuple[pa.Table, pa.Table, pa.Array]:
    if not unwanted:
        return fresh, after, gone
    ids = pa.array(sorted(unwanted), pa.string())
    fresh, after = (one.filter(pc.invert(pc.is_in(one["id"], ids))) for one in (fresh, after))
    return fresh, after, gone.filter(pc.invert(pc.is_in(gone, ids)))


def _decided(sides: Sides, chosen: Mapping[str, Decision]) -> tuple[list[pa.Table], list[str]]:
    """Return rows to write and ids to remove, from the decisions about single entities."""
    rows: list[pa.Table] = []
    removed = []
    for entity, what in sorted(chosen.items()):
        if isinstance(what, pa.Table):
            rows.append(what)
        elif _changes(sides, entity, what):
            row = sides.chosen(entity, what)
            rows += [row] if row is not None else []
            removed += [entity] if row is None else []
    return rows, removed


def _changes(sides: Sides, entity: str, side: Choice) -> bool:
    """Whether a choice changes the target; an entity that neither side changed is equal on both."""
    if side == "theirs":
        return sides.knows(entity)
    return sides.granularity == "property" and entity in sides.contested
