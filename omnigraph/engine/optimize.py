"""Compaction and index builds over whole tables, published as a commit that changes no content.

The expensive work runs on an executor, in this process or on a cluster. All files are prepared
before the writer slot is taken. If another writer changed a table meanwhile, its prepared version
is discarded, a bounded number of small fragments is compacted instead, and the indexes follow in a
separate commit. Writers never wait for this work and never fail because of it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from omnigraph.errors import ConcurrentCommit, NotFound, ServerError, StorageError
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.line import Line
from omnigraph.history.manifest import is_newest
from omnigraph.history.missing import damaged
from omnigraph.history.plan import PublishPlan, SameVersion, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.history.upkeep import FIRST, in_smaller_bites
from omnigraph.history.verification import check_intact, damaged_files
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import require_names, shorten_name
from omnigraph.rules.check import type_named
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.compact import (
    plan_rewrite,
    rewritten,
    stage_rewrite,
    task_bytes,
    task_sources,
)
from omnigraph.storage.failures import AbsentError, DamagedError, reported
from omnigraph.storage.fragments import bytes_of, fragment_ids
from omnigraph.storage.hands import Hands, Here
from omnigraph.storage.index import covered
from omnigraph.storage.table import Staged, Table, commit, open_table
from omnigraph.storage.transfer import version_files

from .tend import MAINTENANCE, columns_of, cover, ensure_indices, pending

_DELETED = 0.1  # share of deleted rows above which a fragment is rewritten
_BASES = 5  # base versions tried before giving up on a branch that keeps changing
_REMOVED = "the table was changed and cleaned up by another process meanwhile"


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """Result for one table; `skipped` or `error` says why the table was not maintained.

    `version_after` is the version published last; the byte counts cover its data files.
    """

    type_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    manifest_version: int | None = None
    lance_head_version: int | None = None
    pending_indexes: tuple[tuple[str, str], ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0
    version_before: int = 0
    version_after: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "type_key": self.type_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "manifest_version": self.manifest_version,
            "lance_head_version": self.lance_head_version,
            "pending_indexes": [
                {"type_key": self.type_key, "property": name, "reason": reason}
                for name, reason in self.pending_indexes
            ],
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Optimized:
    """Report of a run: one entry per table, and the commits it made (usually one or none).

    `retries` counts how often another writer published first.
    """

    datasets: tuple[TableUpkeep, ...] = ()
    commits: tuple[Commit, ...] = ()
    engine: str = "local"
    retries: int = 0

    def __bool__(self) -> bool:
        return bool(self.commits)

    def __repr__(self) -> str:
        done = [one.type_key for one in self.datasets if one.committed]
        wrong = f", {len(self.damaged)} damaged" if self.damaged else ""
        return f"<Optimized {', '.join(done) or 'nothing'} of {len(self.datasets)} tables{wrong}>"

    @property
    def damaged(self) -> tuple[TableUpkeep, ...]:
        """Tables that could not be maintained; their `error` says why."""
        return tuple(one for one in self.datasets if one.error is not None)


@dataclass(slots=True)
class _Made:
    """A prepared table: the entry it is based on and the version that replaces it.

    `new_checksums` are the checksums of the files written for it.
    """

    base: TableEntry
    version: int
    files: FileChecksums


@dataclass(slots=True)
class _Run:
    line: Line
    keys: list[str]
    made: dict[str, _Made] = field(default_factory=dict)
    epoch: int = 0
    tries: int = 0
    errors: dict[str, DamagedError] = field(default_factory=dict)


def optimize(
    line: Line,
    types: Collection[str] | None = None,
    actor: str | None = None,
    hands: Hands | None = None,
) -> Optimized:
    """Compact small fragments and extend indexes to all rows, in all tables or in `types`.

    A damaged table is left unchanged and its report says why.
    """
    hands = hands or Here()
    run, base = _prepared(line, types, hands)
    signature = Signature(actor or MAINTENANCE)
    first = publish(line, in_smaller_bites(lambda txn, limit: _plan(run, txn, limit)), signature)
    second = ensure_indices(line, signature, types=_whole(run)) if _was_beaten(run, first) else None
    commits = tuple(one for one in (first, second) if one is not None)
    rows = tuple(_row(run, base, key, commits) for key in run.keys)
    return Optimized(rows, commits, hands.name, max(0, run.tries - 1))


class _OutdatedBase(Exception):  # noqa: N818 - caught by the next attempt, never by a caller
    """Files of the base are missing and the branch advanced: a cleanup may have removed them."""


def _prepared(line: Line, types: Collection[str] | None, hands: Hands) -> tuple[_Run, WriteTxn]:
    """Return a run with its prepared table versions, and the base that they were built from."""
    for _ in range(_BASES):
        base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
        run = _Run(line, _chosen(base, types), epoch=base.base.state.head.gc_epoch)
        try:
            tables = _whole_tended(run, base, hands)
        except _OutdatedBase:
            continue
        for key, table in tables.items():
            run.made[key] = _Made(base.base.state.tables[key], table.version, table.new_files)
        return run, base
    raise ConcurrentCommit(f"branch {line.name} was too busy; nothing was written")


def work_of(line: Line, types: Collection[str] | None = None) -> int:
    """Estimate how many bytes `optimize` would read now."""
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    return sum(_work(base, key) for key in _chosen(base, types))


def _work(txn: WriteTxn, key: str) -> int:
    try:
        with reported("none"):
            tables = _filled(txn, [key])
            return sum(_bytes(table, columns_of(txn, key)) for table in tables.values())
    except StorageError:
        return 0  # optimize itself reports why the table cannot be read


def _bytes(table: Table, columns: Mapping[str, str]) -> int:
    small = sum(map(task_bytes, plan_rewrite(table, deletions=_DELETED)))
    known, present = covered(table), set(fragment_ids(table))
    behind = (present - known.get(name, frozenset()) for name in columns)
    return small + bytes_of(table, set().union(*behind))


def _chosen(txn: WriteTxn, types: Iterable[str] | None) -> list[str]:
    every = sorted(txn.base.state.tables)
    if types is None:
        return every
    wanted = set(require_names(types))
    named = {key.partition(":")[2]: key for key in every}
    unknown = sorted(wanted - set(named) - set(every))
    if unknown:
        raise NotFound(
            what=f"type {shorten_name(unknown[0])}", hint=did_you_mean(unknown[0], named)
        )
    return [key for key in every if key in wanted or key.partition(":")[2] in wanted]


def _filled(txn: WriteTxn, keys: Iterable[str]) -> dict[str, Table]:
    every = {key: txn.table(key) for key in keys}
    entries = txn.base.state.tables
    return {key: one for key, one in every.items() if entries[key].rows or fragment_ids(one)}


def _whole(run: _Run) -> list[str]:
    return [key for key in run.keys if key not in run.errors]


def _whole_tended(run: _Run, txn: WriteTxn, hands: Hands) -> dict[str, Table]:
    """Maintain all tables except those that turn out to be damaged."""
    entries = txn.base.state.tables
    while True:
        try:
            with reported("none"):
                return _tended(txn, _whole(run), hands)
        except (ServerError, ValueError, RuntimeError) as error:
            if not is_newest(txn.base):
                raise _OutdatedBase from error
            left = {key: entries[key] for key in _whole(run)}
            found = _damaged(txn, left, hands)
            if not found:
                raise
            run.errors |= found


def _damaged(
    txn: WriteTxn, entries: Mapping[str, TableEntry], hands: Hands
) -> dict[str, DamagedError]:
    """Return the tables that cannot be rewritten, trying the cheapest check first."""
    store = txn.store
    if missing := damaged(store, entries, deep=False):
        return missing
    named = {key: version_files(store, e.location, e.lance_version) for key, e in entries.items()}
    names = [name for files in named.values() for name in files.all]
    wrong = damaged_files(store, txn.base.state, names, hands)
    mismatches = {
        key: DamagedError(f"{key} was left alone: {wrong[name].message}")
        for key, files in named.items()
        for name in files.all
        if name in wrong
    }
    return mismatches or damaged(store, entries, deep=True)


def _tended(txn: WriteTxn, keys: Iterable[str], hands: Hands) -> dict[str, Table]:
    """Compact and index tables as unpublished versions; return only the tables that changed.

    Each step covers all tables before the next one starts, so that parallel executors stay busy.
    """
    tables = before = _filled(txn, keys)
    for step in (_put_together, cover):
        staged = step(txn, tables, hands)
        made = {key: commit(txn.store, tables[key], change) for key, change in staged.items()}
        tables = {**tables, **made}
    return {key: one for key, one in tables.items() if one.version != before[key].version}


def _put_together(txn: WriteTxn, tables: Mapping[str, Table], hands: Hands) -> dict[str, Staged]:
    plans = {key: plan_rewrite(table, deletions=_DELETED) for key, table in tables.items()}
    jobs = [(tables[key], task) for key, tasks in plans.items() for task in tasks]
    sources = [name for table, task in jobs for name in task_sources(table, task)]
    for error in damaged_files(txn.store, txn.base.state, sources, hands).values():
        raise error
    done = iter(hands.rewrite(txn.store, jobs) if jobs else ())
    results = {key: list(islice(done, len(tasks))) for key, tasks in plans.items()}
    return {key: rewritten(tables[key], one) for key, one in results.items() if one}


def _plan(run: _Run, txn: WriteTxn, limit: int | None) -> PublishPlan | None:
    """Publish prepared versions of unchanged tables, and one bounded compaction of the others."""
    run.tries += 1
    state = txn.base.state
    # After a garbage collection the prepared files may have been deleted.
    fresh = run.epoch == state.head.gc_epoch
    fits = {key: one for key, one in run.made.items() if fresh and _stands(state.tables, key, one)}
    left = [key for key in run.made if key not in fits and key in state.tables]
    pieces: dict[str, Staged] = {}
    for key in left:
        bite = limit or FIRST  # other writers of this process wait meanwhile
        verify = partial(check_intact, txn.store, state)
        table = txn.table(key)
        staged = stage_rewrite(txn.store, table, deletions=_DELETED, at_most=bite, verify=verify)
        pieces |= {key: staged} if staged is not None else {}
    if not fits and not pieces:
        return None
    return PublishPlan(
        "optimize",
        pieces,
        tuple(_same(key, one.base) for key, one in fits.items()),
        maintenance=True,
        adopted={key: _next(one, txn) for key, one in fits.items()},
        epoch=state.head.gc_epoch,
        files={name: file for one in fits.values() for name, file in one.files.items()},
    )


def _stands(tables: Any, key: str, made: _Made) -> bool:
    now = tables.get(key)
    seen = (made.base.content_id, made.base.lance_version)
    return now is not None and (now.content_id, now.lance_version) == seen


def _same(key: str, entry: TableEntry) -> SameVersion:
    return SameVersion(key, entry.content_id, entry.lance_version, entry.version)


def _next(made: _Made, txn: WriteTxn) -> TableEntry:
    return replace(
        made.base, version=made.base.version + 1, lance_version=made.version, branch=txn.branch
    )


def _was_beaten(run: _Run, first: Commit | None) -> bool:
    """Return whether a prepared table was not published as is, so that its indexes lag behind."""
    landed = first.tables if first is not None else {}
    return any(
        entry is None or entry.lance_version != made.version
        for key, made in run.made.items()
        for entry in (landed.get(key),)
    )


def _row(run: _Run, base: WriteTxn, key: str, commits: Iterable[Commit]) -> TableUpkeep:
    entry = base.base.state.tables[key]
    unchanged = TableUpkeep(key, version_before=entry.version, version_after=entry.version)
    if key in run.errors:
        return replace(unchanged, error=run.errors[key].message)
    landed = [one.tables[key] for one in commits if one.tables.get(key) is not None]
    try:
        return _measured(base, entry, landed[-1] if landed else None)
    except AbsentError:  # the published version is complete; only its figures are unavailable
        return replace(unchanged, committed=bool(landed), skipped=_REMOVED)


def _measured(base: WriteTxn, entry: TableEntry, published: TableEntry | None) -> TableUpkeep:
    """Measure what a run did to one table; schema apply may have moved it to another directory."""
    key, store = entry.key, base.store
    catalog = read_schema(store, base.base.state.schema).ir.catalog
    now = published or entry
    old = base.table(key)
    new = open_table(store, now.location, now.lance_version)
    before, after = set(fragment_ids(old)), set(fragment_ids(new))
    return TableUpkeep(
        key,
        len(before - after),
        len(after - before),
        committed=published is not None,
        pending_indexes=tuple(pending(new, type_named(catalog, key))),
        bytes_before=bytes_of(old, before),
        bytes_after=bytes_of(new, after),
        version_before=entry.version,
        version_after=now.version,
    )
