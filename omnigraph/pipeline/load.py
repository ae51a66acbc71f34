"""A load on Spark: stage and check everything, then publish once under an intent, or not at all.

Tasks write fragments that no manifest names; the driver checks the rules that need all records and
hands one plan to `history`. A driver that crashes before the confirmation leaves only files for
retention; one that crashes after it leaves an intent that the next opening of the graph finishes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph import ids
from omnigraph.errors import ClientError, InputError, ReadSetConflict, VersionConflict
from omnigraph.history.commit import Commit
from omnigraph.history.idempotency import replayed
from omnigraph.history.line import Line
from omnigraph.history.long import publish_long
from omnigraph.history.plan import (
    PublishPlan,
    Requirement,
    SameContent,
    SameSchema,
    Signature,
    WriteTxn,
    hold,
)
from omnigraph.history.snapshot import Snapshot, of_state
from omnigraph.ingest.limits import LoadLimits
from omnigraph.ingest.load import Loaded, LoadMode, Summary
from omnigraph.ingest.problem import Problem, Problems
from omnigraph.rules.endpoints import ends_of
from omnigraph.rules.violation import Violation
from omnigraph.storage.fragments import appended, changed, overwritten
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.storage.table import Staged

from . import steps
from .check import Case, set_violations
from .ends import forget
from .notes import BULK, DDL, unpacked
from .place import place_of
from .room import demand_room, guess
from .session import parallelism, watched
from .sources import Input, Piece, pieces_of, spots, total_size
from .stage import Job, key_named, on_frame, on_pieces
from .staged import Fragment
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS = 3
_SMALLEST, _LARGEST = 4 << 20, 64 << 20  # bytes of a piece
_FRAME = 1 << 16  # piece numbers reserved for the partitions of one DataFrame
Told = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Bulk:
    """What to load and how: files, DataFrames by type, the mode, dry run or write.

    `piece_bytes` is the size of an input piece; `fragment_rows` and `fragment_bytes` limit a
    fragment. `on_step` is called with the name of each step.
    """

    mode: LoadMode
    inputs: Sequence[Input] = ()
    frames: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    limits: LoadLimits = field(default_factory=LoadLimits)
    piece: int | None = None
    rows: int = FRAGMENT_ROWS
    bytes: int = FRAGMENT_BYTES
    streams: Mapping[str, str] = field(default_factory=dict)
    told: Told = lambda _: None
    progress: steps.Told | None = None


def load_on_spark(
    spark: "SparkSession",
    line: Line,
    bulk: Bulk,
    *,
    signature: Signature | None = None,
    conditions: Sequence[Requirement] = (),
) -> Loaded:
    """Load in bulk as one commit; return the problems if there are any.

    If another writer published first, the load is staged again on the newer head; an overwrite is
    not retried.
    """
    check_versions(spark)
    signature = signature or Signature()
    known = replayed(line.store, line.refresh().state, signature)
    if known is not None:
        return Loaded(bulk.mode, known)
    for attempt in range(1, ATTEMPTS + 1):
        run = Run(spark, line, bulk, conditions)
        try:
            with watched(spark), run.steps.told_of():
                return run.loaded(run.publish(signature))
        except (VersionConflict, ReadSetConflict):
            if bulk.mode == "overwrite" or attempt == ATTEMPTS:
                raise
            hold(conditions, _txn(line))  # do not retry when the caller's own requirements failed
        finally:
            run.clean()
    raise AssertionError  # unreachable: the last attempt raises


def _txn(line: Line) -> WriteTxn:
    return WriteTxn(line.store, line.name, line.refresh(), ids.new_ulid(), ids.now_micros())


class Run:
    """One attempt: the reports of its tasks, and what the driver derives from them."""

    def __init__(
        self, spark: "SparkSession", line: Line, bulk: Bulk, conditions: Sequence[Requirement]
    ) -> None:
        self.spark, self.line, self.bulk, self.conditions = spark, line, bulk, conditions
        self.problems: list[Problem] = []
        self.counts: dict[str, int] = {}
        self.load = ids.new_ulid()
        self.bytes = 0
        self.steps = steps.Steps(spark, bulk.progress)

    def publish(self, signature: Signature) -> Commit | None:
        """Stage and publish; a dry run only stages and checks."""
        if self.bulk.dry_run:
            self.stage(_txn(self.line))
            return None
        return publish_long(self.line, "load", self.stage, signature)

    def loaded(self, commit: Commit | None) -> Loaded:
        """Return the outcome of the load."""
        self.steps.end()
        summary = Summary(self.steps.seconds, self.bytes)
        if self.problems:
            return Loaded(self.bulk.mode, problems=tuple(self.problems), summary=summary)
        nodes, edges = (
            {key.partition(":")[2]: n for key, n in sorted(self.counts.items()) if key[:4] == kind}
            for kind in ("node", "edge")
        )
        return Loaded(self.bulk.mode, commit, nodes, edges, summary=summary)

    def clean(self) -> None:
        """Remove the indexes that executors built for this attempt."""
        with suppress(Exception):  # a Spark session that ended has removed them already
            forget(self.spark, self.load)

    def _begin(self, step: str, rows: int = 0) -> None:
        self.steps.begin(step, rows)
        self.bulk.told(step)

    def stage(self, txn: WriteTxn) -> PublishPlan | None:
        """Do everything up to the publish; None if there is nothing to write, or a problem."""
        hold(self.conditions, txn)
        snapshot = of_state(txn.store, self.line, txn.base)
        job, guessed = self.job(snapshot), guess(self.bulk.inputs)
        if job.writes:
            demand_room(txn.store, guessed.bytes)
        pieces = self.pieces()
        self._begin("stage", guessed.rows)
        out = self.notes(job, pieces)
        try:
            return self._judged(txn, snapshot, job, pieces, out)
        finally:
            out.unpersist()

    def _judged(
        self,
        txn: WriteTxn,
        snapshot: Snapshot,
        job: Job,
        pieces: Sequence[Piece],
        out: "DataFrame",
    ) -> PublishPlan | None:
        few = _few(out)
        _raise_failure(few)
        types = self._types(job, few)
        self._begin("check", sum(self.counts.values()))
        case = self._case(job, snapshot, out, few, types)
        unread = [unpacked(one["data"]) for one in few if one["kind"] == "unread"]
        broken = [unpacked(one["data"]) for one in few if one["kind"] == "broken"]
        found, gone = set_violations(case)
        left = Problems()
        for one in unread:
            left.take(one)
        found = [one for one in found if not left.explain(one)]
        where = spots(pieces, {one["grp"]: one["spot"] for one in few if one["kind"] == "lines"})
        self.problems = where.locate([*unread, *map(_problem, [*broken, *found])])
        if self.problems or self.bulk.dry_run:
            return None
        if gone:  # some records are replaced by later ones: write again without them
            again = self.notes(replace(job, skip=gone), pieces)
            few = _few(again)
            again.unpersist()
        writes = self._writes(txn, job, few, types)
        return self._plan(txn, job, writes, types) if writes else None

    def _case(
        self,
        job: Job,
        snapshot: Snapshot,
        out: "DataFrame",
        few: Sequence[dict[str, Any]],
        types: frozenset[str],
    ) -> Case:
        noted = [one for one in few if one["kind"] == "noted"]
        bare = [one for one in noted if one["value"] == "unwritten"]
        keys, unwritten = (frozenset(job.keys[n["type"]] for n in some) for some in (noted, bare))
        staged: dict[str, list[Fragment]] = {}
        for one in _fragments(few):
            staged.setdefault(one.key, []).append(one)
        return Case(self.spark, self.load, job, snapshot, out, few, types, staged, keys, unwritten)

    def job(self, snapshot: Snapshot) -> Job:
        """Describe the load for its tasks."""
        tables = {key: (one.location, one.lance_version) for key, one in snapshot.tables.items()}
        return Job(
            snapshot.schema.ir,
            place_of(snapshot.store, tables),
            tuple(sorted(tables)),
            self.bulk.mode,
            frozenset(key for key, one in snapshot.tables.items() if one.rows),
            not self.bulk.dry_run,
            self.bulk.limits,
            self.bulk.rows,
            self.bulk.bytes,
        )

    def pieces(self) -> list[Piece]:
        """Cut the input files into pieces for tasks."""
        return pieces_of(self.bulk.inputs, self._piece_size())

    def _piece_size(self) -> int:
        if self.bulk.piece is not None:
            return self.bulk.piece
        share = total_size(self.bulk.inputs) // (2 * parallelism(self.spark))
        return min(max(share, _SMALLEST), _LARGEST)

    def notes(self, job: Job, pieces: Sequence[Piece]) -> "DataFrame":
        """Run all tasks and persist their reports: a task that ran again would write again."""
        from pyspark import StorageLevel

        parts = []
        if pieces:
            units = self.spark.range(0, len(pieces), 1, len(pieces))
            parts.append(units.mapInArrow(on_pieces(job, pieces), DDL))
        first = len(pieces)
        for name, frame in self.bulk.frames.items():
            parts.append(frame.mapInArrow(on_frame(job, key_named(job.ir, name), first), DDL))
            first += _FRAME
        if not parts:
            raise InputError("there is nothing to load", reason="no input")
        made: DataFrame = reduce(lambda a, b: a.unionAll(b), parts)
        return made.persist(StorageLevel.DISK_ONLY)

    def _types(self, job: Job, few: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        """Count the records of each type; return the keys of the types that the input names."""
        emptied = set()
        for one in few:
            if one["kind"] == "count":
                key = job.keys[one["type"]]
                self.counts[key] = self.counts.get(key, 0) + one["spot"]
                if one["value"] == "truncated":
                    emptied.add(key)
        for key in sorted(emptied):
            if self.counts[key]:
                raise InputError(reason=f"one input both truncates and fills {key}")
        return frozenset(self.counts)

    def _writes(
        self,
        txn: WriteTxn,
        job: Job,
        few: Sequence[Mapping[str, Any]],
        types: frozenset[str],
    ) -> dict[str, Staged]:
        fragments: dict[str, list[Any]] = {key: [] for key in types}
        removed: dict[str, list[Any]] = {key: [] for key in types}
        for fragment in _fragments(few):
            fragments[fragment.key].append(fragment.facts)
            self.bytes += fragment.bytes
        for one in few:
            if one["kind"] == "removed":
                removed[job.keys[one["type"]]].append(unpacked(one["data"]))
        made = {}
        for key in sorted(types):
            if fragments[key] or (job.mode == "overwrite" and key in job.filled):
                made[key] = _staged(txn, key, job.mode, fragments[key], removed[key])
        return made

    def _plan(
        self, txn: WriteTxn, job: Job, writes: Mapping[str, Staged], types: frozenset[str]
    ) -> PublishPlan:
        reads = set(types)
        for edge in job.ir.catalog.edges:
            if f"edge:{edge.name}" in types:
                reads |= {key for _, _, key in ends_of(edge)}
        if job.mode == "overwrite":
            reads |= {f"edge:{edge.name}" for edge in job.ir.catalog.edges}
        entries = txn.base.state.tables
        same = [SameContent(k, entries[k].content_id, entries[k].version) for k in sorted(reads)]
        schema = SameSchema(txn.base.state.schema.hash)
        needs = (schema, *self.conditions, *same)
        # Detect a newer head here, before the intent is confirmed.
        hold(needs, replace(txn, base=self.line.refresh()))
        self._begin("publish")
        epoch = txn.base.state.head.gc_epoch
        return PublishPlan("load", writes, needs, streams=self.bulk.streams, epoch=epoch)


def _staged(
    txn: WriteTxn, key: str, mode: LoadMode, fragments: Sequence[Any], removed: Sequence[Any]
) -> Staged:
    table = txn.table(key)
    if mode == "overwrite":
        return overwritten(table, fragments)
    if not removed:
        return appended(table, fragments)
    return changed(txn.store, table, fragments, np.concatenate(removed))


def _few(out: "DataFrame") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = out.where(~out.kind.isin(*BULK)).toArrow().to_pylist()
    return sorted(found, key=lambda one: one["spot"] or 0)


def _fragments(few: Sequence[Mapping[str, Any]]) -> list[Fragment]:
    return [unpacked(one["data"]) for one in few if one["kind"] == "fragment"]


def _raise_failure(few: Sequence[Mapping[str, Any]]) -> None:
    for one in few:
        if one["kind"] == "failure":
            error: ClientError = unpacked(one["data"])
            raise error


def _problem(one: Violation) -> Problem:
    return Problem(one.line, one.type_name, one.entity_id, one.error())
