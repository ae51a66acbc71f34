"""Compaction and indexes of whole tables, as one commit that changes no content.

Everything is made before it is one's turn to write. When a writer was faster on a table, what was
made is dropped, small pieces are put together instead, and indexes follow in a commit of their own:
a writer never waits for any of it, and is never made to fail.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import NotFound
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.line import Line
from omnigraph.history.plan import PublishPlan, SameVersion, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.history.upkeep import FIRST, in_smaller_bites
from omnigraph.rules.check import type_named
from omnigraph.rules.indexed import indexed_columns, pending_indexes
from omnigraph.storage.compact import bound_by, stage_rewrite
from omnigraph.storage.failures import reported
from omnigraph.storage.fragments import fragment_ids
from omnigraph.storage.index import stage_indexes
from omnigraph.storage.table import Staged, Table, commit, open_table

from .tend import MAINTENANCE, ensure_indices

_DELETED = 0.1  # the share of deleted rows from which a fragment is written anew


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What became of one table. `skipped` says why it was left alone."""

    type_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    manifest_version: int | None = None
    lance_head_version: int | None = None
    pending_indexes: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
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
        }


@dataclass(frozen=True, slots=True)
class Optimized:
    """The report of a run: a row per table, and the commits that it made, mostly one or none."""

    datasets: tuple[TableUpkeep, ...] = ()
    commits: tuple[Commit, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.commits)


@dataclass(slots=True)
class _Made:
    """A table that is ready: the version it stands on, and the one that takes its place."""

    base: TableEntry
    version: int


@dataclass(slots=True)
class _Run:
    line: Line
    keys: list[str]
    made: dict[str, _Made] = field(default_factory=dict)
    epoch: int = 0


def optimize(
    line: Line, types: Collection[str] | None = None, actor: str | None = None
) -> Optimized:
    """Put small fragments together and cover all rows by indexes, in every table or in some."""
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    run = _Run(line, _chosen(base, types))
    run.epoch = base.base.state.head.gc_epoch
    with reported("none"):
        for key in run.keys:
            table = base.table(key)
            after = _tended(base, key, table)
            if after.version != table.version:
                run.made[key] = _Made(base.base.state.tables[key], after.version)
    signature = Signature(actor or MAINTENANCE)
    first = publish(line, in_smaller_bites(lambda txn, limit: _plan(run, txn, limit)), signature)
    second = ensure_indices(line, signature, types=run.keys) if _was_beaten(run, first) else None
    commits = tuple(one for one in (first, second) if one is not None)
    return Optimized(tuple(_row(run, base, key, commits) for key in run.keys), commits)


def _chosen(txn: WriteTxn, types: Iterable[str] | None) -> list[str]:
    every = sorted(txn.base.state.tables)
    if types is None:
        return every
    wanted, named = set(types), {key.partition(":")[2]: key for key in every}
    unknown = sorted(wanted - set(named) - set(every))
    if unknown:
        raise NotFound(what=f"type {unknown[0]}")
    return [key for key in every if key in wanted or key.partition(":")[2] in wanted]


def _tended(txn: WriteTxn, key: str, table: Table) -> Table:
    """The table put together and covered, as versions that nobody names yet."""
    if not txn.base.state.tables[key].rows and not fragment_ids(table):
        return table
    columns = _columns(txn, key)
    table = _bound_alike(txn, table, columns)
    rewritten = stage_rewrite(txn.store, table, deletions=_DELETED)
    if rewritten is not None:
        table = commit(txn.store, table, rewritten)
    indexed = stage_indexes(txn.store, table, columns)
    return commit(txn.store, table, indexed) if indexed is not None else table


def _bound_alike(txn: WriteTxn, table: Table, columns: Mapping[str, str]) -> Table:
    """Indexes that follow fragments hold all of them first, so that all can be put together."""
    following = {name: kind for name, kind in columns.items() if kind != "BTREE"}
    if len({*map(bound_by(table).get, fragment_ids(table))}) < 2:
        return table
    staged = stage_indexes(txn.store, table, following, anew=True)
    return commit(txn.store, table, staged) if staged is not None else table


def _columns(txn: WriteTxn, key: str) -> dict[str, str]:
    catalog = read_schema(txn.store, txn.base.state.schema).ir.catalog
    return indexed_columns(type_named(catalog, key))


def _plan(run: _Run, txn: WriteTxn, limit: int | None) -> PublishPlan | None:
    """What was made for tables that are as they were; a piece of the others."""
    state = txn.base.state
    fresh = run.epoch == state.head.gc_epoch  # else the collector may have taken what was made
    fits = {key: one for key, one in run.made.items() if fresh and _stands(state.tables, key, one)}
    left = [key for key in run.made if key not in fits and key in state.tables]
    pieces: dict[str, Staged] = {}
    for key in left:
        bite = limit or FIRST  # others of this process wait meanwhile
        staged = stage_rewrite(txn.store, txn.table(key), deletions=_DELETED, at_most=bite)
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
    """Whether a table was not taken over as it was made, so that its indexes are behind."""
    landed = first.tables if first is not None else {}
    return any(
        entry is None or entry.lance_version != made.version
        for key, made in run.made.items()
        for entry in (landed.get(key),)
    )


def _row(run: _Run, base: WriteTxn, key: str, commits: Iterable[Commit]) -> TableUpkeep:
    landed = [one.tables[key] for one in commits if one.tables.get(key) is not None]
    catalog = read_schema(base.store, base.base.state.schema).ir.catalog
    pending = tuple(pending_indexes(type_named(catalog, key)))
    if not landed or landed[-1] is None:
        return TableUpkeep(key, pending_indexes=pending)
    entry = base.base.state.tables[key]
    before = set(fragment_ids(base.table(key)))
    after = set(fragment_ids(open_table(run.line.store, entry.location, landed[-1].lance_version)))
    removed, added = len(before - after), len(after - before)
    return TableUpkeep(key, removed, added, committed=True, pending_indexes=pending)
