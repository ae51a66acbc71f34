"""Compact whole tables and build their indexes, and publish the result as a commit that changes no content.

The expensive work runs on an executor, in this process or on a cluster. All files are prepared before the writer slot
is taken. If another writer changes a table in the meantime, the prepared version of that table is discarded. A bounded
number of small fragments is then compacted instead, and the indexes are built in a separate commit. Writers never wait
for this work or fail because of it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from omnigraph.errors import ConcurrentCommit, ServerError, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.checksum_verification import check_intact, find_damaged_files
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.manifest import is_newest
from omnigraph.history.missing_table_files import find_damaged_tables
from omnigraph.lang.schema.type_names import unknown_type_error
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.executors.protocol import Executor
from omnigraph.publish.maintenance_retry import FIRST_RETRY_FRAGMENTS, shrink_on_retry
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import SameVersion
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.column_index import index_coverage
from omnigraph.storage.compact import (
    plan_compaction,
    stage_compaction,
    stage_task_results,
    task_bytes,
    task_input_files,
)
from omnigraph.storage.failures import AbsentError, DamagedError, as_storage_errors
from omnigraph.storage.fragments import fragment_bytes, list_fragment_ids
from omnigraph.storage.table import StagedChange, Table, commit
from omnigraph.storage.transfer import version_files
from omnigraph.values.name_rules import require_names
from omnigraph.values.table_key import TableKey

from .index_maintenance import MAINTENANCE_ACTOR, ensure_indices, index_kinds_of, stage_missing_indexes
from .optimize_budget import OptimizeBudget
from .optimize_report import OptimizeReport, TableMaintenance
from .table_comparison import measure_table

_DELETED_ROWS_THRESHOLD = 0.1  # fraction of deleted rows above which a fragment is rewritten
_MAX_BASE_VERSIONS = 5  # number of base versions to try before giving up on a branch that keeps advancing
_REMOVED_MEANWHILE = "another process changed the table and cleaned up its old versions in the meantime"


@dataclass(slots=True)
class _PreparedTable:
    """A prepared table: the entry that the preparation is based on, and the Lance version to publish.

    `new_checksums` are the checksums of the files written for the new version.
    """

    base_entry: TableEntry
    lance_version: int
    new_checksums: FileChecksums


@dataclass(slots=True)
class _OptimizeRun:
    branch: BranchState
    table_keys: list[TableKey]
    prepared: dict[TableKey, _PreparedTable] = field(default_factory=dict)
    gc_epoch: int = 0
    attempts: int = 0
    damage_by_key: dict[TableKey, DamagedError] = field(default_factory=dict)
    budget: OptimizeBudget | None = None


def optimize(
    branch: BranchState,
    types: Collection[str] | None = None,
    actor: str | None = None,
    executor: Executor | None = None,
    budget: OptimizeBudget | None = None,
) -> OptimizeReport:
    """Compact small fragments and extend indexes to all rows, in all tables or only in `types`.

    A damaged table is left unchanged, and its report entry explains why. With a budget, tables and tasks run one after
    another until the budget is used up, and the report contains the number of bytes that remain to be read.
    """
    executor = executor or LocalExecutor()
    optimize_run, base_txn = _prepare_run(branch, types, executor, budget)
    metadata = CommitMetadata(actor or MAINTENANCE_ACTOR)
    table_commit = publish(
        branch, shrink_on_retry(lambda txn, limit: _plan_publish(optimize_run, txn, limit)), metadata
    )
    index_commit = (
        ensure_indices(branch, metadata, types=_finished_keys(optimize_run))
        if _has_outdated_tables(optimize_run, table_commit)
        else None
    )
    commits = tuple(published for published in (table_commit, index_commit) if published is not None)
    reports = [_report_table(optimize_run, base_txn, table_key, commits) for table_key in optimize_run.table_keys]
    if budget is not None and budget.postponed:
        latest_txn = WriteTxn(branch.store, branch.name, branch.refresh(), "", 0)
        postponed = budget.postponed & latest_txn.base.state.tables.keys()
        remaining = {table_key: _estimate_table_bytes(latest_txn, table_key) for table_key in postponed}
        reports = [replace(report, remaining_bytes=remaining.get(report.type_key, 0)) for report in reports]
    return OptimizeReport(tuple(reports), commits, executor.name, max(0, optimize_run.attempts - 1))


class _OutdatedBase(Exception):  # noqa: N818 - caught by the next attempt, never by a caller
    """Files in the base version are missing and the branch has advanced, so a cleanup may have removed them."""


def _prepare_run(
    branch: BranchState, types: Collection[str] | None, executor: Executor, budget: OptimizeBudget | None
) -> tuple[_OptimizeRun, WriteTxn]:
    """Prepare the table versions that a run will publish.

    Return the run, and the transaction whose base the versions were prepared on.
    """
    for _ in range(_MAX_BASE_VERSIONS):
        base_txn = WriteTxn(branch.store, branch.name, branch.refresh(), "", 0)
        gc_epoch = base_txn.base.state.head.gc_epoch
        optimize_run = _OptimizeRun(branch, _select_keys(base_txn, types), gc_epoch=gc_epoch, budget=budget)
        try:
            maintained = _maintain_undamaged(optimize_run, base_txn, executor)
        except _OutdatedBase:
            continue
        for table_key, table in maintained.items():
            optimize_run.prepared[table_key] = _PreparedTable(
                base_txn.base.state.tables[table_key], table.version, table.new_files
            )
        return optimize_run, base_txn
    raise ConcurrentCommit(f"too many concurrent writes to branch {branch.name}; nothing was written")


def estimate_read_bytes(branch: BranchState, types: Collection[str] | None = None) -> int:
    """Estimate how many bytes `optimize` would read."""
    base_txn = WriteTxn(branch.store, branch.name, branch.refresh(), "", 0)
    return sum(_estimate_table_bytes(base_txn, table_key) for table_key in _select_keys(base_txn, types))


def _estimate_table_bytes(txn: WriteTxn, table_key: TableKey) -> int:
    try:
        with as_storage_errors("none"):
            tables = _open_nonempty_tables(txn, [table_key])
            return sum(_bytes_to_process(table, index_kinds_of(txn, table_key)) for table in tables.values())
    except StorageError:
        return 0  # `optimize` itself reports why the table cannot be read


def _bytes_to_process(table: Table, index_kinds: Mapping[str, str]) -> int:
    rewrite_bytes = sum(map(task_bytes, plan_compaction(table, max_deleted_share=_DELETED_ROWS_THRESHOLD)))
    return rewrite_bytes + _uncovered_bytes(table, index_kinds)


def _uncovered_bytes(table: Table, index_kinds: Mapping[str, str]) -> int:
    """Return the size of the fragments that an index does not cover."""
    covered_fragments, all_fragments = index_coverage(table), set(list_fragment_ids(table))
    uncovered = (all_fragments - covered_fragments.get(index_key, frozenset()) for index_key in index_kinds)
    return fragment_bytes(table, set().union(*uncovered))


def _select_keys(txn: WriteTxn, types: Iterable[str] | None) -> list[TableKey]:
    all_keys = sorted(txn.base.state.tables)
    if types is None:
        return all_keys
    requested = set(require_names(types))
    key_by_name = {table_key.type_name: table_key for table_key in all_keys}
    unknown_names = sorted(requested - set(key_by_name) - set(all_keys))
    if unknown_names:
        raise unknown_type_error(unknown_names[0], key_by_name)
    return [table_key for table_key in all_keys if table_key in requested or table_key.type_name in requested]


def _open_nonempty_tables(txn: WriteTxn, table_keys: Iterable[TableKey]) -> dict[TableKey, Table]:
    opened = {table_key: txn.table(table_key) for table_key in table_keys}
    entries = txn.base.state.tables
    return {
        table_key: table
        for table_key, table in opened.items()
        if entries[table_key].row_count or list_fragment_ids(table)
    }


def _undamaged_keys(optimize_run: _OptimizeRun) -> list[TableKey]:
    return [table_key for table_key in optimize_run.table_keys if table_key not in optimize_run.damage_by_key]


def _finished_keys(optimize_run: _OptimizeRun) -> list[TableKey]:
    postponed = optimize_run.budget.postponed if optimize_run.budget is not None else set()
    return [table_key for table_key in _undamaged_keys(optimize_run) if table_key not in postponed]


def _maintain_undamaged(optimize_run: _OptimizeRun, txn: WriteTxn, executor: Executor) -> dict[TableKey, Table]:
    """Maintain all tables except those found to be damaged."""
    entries = txn.base.state.tables
    while True:
        try:
            with as_storage_errors("none"):
                if optimize_run.budget is not None:
                    return _maintain_within_budget(txn, _undamaged_keys(optimize_run), executor, optimize_run.budget)
                return _maintain_tables(txn, _undamaged_keys(optimize_run), executor)
        except (ServerError, ValueError, RuntimeError) as error:
            if not is_newest(txn.base):
                raise _OutdatedBase from error
            remaining_entries = {table_key: entries[table_key] for table_key in _undamaged_keys(optimize_run)}
            damage_errors = _find_damage(txn, remaining_entries, executor)
            if not damage_errors:
                raise
            optimize_run.damage_by_key |= damage_errors


def _find_damage(
    txn: WriteTxn, entries: Mapping[TableKey, TableEntry], executor: Executor
) -> dict[TableKey, DamagedError]:
    """Return an error for each table that cannot be rewritten. The cheapest check runs first."""
    store = txn.store
    if missing := find_damaged_tables(store, entries, read_rows=False):
        return missing
    files_by_key = {
        table_key: version_files(store, entry.location, entry.lance_version) for table_key, entry in entries.items()
    }
    file_names = [file_name for files in files_by_key.values() for file_name in files.named_files]
    file_errors = find_damaged_files(store, txn.base.state, file_names, executor.verify_files)
    mismatches = {
        table_key: DamagedError(f"{table_key} was skipped: {file_errors[file_name].message}")
        for table_key, files in files_by_key.items()
        for file_name in files.named_files
        if file_name in file_errors
    }
    return mismatches or find_damaged_tables(store, entries, read_rows=True)


def _maintain_tables(txn: WriteTxn, table_keys: Iterable[TableKey], executor: Executor) -> dict[TableKey, Table]:
    """Compact and index tables as unpublished versions, and return only the tables that changed.

    Each step processes all tables before the next step starts, so that parallel executors stay busy.
    """
    tables = original_tables = _open_nonempty_tables(txn, table_keys)
    for stage_step in (_stage_compaction, stage_missing_indexes):
        staged = stage_step(txn, tables, executor)
        committed_tables = {
            table_key: commit(txn.store, tables[table_key], staged_change)
            for table_key, staged_change in staged.items()
        }
        tables = {**tables, **committed_tables}
    return {
        table_key: table for table_key, table in tables.items() if table.version != original_tables[table_key].version
    }


def _maintain_within_budget(
    txn: WriteTxn, table_keys: Iterable[TableKey], executor: Executor, budget: OptimizeBudget
) -> dict[TableKey, Table]:
    """Maintain one table after another. Once the budget is used up, start no further compactions or index builds."""
    budget.restart()
    maintained: dict[TableKey, Table] = {}
    for table_key in table_keys:
        for table in _open_nonempty_tables(txn, [table_key]).values() if budget.may_start(table_key) else ():
            results = list(_run_affordable_tasks(txn, table_key, table, executor, budget))
            compacted = commit(txn.store, table, stage_task_results(table, results)) if results else table
            index_bytes = _uncovered_bytes(compacted, index_kinds_of(txn, table_key))
            is_affordable = not index_bytes or budget.may_start(table_key)
            budget.used_bytes += index_bytes if is_affordable else 0
            staged = stage_missing_indexes(txn, {table_key: compacted}, executor) if is_affordable else {}
            indexed = commit(txn.store, compacted, staged[table_key]) if staged else compacted
            maintained |= {table_key: indexed} if indexed.version != table.version else {}
    return maintained


def _run_affordable_tasks(
    txn: WriteTxn, table_key: TableKey, table: Table, executor: Executor, budget: OptimizeBudget
) -> Iterator[str]:
    for task in plan_compaction(table, max_deleted_share=_DELETED_ROWS_THRESHOLD):
        if not budget.may_start(table_key):
            return
        budget.used_bytes += task_bytes(task)
        _verify_sources(txn, [(table, task)], executor)
        yield from executor.compact_fragments(txn.store, [(table, task)])


def _verify_sources(txn: WriteTxn, rewrite_jobs: Iterable[tuple[Table, str]], executor: Executor) -> None:
    source_files = [file_name for table, task in rewrite_jobs for file_name in task_input_files(table, task)]
    for error in find_damaged_files(txn.store, txn.base.state, source_files, executor.verify_files).values():
        raise error


def _stage_compaction(
    txn: WriteTxn, tables: Mapping[TableKey, Table], executor: Executor
) -> dict[TableKey, StagedChange]:
    tasks_by_key = {
        table_key: plan_compaction(table, max_deleted_share=_DELETED_ROWS_THRESHOLD)
        for table_key, table in tables.items()
    }
    rewrite_jobs = [(tables[table_key], task) for table_key, tasks in tasks_by_key.items() for task in tasks]
    _verify_sources(txn, rewrite_jobs, executor)
    results_iterator = iter(executor.compact_fragments(txn.store, rewrite_jobs) if rewrite_jobs else ())
    results_by_key = {
        table_key: list(islice(results_iterator, len(tasks))) for table_key, tasks in tasks_by_key.items()
    }
    return {
        table_key: stage_task_results(tables[table_key], task_results)
        for table_key, task_results in results_by_key.items()
        if task_results
    }


def _plan_publish(optimize_run: _OptimizeRun, txn: WriteTxn, limit: int | None) -> PublishPlan | None:
    """Plan to publish prepared versions of unchanged tables, and to compact a bounded part of the other tables."""
    optimize_run.attempts += 1
    manifest = txn.base.state
    # After a garbage collection, the prepared files may no longer exist.
    epoch_unchanged = optimize_run.gc_epoch == manifest.head.gc_epoch
    reusable = {
        table_key: prepared_table
        for table_key, prepared_table in optimize_run.prepared.items()
        if epoch_unchanged and _is_base_current(manifest.tables, table_key, prepared_table)
    }
    outdated_keys = [
        table_key for table_key in optimize_run.prepared if table_key not in reusable and table_key in manifest.tables
    ]
    staged_pieces: dict[TableKey, StagedChange] = {}
    for table_key in outdated_keys:
        max_fragments = limit or FIRST_RETRY_FRAGMENTS  # other writers in this process wait for this compaction
        verify = partial(check_intact, txn.store, manifest)
        table = txn.table(table_key)
        staged = stage_compaction(
            txn.store,
            table,
            max_deleted_share=_DELETED_ROWS_THRESHOLD,
            max_fragments=max_fragments,
            verify_files=verify,
        )
        staged_pieces |= {table_key: staged} if staged is not None else {}
    if not reusable and not staged_pieces:
        return None
    return PublishPlan(
        "optimize",
        staged_pieces,
        tuple(
            _require_same_version(table_key, prepared_table.base_entry)
            for table_key, prepared_table in reusable.items()
        ),
        maintenance=True,
        adopted_tables={table_key: _next_entry(prepared_table, txn) for table_key, prepared_table in reusable.items()},
        gc_epoch=manifest.head.gc_epoch,
        file_checksums={
            file_name: checksum
            for prepared_table in reusable.values()
            for file_name, checksum in prepared_table.new_checksums.items()
        },
    )


def _is_base_current(entries: Any, table_key: TableKey, prepared_table: _PreparedTable) -> bool:
    current_entry = entries.get(table_key)
    base_identity = (prepared_table.base_entry.content_id, prepared_table.base_entry.lance_version)
    return current_entry is not None and (current_entry.content_id, current_entry.lance_version) == base_identity


def _require_same_version(table_key: TableKey, entry: TableEntry) -> SameVersion:
    return SameVersion(table_key, entry.content_id, entry.lance_version, entry.version)


def _next_entry(prepared_table: _PreparedTable, txn: WriteTxn) -> TableEntry:
    return replace(
        prepared_table.base_entry,
        version=prepared_table.base_entry.version + 1,
        lance_version=prepared_table.lance_version,
        branch=txn.branch,
    )


def _has_outdated_tables(optimize_run: _OptimizeRun, table_commit: Commit | None) -> bool:
    """Return whether any table has outdated indexes because it could not be published as prepared."""
    published_entries = table_commit.tables if table_commit is not None else {}
    return any(
        published_entry is None or published_entry.lance_version != prepared_table.lance_version
        for table_key, prepared_table in optimize_run.prepared.items()
        for published_entry in (published_entries.get(table_key),)
    )


def _report_table(
    optimize_run: _OptimizeRun, base_txn: WriteTxn, table_key: TableKey, commits: Iterable[Commit]
) -> TableMaintenance:
    entry = base_txn.base.state.tables[table_key]
    unchanged = TableMaintenance(table_key, version_before=entry.version, version_after=entry.version)
    if table_key in optimize_run.damage_by_key:
        return replace(unchanged, error=optimize_run.damage_by_key[table_key].message)
    published_entries = [
        published.tables[table_key] for published in commits if published.tables.get(table_key) is not None
    ]
    try:
        return measure_table(base_txn, entry, published_entries[-1] if published_entries else None)
    except AbsentError:  # the published version is complete; only its figures are unavailable
        return replace(unchanged, committed=bool(published_entries), skipped=_REMOVED_MEANWHILE)
