"""The implementation of `graph.maintenance`. Each function logs one event and makes one call to a lower layer.

Modules that a query never needs are imported only where they are used.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from omnigraph.api.actors import resolve_actor
from omnigraph.api.engine_choice import EngineChoice, choose_cleanup_executor, choose_optimize_executor
from omnigraph.api.handle import Handle, report_missing_branch
from omnigraph.api.log_events import OperationEvent, log_operation
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.maintenance.copy import CopyProgress, CopySummary, copy_graph
from omnigraph.maintenance.retention import collect_garbage
from omnigraph.maintenance.retention.absence import find_traces
from omnigraph.maintenance.retention.absence_report import Absence
from omnigraph.maintenance.retention.report import Cleanup
from omnigraph.storage.store import open_store

if TYPE_CHECKING:
    from omnigraph.history.commit import Commit
    from omnigraph.history.snapshot import Snapshot
    from omnigraph.maintenance.optimize_budget import OptimizeBudget
    from omnigraph.maintenance.optimize_report import OptimizeReport
    from omnigraph.maintenance.repair_report import Repair
    from omnigraph.maintenance.restore_names import NameChoice
    from omnigraph.maintenance.retention.policy import RetentionPolicy

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def run_optimize(
    handle: Handle,
    types: Collection[str] | None,
    engine: EngineChoice,
    actor: str | None,
    budget: "OptimizeBudget | None" = None,
) -> "OptimizeReport":
    """Compact and index the tables on a branch, as far as the budget allows."""
    from omnigraph.maintenance.optimize import optimize

    handle.require_writable("optimizing")
    branch = handle.branch_name
    with log_operation("optimize", branch) as event, report_missing_branch(handle.branch_state):
        executor = choose_optimize_executor(handle.branch_state, types, engine)
        author = resolve_actor(actor) if actor else None
        optimized = optimize(handle.branch_state, types, author, executor, budget)
        _log_optimized_tables(event, optimized)
    if optimized:
        handle.refresh()
    return optimized


def build_indexes(
    handle: Handle, engine: EngineChoice, actor: str | None, rebuild: bool | Collection[str] = False
) -> Receipt:
    """Build the declared indexes on a branch, and replace those that `rebuild` selects."""
    from omnigraph.maintenance.index_maintenance import ensure_indices
    from omnigraph.maintenance.index_selection import select_indexes

    handle.require_writable("building indexes")
    metadata = WriteOptions(actor=resolve_actor(actor) if actor else None).commit_metadata()
    branch, old_snapshot = handle.branch_name, handle.latest_snapshot()
    selection = select_indexes(old_snapshot.schema.ir.catalog, rebuild)
    with log_operation("ensure_indices", branch) as event, report_missing_branch(handle.branch_state):
        executor = choose_optimize_executor(handle.branch_state, None, engine)
        commit = ensure_indices(handle.branch_state, metadata, executor=executor, rebuild=selection)
        if commit is not None:
            handle.refresh()
        indexes = _indexed_columns(old_snapshot, handle.latest_snapshot(), commit)
        rows = ({"type_key": key, "indexes": columns} for key, columns in indexes.items())
        event.log_tables("table_indexed", rows)
    return Receipt(commit, branch=branch, elapsed=event.elapsed_seconds(), indexes=indexes)


def list_pending_indexes(snapshot: "Snapshot") -> list[tuple[str, str, str]]:
    """Return the declared indexes that do not cover all rows, as (table, property, reason) tuples."""
    from omnigraph.lang.schema.type_names import type_for_key
    from omnigraph.maintenance.index_maintenance import outdated_indexes, unbuilt_indexes

    catalog = snapshot.schema.ir.catalog
    tables = ((key, snapshot.table(key), type_for_key(catalog, key)) for key in sorted(snapshot.tables))
    return [
        (key, name, reason)
        for key, table, entity_type in tables
        for name, reason in (*unbuilt_indexes(table, entity_type), *outdated_indexes(table, entity_type))
    ]


def preview_cleanup(handle: Handle, policy: "RetentionPolicy", engine: EngineChoice, *, erase: bool) -> Cleanup:
    """Report what a cleanup would remove."""
    return collect_garbage.preview_cleanup(handle.store, policy, *choose_cleanup_executor(engine), erase=erase)


def run_cleanup(
    handle: Handle,
    policy: "RetentionPolicy",
    engine: EngineChoice,
    progress: collect_garbage.CleanupProgress | None,
    *,
    erase: bool,
) -> Cleanup:
    """Remove data that no branch needs any longer."""
    executors = choose_cleanup_executor(engine)
    handle.require_writable("cleaning up")
    with log_operation("cleanup", handle.branch_name) as event:
        if erase:
            from omnigraph.maintenance.retention.erase import rewrite_deleted_data

            rewrite_deleted_data(handle.store)
        report = collect_garbage.cleanup(handle.store, policy, progress, *executors)
        _drop_stale_caches(handle)
        if erase and not handle.pinned:
            handle.refresh()
        event.log_tables("table_cleaned", (dataset.to_json() for dataset in report.datasets))
        event.facts["gc_bytes_removed"] = report.bytes_removed
        event.facts["gc_versions_removed"] = report.old_versions_removed
        event.facts["orphans_reclaimed"] = len(report.orphans)
    return report


def search_traces(handle: Handle, type_name: str, entity_id: str, also: Paths) -> Absence:
    """Search every file in the graph, the caches and any additional folders for an entity."""
    from omnigraph.engine.query_caches import cache_directory

    handle.require_open()
    cache = cache_directory()
    more = [also] if isinstance(also, str | PathLike) else also
    folders = [cache] if cache is not None and cache.exists() else []
    return find_traces(handle.store, type_name, entity_id, [*folders, *more])


def run_repair(handle: Handle, choice: "NameChoice", commit: str | None, *, confirm: bool, force: bool) -> "Repair":
    """Report damage, and repair it if confirmed."""
    from omnigraph.maintenance.repair import repair_graph

    handle.require_open()
    if confirm:
        handle.require_writable("repairing")
    store, branch_state = handle.store, handle.branch_state
    with log_operation("repair", handle.branch_name) as event:
        repair = repair_graph(
            store, branch_state, confirm=confirm, force=force, name_choice=choice, acknowledged_commit=commit
        )
        event.log_tables("table_repaired", (dataset.to_json() for dataset in repair.datasets))
        event.log_tables("name_repaired", (name.to_json() for name in repair.names))
        event.log_tables("version_repaired", (version.to_json() for version in repair.versions))
        drifted = [dataset for dataset in repair.datasets if dataset.action != "no_op"]
        event.facts["drift_tables"] = len(drifted)
    if repair.commit_id is not None or (confirm and repair.versions):
        handle.refresh()
    return repair


def copy_graph_to(
    handle: Handle,
    uri: str | PathLike[str],
    progress: CopyProgress | None,
    storage_options: Mapping[str, object] | None,
    *,
    verify: bool,
) -> CopySummary:
    """Copy a graph to an empty location."""
    handle.require_open()
    durability = handle.store.durability
    target = open_store(os.fspath(uri), durability=durability, storage_options=storage_options)
    return copy_graph(handle.store, target, progress, actor=handle.actor, verify=verify)


def _indexed_columns(
    old_snapshot: "Snapshot", new_snapshot: "Snapshot", commit: "Commit | None"
) -> dict[str, list[str]]:
    """Return the columns whose indexes were built in a commit, grouped by table."""
    from omnigraph.maintenance.index_maintenance import extended_indexes

    keys = sorted(commit.tables) if commit is not None else ()
    existing = (key for key in keys if key in old_snapshot.tables and key in new_snapshot.tables)
    return {key: extended_indexes(old_snapshot.table(key), new_snapshot.table(key)) for key in existing}


def _log_optimized_tables(event: OperationEvent, optimized: "OptimizeReport") -> None:
    """Log one event per table, and add the totals to the run's own event."""
    datasets = optimized.datasets
    rows = (
        {
            **dataset.to_json(),
            "pending_indexes": len(dataset.pending_indexes),
            "version_before": dataset.version_before,
            "version_after": dataset.version_after,
        }
        for dataset in datasets
    )
    event.log_tables("table_optimized", rows)
    event.retries = optimized.retries
    event.facts["fragments_removed"] = sum(dataset.fragments_removed for dataset in datasets)
    event.facts["maintenance_conflict_retries"] = optimized.retries
    event.facts["pending_indexes"] = sum(len(dataset.pending_indexes) for dataset in datasets)


def _drop_stale_caches(handle: Handle) -> None:
    """Drop cached neighbor lists for removed versions from memory and from disk."""
    from omnigraph.engine.adjacency.topology_cache import drop_root
    from omnigraph.engine.query_caches import shared_caches

    drop_root(shared_caches(), handle.store)
