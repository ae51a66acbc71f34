"""The write protocol: pin a base, write detached table versions, swap the manifest, verify, and acknowledge.

This is the only module that makes a write visible. Safety depends on the order of the steps:

1. Everything that the new state references is written first: data files, then detached table
   versions, then log chunks. No manifest references these files yet, so a crash leaves only
   garbage.
2. One compare-and-swap of the branch manifest makes all tables visible at once. The swap succeeds
   only on the exact base that the plan was checked against, so no concurrent write is overwritten.
3. The newest manifest is read back before the write is acknowledged, because a store may apply a
   swap and lose the response. This process advances its cached branch state only after reading the
   manifest back.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.errors import ClientError, ConcurrentCommit, Conflict, HistoryReclaimed, StorageError
from omnigraph.history.activity import report_activity
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import is_newest, sync_manifest
from omnigraph.history.missing_table_files import report_missing_files
from omnigraph.publish.next_state import DetachedTable, build_commit, build_next_state, rebase_tables
from omnigraph.publish.requirements import Requirement, check_requirements
from omnigraph.publish.swap import MAX_SWAP_ATTEMPTS, WriteRequest, require_open_branch, swap_and_verify
from omnigraph.publish.write_plan import CommitMetadata, PreparePlan, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.failures import as_storage_errors
from omnigraph.values import clock_and_ids

from .idempotency import find_replayed_commit
from .trim_versions import trim_when_due
from .unresolved_swaps import UnresolvedSwap

if TYPE_CHECKING:
    from omnigraph.values.table_key import TableKey

MAX_PREPARATIONS = 32  # maximum number of plans per write; each lost race may require a new plan
PREPARATION_BUDGET_SECONDS = 60.0  # seconds allowed for all preparations together


def publish(
    branch_state: BranchState,
    prepare: PreparePlan,
    metadata: CommitMetadata | None = None,
    conditions: Sequence[Requirement] = (),
    identity: tuple[str, int] | None = None,
    takes_turns: bool = False,
) -> Commit | None:
    """Prepare a write on the newest state, and publish its changes to all tables at once.

    Returns the new commit, an earlier commit with the same idempotency key, or None if there is nothing to write.
    `conditions` are the caller's requirements, which are checked on every base. If one of them fails, the failure is
    final. If a plan's own requirements fail, a new plan is prepared. `identity` is the commit id and creation time that
    an intent recorded earlier. A recovered operation keeps its commit id, so it can be found in the log and is never
    published twice. With `takes_turns`, the processes on this machine take turns, so that a short write does not
    repeatedly lose the race and have to be planned again.
    """
    turn = branch_state.machine_queue.turn if takes_turns else _race
    commit = _publish_with_retries(branch_state, prepare, metadata, conditions, identity, turn)
    if commit is not None:
        # Housekeeping comes last, and its failures are only logged, because the write has already been applied.
        try:
            trim_when_due(branch_state.store, branch_state.ulid, commit.manifest_version)
        except BaseException as interruption:  # even an interrupt must report that the write was published
            interruption.add_note(f"commit {commit.id} was written")
            raise
    return commit


def _publish_with_retries(
    branch_state: BranchState,
    prepare: PreparePlan,
    metadata: CommitMetadata | None,
    conditions: Sequence[Requirement],
    identity: tuple[str, int] | None,
    turn: Callable[[], AbstractContextManager[bool]],
) -> Commit | None:
    # All attempts share one commit id. A late swap from an earlier attempt is therefore recognized in the log as this
    # same write, and the write is never published twice.
    commit_id, created_at = identity or (clock_and_ids.new_ulid(), clock_and_ids.now_micros())
    unresolved_swap = UnresolvedSwap(f"commit {commit_id}")
    request = WriteRequest(branch_state, prepare, metadata or CommitMetadata(), conditions, unresolved_swap)
    branch_state.recover_if_needed()  # recover crashed operations first, outside the writer slot
    txn = WriteTxn(branch_state.store, branch_state.name, branch_state.last_known(), commit_id, created_at)
    missing_files_context = report_missing_files(branch_state.store, lambda: branch_state.last_known().state.tables)
    # The writer slot makes the threads in this process take turns instead of racing for the swap. Between processes,
    # only the swap itself determines which write wins.
    with (
        unresolved_swap.report_unknown_outcome(),
        branch_state.writer_slot(),
        missing_files_context,
        as_storage_errors("none"),
        turn() as waited,
    ):
        if waited:  # another process has probably published
            branch_state.refresh()
        deadline = clock_and_ids.monotonic() + PREPARATION_BUDGET_SECONDS
        for lost_attempts in range(MAX_PREPARATIONS):
            if lost_attempts:
                report_activity("repeated_plan")
            txn = replace(txn, base=branch_state.last_known(), is_retry=lost_attempts > 0)
            outcome = _attempt(request, txn)
            if not isinstance(outcome, _PrepareAgain):
                return outcome
            if clock_and_ids.monotonic() > deadline:
                break
            branch_state.back_off(lost_attempts)
        raise ConcurrentCommit(f"too many concurrent writes to branch {branch_state.name}; nothing was written")


def _race() -> AbstractContextManager[bool]:
    """Return a context manager that does nothing, for a write that races instead of waiting for its turn."""
    return nullcontext(False)


class _PrepareAgain:
    """The result of an attempt whose plan is no longer valid and must be prepared again on a newer state."""


def _attempt(request: WriteRequest, txn: WriteTxn) -> Commit | _PrepareAgain | None:
    """Prepare one plan and try to publish it."""
    branch_state = request.branch_state
    try:
        existing_commit = _find_existing_commit(request, txn)
        if existing_commit is not None:
            return existing_commit
        require_open_branch(branch_state, txn.base.state)
        check_requirements(request.conditions, txn)
        plan = request.prepare(txn)
    except (ClientError, StorageError, OSError) as error:
        # The base comes from memory and may be outdated: the conflict may no longer exist, and compaction may have
        # removed files. A failure is therefore final only on the newest state.
        if _must_be_raised(error) or is_newest(txn.base):
            raise
        return _reload_and_prepare_again(branch_state)
    if plan is None:
        # "Nothing to write" must not be reported while an earlier swap for this write may still be applied.
        request.unresolved_swap.raise_if_unresolved()
        return None if is_newest(txn.base) else _reload_and_prepare_again(branch_state)
    try:
        return _commit_plan(request, txn, plan.with_base_requirements(txn))
    except (HistoryReclaimed, StorageError, OSError) as error:
        if _must_be_raised(error) or is_newest(branch_state.last_known()):
            raise
        return _reload_and_prepare_again(branch_state)


def _must_be_raised(failure: Exception) -> bool:
    """Return whether a failure must be raised because data may have been written or a reload cannot help."""
    return isinstance(failure, StorageError) and (
        failure.effect != "none" or failure.kind in ("transient", "precondition")
    )


def _find_existing_commit(request: WriteRequest, txn: WriteTxn) -> Commit | None:
    """Find this write's own commit if its swap was applied late, or an earlier commit with the same idempotency key."""
    base_manifest, existing_commit = txn.base, None
    if request.unresolved_swap.is_unresolved:
        existing_commit = HistoryLog(request.store, base_manifest.state).find(txn.commit_id)
        if existing_commit is None:
            request.unresolved_swap.observe_version(base_manifest)
    if existing_commit is None:
        existing_commit = find_replayed_commit(request.store, base_manifest.state, request.metadata)
        # Refresh before reporting the earlier commit, because the refresh raises an error if the cached base was
        # cleaned up or the whole graph was removed.
        base_manifest = request.branch_state.refresh() if existing_commit is not None else base_manifest
    if existing_commit is not None:
        sync_manifest(base_manifest)  # the commit's writer may have crashed before syncing the version
        request.unresolved_swap.mark_resolved()
    return existing_commit


def _commit_plan(request: WriteRequest, txn: WriteTxn, plan: PublishPlan) -> Commit | _PrepareAgain:
    """Publish the plan by swapping the manifest. After each lost swap, rebase the plan onto the newer state."""
    detached_tables: dict[TableKey, DetachedTable] = {}
    for attempt in range(MAX_SWAP_ATTEMPTS):
        if attempt:
            # Preparation already checked the first attempt's base. On a retry, the base is newer, and another writer
            # may have changed data that the caller or the plan relies on.
            check_requirements(request.conditions, txn)
            if not _plan_still_holds(plan, txn):
                return _PrepareAgain()
            report_activity("repeated_swap")
        rebased_tables = rebase_tables(txn, plan, detached_tables)
        if rebased_tables is None:
            return _PrepareAgain()
        detached_tables = rebased_tables
        commit = build_commit(txn, plan, request.metadata, detached_tables)
        is_published = swap_and_verify(request, txn.base, build_next_state(txn, plan, commit, detached_tables), commit)
        if is_published:
            return commit
        # The swap may have been applied without a response and then been superseded. Search the newer log
        # before the next attempt, because a second commit with the same id must never be published.
        txn = replace(txn, base=request.branch_state.last_known(), is_retry=True)
        existing_commit = _find_existing_commit(request, txn)
        if existing_commit is not None:
            return existing_commit
    return _PrepareAgain()


def _plan_still_holds(plan: PublishPlan, txn: WriteTxn) -> bool:
    """Return whether the data that the plan depends on is unchanged and the staged files are safe from cleanup.

    A raised epoch means that a collector fenced the branch after the files were staged. No state references staged
    files, so the collector may treat these files as garbage, and the write must stage them again.
    """
    if not plan.protected_by_intent and plan.gc_epoch != txn.base.state.head.gc_epoch:
        return False
    try:
        check_requirements(plan.requirements, txn)
    except Conflict:
        return False
    return True


def _reload_and_prepare_again(branch_state: BranchState) -> _PrepareAgain:
    """Load the newest state, on which the write is prepared again."""
    branch_state.reload()
    return _PrepareAgain()
