"""Run the garbage collector, or preview what it would remove.

The steps are ordered so that a file is removed only if nothing can reference it any longer:

1. Survey, then mark. A file that is written later is not in the survey and cannot be selected. If the mark came first,
   a file published between the mark and the survey would be mistaken for garbage.
2. Write the delete queue, then mark again. A process that needs to reference old data writes an intent and then reads
   the queue (see `delete_queue`). The collector writes the queue and then reads the intents. Regardless of the timing,
   either the process sees the queue or the collector sees the intent.
3. Before the second mark, raise the fences. Ordinary writes have no intent. After a fence, the swaps of writes
   that were staged earlier fail. These writes stage again, so none of their old files are published after the second
   mark.
4. Record the sweep list once. The list is final for all collectors: files that are not on it may be
   referenced again, so a second, different list could lead to their removal.
5. Remove the files, then the queue, then the sweep list.

The next run finishes a crashed run. A suspended run does no harm when it resumes.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from omnigraph.errors import ConcurrentCommit, StorageError
from omnigraph.history.delete_queue import QUEUE_PART, SWEEP_PART, DamagedListError, list_runs, read_listed_names
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.executors.protocol import Executor, ExecutorForFiles, VersionKey
from omnigraph.maintenance.retention.file_survey import FileSurvey, take_survey
from omnigraph.maintenance.retention.old_versions import list_superseded_refs, old_versions
from omnigraph.publish import intent as intents
from omnigraph.publish.recover import recover
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.file_removal import remove_files, sort_for_removal
from omnigraph.storage.file_roles import owning_directory
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import VersionFiles
from omnigraph.values import clock_and_ids

from .candidates import find_orphans, find_unreferenced_tables, select_deletable, select_still_deletable
from .claim import CollectorClaim, hold_claim
from .collector_fence import raise_fences
from .erase_preview import preview_erase
from .intent_protection import IntentProtection, mark_intents
from .mark_live import Marking, mark_heads, spared_manifests
from .policy import RetentionPolicy
from .report import Cleanup, build_dataset_rows, dataset_key
from .version_gaps import check_versions_present

_log = logging.getLogger("omnigraph")
CleanupProgress = Callable[[int, int], None]  # (number of files removed so far, total number of files)


@dataclass(slots=True)
class _CleanupRun:
    """A running cleanup, and the files that it has marked and removed so far."""

    store: Store
    marking: Marking
    claim: CollectorClaim
    progress: CleanupProgress
    executor: Executor
    removed: list[str] = field(default_factory=list)
    errors_by_dataset: dict[str, str] = field(default_factory=dict)
    failed_names: list[str] = field(default_factory=list)

    def record_removal(self, file_name: str, error_text: str | None) -> None:
        """Record a removed file, or the error that prevented its removal."""
        if error_text is None:
            self.removed.append(file_name)
        else:
            self.failed_names.append(file_name)
            self.errors_by_dataset[dataset_key(file_name, self.marking.type_by_directory)] = (
                f"{file_name}: {error_text}"
            )


@as_storage_errors("none")
def preview_cleanup(
    store: Store,
    policy: RetentionPolicy,
    executor: Executor | None = None,
    executor_for_files: ExecutorForFiles | None = None,
    *,
    erase: bool = False,
) -> Cleanup:
    """Report what a cleanup or an erase would remove, without writing anything."""
    executor = executor or LocalExecutor()
    listing_time = clock_and_ids.now() if store.effects.read_only else intents.store_time(store)
    survey = take_survey(store, listing_time, executor)
    executor = executor_for_files(len(survey.files)) if executor_for_files else executor
    marking, protected = _mark_live(store, policy, survey, executor)
    plan = _plan_cleanup(marking, protected)
    deletable_names = dict.fromkeys([*plan.deletable_names, *_old_manifest_files(marking)])
    deleted_rows = None
    if erase:
        erasable_names, deleted_rows = preview_erase(marking)
        # After the rewrite, the previous head is the second-newest commit, so the policy may keep its files.
        deletable_names |= dict.fromkeys(erasable_names if not policy.keeps(1, timedelta()) else ())
    report = plan.complete_report(
        Cleanup(
            True,
            build_dataset_rows(deletable_names, marking.survey, marking.type_by_directory),
            deleted_rows=deleted_rows,
        )
    )
    return replace(_count_spared(report, marking), engine=executor.name)


@as_storage_errors("unknown")
def cleanup(
    store: Store,
    policy: RetentionPolicy,
    progress: CleanupProgress | None = None,
    executor: Executor | None = None,
    executor_for_files: ExecutorForFiles | None = None,
) -> Cleanup:
    """Remove files that are no longer needed, while readers and writers stay active.

    `executor` lists files. Once the number of files is known, `executor_for_files` may choose a different executor for
    the rest of the work.

    Crashed operations are finished or discarded first. Raises `ConcurrentCommit` if another cleanup is running or a
    branch is too busy to be fenced, and `Conflict` if something that must be kept cannot be read. In these cases,
    nothing is removed.
    """
    executor = executor or LocalExecutor()
    recover(store)  # first, because the intents of crashed operations still protect their files
    run_id = clock_and_ids.new_ulid()
    listing_time = intents.store_time(store)
    with hold_claim(store, run_id, listing_time) as claim:
        survey = take_survey(store, listing_time, executor)
        executor = executor_for_files(len(survey.files)) if executor_for_files else executor
        marking, protected = _mark_live(store, policy, survey, executor)
        run = _CleanupRun(store, marking, claim, progress or (lambda *_: None), executor)
        # Do this first, because names that an abandoned run has queued must not be queued twice.
        for abandoned_run in list_runs(store):
            _finish_abandoned_run(run, abandoned_run)
        removed_names = set(run.removed)
        plan = _plan_cleanup(marking, protected)
        deletable_names = [file_name for file_name in plan.deletable_names if file_name not in removed_names]
        if deletable_names:
            queue_members = {"names": deletable_names, "run": run_id}
            # From here on, other processes refuse to reference these names.
            store.objects.create_json(layout.gc_name(run_id, QUEUE_PART), queue_members)
            _finish_run(run, run_id)
        store.dataset_cache.clear()  # cached handles may point to files that no longer exist
        # Take a new survey, because the fences have added manifest versions since the first survey.
        final_survey = take_survey(store, intents.store_time(store), executor)
        _trim_manifests(run, final_survey)
        dataset_rows = build_dataset_rows(
            run.removed, survey.with_sizes_of(final_survey), marking.type_by_directory, run.errors_by_dataset
        )
        report = plan.complete_report(Cleanup(False, dataset_rows))
        final_marking = Marking(
            store, policy, final_survey, version_contents=marking.version_contents, unnamed=marking.unnamed
        )
        return replace(_count_spared(report, final_marking), engine=executor.name)


@dataclass(frozen=True, slots=True)
class _CleanupPlan:
    """The files that a cleanup removes, and the parts of its report that are known before the removal."""

    deletable_names: list[str]
    unreferenced_paths: tuple[str, ...]
    unreferenced_bytes: int
    orphans: tuple[str, ...]
    commits_kept: int
    held_by: tuple[str, ...] = ()
    unnamed: tuple[Mapping[str, Any], ...] = ()

    def complete_report(self, report: Cleanup) -> Cleanup:
        """Return the report with the plan's findings added."""
        return replace(
            report,
            unreferenced_paths=self.unreferenced_paths,
            unreferenced_bytes=self.unreferenced_bytes,
            orphans=self.orphans,
            commits_kept=self.commits_kept,
            held_by=self.held_by,
            unnamed=self.unnamed,
        )


def _plan_cleanup(marking: Marking, protected: IntentProtection) -> _CleanupPlan:
    """Select the files to remove; include unreferenced tables only if the policy requires it."""
    deletable_names, survey = select_deletable(marking, protected), marking.survey
    unreferenced_paths = find_unreferenced_tables(marking, deletable_names)
    dropped_names = [file_name for file_name in deletable_names if owning_directory(file_name) in unreferenced_paths]
    if not marking.policy.purge_dropped:
        deletable_names = sorted({*deletable_names} - {*dropped_names})
    dropped_bytes = sum(map(survey.size_of, dropped_names))
    held_by = tuple(sorted(marking.holders))
    return _CleanupPlan(
        deletable_names,
        unreferenced_paths,
        dropped_bytes,
        find_orphans(marking, deletable_names),
        len(marking.kept_commits),
        held_by,
        tuple(unnamed.to_json() for unnamed in marking.unnamed),
    )


def _old_manifest_files(marking: Marking) -> list[str]:
    return [file_name for group in _group_old_versions(marking, marking.survey) for file_name in group]


def _group_old_versions(marking: Marking, survey: FileSurvey) -> Iterator[list[str]]:
    spared_directories = {unnamed.directory for unnamed in marking.unnamed}
    return old_versions(marking.store, survey, marking.policy.grace, spared_directories)


def _count_spared(report: Cleanup, marking: Marking) -> Cleanup:
    """If the run removes nothing, count the files that are kept only because of the grace period."""
    policy = marking.policy
    if report.datasets or not policy.grace:
        return report
    marking_without_grace = marking.start_over(replace(policy, grace=timedelta()))
    mark_heads(marking_without_grace)
    deletable_names = _plan_cleanup(marking_without_grace, mark_intents(marking_without_grace)).deletable_names
    spared_names = {*deletable_names, *_old_manifest_files(marking_without_grace)}
    spared_bytes = sum(map(marking_without_grace.survey.size_of, spared_names))
    return replace(report, spared_files=len(spared_names), spared_bytes=spared_bytes)


def _mark_live(
    store: Store, policy: RetentionPolicy, survey: FileSurvey, executor: Executor
) -> tuple[Marking, IntentProtection]:
    check_versions_present(store, survey)
    marking = Marking(store, policy, survey, unnamed=spared_manifests(store, survey))
    if executor.reads_ahead:
        marking.version_contents |= executor.read_versions(store, _versions_to_read(marking))
    mark_heads(marking)
    return marking, mark_intents(marking)


def _versions_to_read(marking: Marking) -> list[VersionKey]:
    """Return the versions that a mark will read. A trial mark determines these versions without reading them.

    An executor can then read them in parallel.
    """
    noted_versions: dict[VersionKey, None] = {}

    def note_version(_: Store, location: str, version: int) -> VersionFiles:
        noted_versions[location, version] = None
        return VersionFiles((), (), ())

    store, policy, survey = marking.store, marking.policy, marking.survey
    trial_marking = Marking(store, policy, survey, read_version=note_version, unnamed=marking.unnamed)
    mark_heads(trial_marking)
    mark_intents(trial_marking)
    return list(noted_versions)


def _finish_abandoned_run(run: _CleanupRun, run_id: str) -> None:
    """Finish a run that another process abandoned. If the run's lists are damaged, leave the run unchanged."""
    try:
        _finish_run(run, run_id)
    except DamagedListError as error:
        _log.warning("an interrupted cleanup cannot be finished: %s", error.message)


def _finish_run(run: _CleanupRun, run_id: str) -> None:
    """Finish this process's run, or a run that another process abandoned."""
    store = run.store
    queued_names = read_listed_names(store, run_id, QUEUE_PART)
    sweep_names = read_listed_names(store, run_id, SWEEP_PART)
    if sweep_names is None and queued_names is not None:
        try:
            sweep_names = _record_sweep_list(store, run_id, _recheck_after_fence(run, queued_names))
        except BaseException:
            # End the run; otherwise, its queue would keep blocking operations that need the queued names.
            _abandon_run(store, run_id)
            raise
        queued_names = read_listed_names(store, run_id, QUEUE_PART)
    # Another collector has completed this run. Now that the queue is gone, other processes may reference the names
    # again, so the sweep list must no longer be used.
    if queued_names is None:
        store.objects.remove(layout.gc_name(run_id, SWEEP_PART))
        return
    _sweep_files(run, sweep_names or [])
    if not run.errors_by_dataset:
        # Remove the queue first: a queue without its sweep list would look undecided and be marked again.
        store.objects.remove(layout.gc_name(run_id, QUEUE_PART))
        store.objects.remove(layout.gc_name(run_id, SWEEP_PART))


def _recheck_after_fence(run: _CleanupRun, queued_names: list[str]) -> list[str]:
    """Raise the fences and mark again; return the queued names that are still unreachable.

    References can move while they are being read: from an intent to a head when the operation publishes, or from a head
    to an intent when a branch is forked and its source is deleted. Reading the heads both before and after the intents
    catches moves in either direction.
    """
    raise_fences(run.store, queued_names, run.marking.unnamed)
    second_marking = run.marking.start_over()
    mark_heads(second_marking)
    protected = mark_intents(second_marking)
    mark_heads(second_marking)
    run.claim.check()  # a suspended run must not record a result after another run has taken over
    return select_still_deletable(queued_names, second_marking, protected)


def _record_sweep_list(store: Store, run_id: str, sweep_names: list[str]) -> list[str]:
    """Record the result of the second mark and return the recorded result. The first recorded result wins."""
    store.objects.create_json(layout.gc_name(run_id, SWEEP_PART), {"names": sweep_names})
    recorded_names = read_listed_names(store, run_id, SWEEP_PART)
    if recorded_names is None:
        raise ConcurrentCommit("another cleanup completed this run", hint="run the cleanup again")
    return recorded_names


def _abandon_run(store: Store, run_id: str) -> None:
    """End a run by recording an empty result, so that no collector can record a different one.

    If recording the result also fails, the next collector finishes the run.
    """
    with suppress(StorageError, OSError, ConcurrentCommit):
        if _record_sweep_list(store, run_id, []) == []:
            store.objects.remove(layout.gc_name(run_id, QUEUE_PART))
            store.objects.remove(layout.gc_name(run_id, SWEEP_PART))


def _sweep_files(run: _CleanupRun, sweep_names: list[str]) -> None:
    total = len(sweep_names)

    def record_and_show(file_name: str, error_text: str | None) -> None:
        run.record_removal(file_name, error_text)
        run.progress(min(len(run.removed), total), total)

    run.executor.remove_files(run.store, sort_for_removal(sweep_names), record_and_show, run.claim.check)


def _trim_manifests(run: _CleanupRun, survey: FileSurvey) -> None:
    """Remove old manifest versions and superseded refs, which nothing can reference any longer.

    These removals do not need a delete queue.
    """
    blocked_directories: set[str] = set()
    for group in _group_old_versions(run.marking, survey):
        for file_name in group:
            # Remove versions strictly in order. If a version cannot be removed, all newer versions must stay as well,
            # so that no old version remains below a gap.
            if owning_directory(file_name) not in blocked_directories:
                failures_before = len(run.failed_names)
                remove_files(run.store, [file_name], run.record_removal, run.claim.check)
                blocked_directories |= (
                    {owning_directory(file_name)} if len(run.failed_names) > failures_before else set()
                )
    remove_files(run.store, list_superseded_refs(run.store), run.record_removal, run.claim.check)
