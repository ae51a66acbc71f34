"""The write protocol: pin a base, write detached table versions, swap the manifest, verify, ack.

The only module that makes a write visible. The order is what makes it safe:

1. Everything that the new state references is written first: data files, then detached table
   versions, then log chunks. No manifest references them yet, so a crash leaves garbage only.
2. One compare-and-swap of the branch manifest makes all tables visible at once. It succeeds only
   on the exact base that the plan was checked on, so no concurrent write is overwritten.
3. The newest manifest is read back before the write is acknowledged, because a store may apply a
   swap and lose the answer. Only then does this process advance its cached branch state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.errors import (
    ClientError,
    ConcurrentCommit,
    Conflict,
    HistoryReclaimed,
    ReadSetConflict,
    StorageError,
)
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.file_checksums import record_checksums
from omnigraph.history.log import HistoryLog, append_commits
from omnigraph.history.manifest import (
    LoadedManifest,
    is_from_replaced_graph,
    is_newest,
    swap_state,
    sync_manifest,
)
from omnigraph.history.missing_table_files import report_missing_files
from omnigraph.history.state import GraphState
from omnigraph.storage.cell import SwapConflict, SwapOutcomeUnknown
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.failures import (
    AbsentError,
    as_storage_errors,
    failures_as_unknown_effect,
    to_storage_error,
)
from omnigraph.storage.store import Store
from omnigraph.storage.table import can_replay
from omnigraph.storage.table import commit as commit_table
from omnigraph.values import ids

from .idempotency import find_replayed_commit
from .plan import (
    CommitMetadata,
    PreparePlan,
    PublishPlan,
    Requirement,
    WriteTxn,
    check_requirements,
)
from .trim import trim_when_due
from .unresolved_swaps import UnresolvedSwap, local_disk_error

MAX_PREPARATIONS = 32  # plans per write; each lost race may need a fresh one
MAX_SWAP_ATTEMPTS = 5  # swaps of one plan, each on a newer base, before it is prepared again
PREPARATION_BUDGET_SECONDS = 60.0  # seconds for all preparations together


@dataclass(frozen=True, slots=True)
class DetachedTable:
    """A table with its new detached version: the entry it was based on, and the entry to publish.

    Plain Lance readers never see a detached version; only a branch manifest references it.
    `file_checksums` are those of the files that the version adds.
    """

    base_entry: TableEntry
    new_entry: TableEntry
    file_checksums: FileChecksums


@dataclass(frozen=True, slots=True)
class _WriteRequest:
    """The parts of a write that stay the same over all attempts."""

    branch_state: BranchState
    prepare: PreparePlan
    metadata: CommitMetadata
    conditions: Sequence[Requirement]
    unresolved_swap: UnresolvedSwap

    @property
    def store(self) -> Store:
        return self.branch_state.store


def publish(
    branch_state: BranchState,
    prepare: PreparePlan,
    metadata: CommitMetadata | None = None,
    conditions: Sequence[Requirement] = (),
    identity: tuple[str, int] | None = None,
) -> Commit | None:
    """Prepare a write on the newest state and publish it, all tables at once.

    Return the commit, the earlier commit with the same idempotency key, or None if there is
    nothing to write. `conditions` are what the caller based its decision on: they are checked on
    every base, and a failure is final. A plan whose own requirements fail is prepared again.
    `identity` is the (commit id, creation time) that an intent recorded earlier: a recovered
    operation keeps its commit id, so that it can be found in the log and never published twice.
    """
    commit = _publish_with_retries(branch_state, prepare, metadata, conditions, identity)
    if commit is not None:
        # Housekeeping comes last and only logs its failures: the write has already landed.
        try:
            trim_when_due(branch_state.store, branch_state.ulid, commit.manifest_version)
        except (
            BaseException
        ) as interruption:  # an interrupted caller must learn that the write exists
            interruption.add_note(f"commit {commit.id} was written")
            raise
    return commit


def _publish_with_retries(
    branch_state: BranchState,
    prepare: PreparePlan,
    metadata: CommitMetadata | None,
    conditions: Sequence[Requirement],
    identity: tuple[str, int] | None,
) -> Commit | None:
    # One commit id for all attempts: a late swap of an earlier attempt is then recognized in the
    # log as this very write, and publishing the write twice is impossible.
    commit_id, created_at = identity or (ids.new_ulid(), ids.now_micros())
    unresolved_swap = UnresolvedSwap(f"commit {commit_id}")
    request = _WriteRequest(
        branch_state, prepare, metadata or CommitMetadata(), conditions, unresolved_swap
    )
    branch_state.recover_if_needed()  # recover crashed operations first, outside of the writer slot
    txn = WriteTxn(
        branch_state.store, branch_state.name, branch_state.last_known(), commit_id, created_at
    )
    missing_files_context = report_missing_files(
        branch_state.store, lambda: branch_state.last_known().state.tables
    )
    # The writer slot lets threads of this process take turns instead of racing for the swap.
    # Against other processes only the swap itself decides.
    with (
        unresolved_swap.report_unknown_outcome(),
        branch_state.writer_slot(),
        missing_files_context,
        as_storage_errors("none"),
    ):
        deadline = ids.monotonic() + PREPARATION_BUDGET_SECONDS
        for lost_attempts in range(MAX_PREPARATIONS):
            txn = replace(txn, base=branch_state.last_known(), is_retry=lost_attempts > 0)
            outcome = _attempt(request, txn)
            if not isinstance(outcome, _PrepareAgain):
                return outcome
            if ids.monotonic() > deadline:
                break
            branch_state.back_off(lost_attempts)
        raise ConcurrentCommit(f"branch {branch_state.name} was too busy; nothing was written")


class _PrepareAgain:
    """Result of an attempt whose plan no longer fits: prepare it again on a newer state."""


def _attempt(request: _WriteRequest, txn: WriteTxn) -> Commit | _PrepareAgain | None:
    """Prepare one plan and try to publish it."""
    branch_state = request.branch_state
    try:
        existing_commit = _find_existing_commit(request, txn)
        if existing_commit is not None:
            return existing_commit
        _require_open_branch(branch_state, txn.base.state)
        check_requirements(request.conditions, txn)
        plan = request.prepare(txn)
    except (ClientError, StorageError, OSError) as error:
        # The base comes from memory and may be outdated: a conflict may be resolved by now, and
        # files may have been compacted away. Such a failure is final only on the newest state.
        if _must_be_raised(error) or is_newest(txn.base):
            raise
        return _reload_and_prepare_again(branch_state)
    if plan is None:
        # "Nothing to write" must not hide an earlier swap of this write that may still land.
        request.unresolved_swap.raise_if_unresolved()
        return None if is_newest(txn.base) else _reload_and_prepare_again(branch_state)
    try:
        return _commit_plan(request, txn, plan.with_base_requirements(txn))
    except (HistoryReclaimed, StorageError, OSError) as error:
        if _must_be_raised(error) or is_newest(branch_state.last_known()):
            raise
        return _reload_and_prepare_again(branch_state)


def _must_be_raised(failure: Exception) -> bool:
    """Whether a failure must reach the caller: it may have written, or a reload cannot cure it."""
    return isinstance(failure, StorageError) and (
        failure.effect != "none" or failure.kind in ("transient", "precondition")
    )


def _find_existing_commit(request: _WriteRequest, txn: WriteTxn) -> Commit | None:
    """Find the commit of this write, landed late, or an earlier one with its idempotency key."""
    base_manifest, existing_commit = txn.base, None
    if request.unresolved_swap.is_unresolved:
        existing_commit = HistoryLog(request.store, base_manifest.state).find(txn.commit_id)
        if existing_commit is None:
            request.unresolved_swap.observe_version(base_manifest)
    if existing_commit is None:
        existing_commit = find_replayed_commit(request.store, base_manifest.state, request.metadata)
        # The base from memory may be cleaned up by now, or the whole graph may be gone. Refresh
        # before the earlier commit is reported; the refresh raises in these cases.
        base_manifest = (
            request.branch_state.refresh() if existing_commit is not None else base_manifest
        )
    if existing_commit is not None:
        sync_manifest(base_manifest)  # its writer may have crashed before it synced the version
        request.unresolved_swap.mark_resolved()
    return existing_commit


def _commit_plan(
    request: _WriteRequest, txn: WriteTxn, plan: PublishPlan
) -> Commit | _PrepareAgain:
    """Swap the plan in, rebasing it on the newer state after each lost swap."""
    detached_tables: dict[str, DetachedTable] = {}
    for attempt in range(MAX_SWAP_ATTEMPTS):
        if attempt:
            # The first attempt was checked during preparation. This base is newer: another writer
            # may have invalidated what the caller or the plan relied on.
            check_requirements(request.conditions, txn)
            if not _plan_still_holds(plan, txn):
                return _PrepareAgain()
        rebased_tables = _rebase_tables(txn, plan, detached_tables)
        if rebased_tables is None:
            return _PrepareAgain()
        detached_tables = rebased_tables
        commit = _build_commit(txn, plan, request.metadata, detached_tables)
        is_published = _swap_and_verify(
            request, txn.base, _build_next_state(txn, plan, commit, detached_tables), commit
        )
        if is_published:
            return commit
        # The swap may have landed without an answer and been overtaken since. Search the newer
        # log before the next attempt: a second commit with the same id must never be published.
        txn = replace(txn, base=request.branch_state.last_known(), is_retry=True)
        existing_commit = _find_existing_commit(request, txn)
        if existing_commit is not None:
            return existing_commit
    return _PrepareAgain()


def _plan_still_holds(plan: PublishPlan, txn: WriteTxn) -> bool:
    """Whether everything the plan has read is unchanged, and its staged files still exist.

    A raised epoch means that a collector fenced the branch after staging. Staged files are not
    referenced by any state, so the collector may count them as garbage; they must be staged again.
    """
    if not plan.protected_by_intent and plan.gc_epoch != txn.base.state.head.gc_epoch:
        return False
    try:
        check_requirements(plan.requirements, txn)
    except Conflict:
        return False
    return True


def _rebase_tables(
    txn: WriteTxn, plan: PublishPlan, earlier_tables: Mapping[str, DetachedTable]
) -> dict[str, DetachedTable] | None:
    """Write detached versions on top of the tables of this base; None if a change does not apply.

    A table that has not moved since the last attempt keeps its detached version.
    """
    rebased_tables: dict[str, DetachedTable] = {}
    for table_key, staged_change in plan.writes.items():
        base_entry = txn.base.state.tables.get(table_key)
        if base_entry is None:
            return None
        earlier_table = earlier_tables.get(table_key)
        if earlier_table is not None and _is_same_version(earlier_table.base_entry, base_entry):
            rebased_tables[table_key] = earlier_table
            continue
        table = txn.table(table_key)
        # On a retry, maintenance that was attached to the write is dropped: it conflicts easily.
        applicable_change = (
            replace(staged_change, prior_maintenance=()) if txn.is_retry else staged_change
        )
        if not can_replay(applicable_change, table):
            return None
        detached_version = commit_table(txn.store, table, applicable_change)
        content_id = base_entry.content_id if plan.maintenance else txn.commit_id
        rebased_tables[table_key] = DetachedTable(
            base_entry,
            replace(
                base_entry,
                version=base_entry.version + 1,
                lance_version=detached_version.version,
                content_id=content_id,
                row_count=base_entry.row_count + staged_change.row_delta,
                branch=txn.branch,
            ),
            detached_version.new_files,
        )
    return rebased_tables


def _is_same_version(earlier_entry: TableEntry, current_entry: TableEntry) -> bool:
    return (earlier_entry.content_id, earlier_entry.lance_version) == (
        current_entry.content_id,
        current_entry.lance_version,
    )


def _build_commit(
    txn: WriteTxn,
    plan: PublishPlan,
    metadata: CommitMetadata,
    detached_tables: Mapping[str, DetachedTable],
) -> Commit:
    """Build the commit; the record of file checksums may be written here, before the swap."""
    changed_tables: dict[str, TableEntry | None] = {
        table_key: detached_table.new_entry for table_key, detached_table in detached_tables.items()
    }
    changed_tables |= {
        **plan.new_tables,
        **plan.adopted_tables,
        **dict.fromkeys(plan.dropped_tables),
    }
    new_checksums = {
        name: checksum
        for table in detached_tables.values()
        for name, checksum in table.file_checksums.items()
    }
    parent_ids = (txn.base.state.head.commit_id, *((plan.merged_head,) if plan.merged_head else ()))
    return Commit(
        id=txn.commit_id,
        parents=parent_ids,
        operation=plan.operation,
        branch=txn.branch,
        manifest_version=txn.base.version + 1,
        created_at=txn.created_at,
        published_at=ids.now_micros(),
        actor=metadata.actor,
        message=metadata.message,
        schema=plan.schema,
        tables=changed_tables,
        streams=plan.streams,
        key=metadata.idempotency_key,
        request=metadata.request_hash,
        details=plan.details,
        files=record_checksums(txn.store, changed_tables, {**plan.file_checksums, **new_checksums}),
    )


def _build_next_state(
    txn: WriteTxn, plan: PublishPlan, commit: Commit, detached_tables: Mapping[str, DetachedTable]
) -> GraphState:
    """Build the state to swap in; sealed log chunks are written here, before the swap."""
    base_state = txn.base.state
    log = HistoryLog(txn.store, base_state)
    unlogged_commits = [
        incoming for incoming in plan.incoming_commits if log.find(incoming.id) is None
    ]
    grown_state = append_commits(txn.store, base_state, [*unlogged_commits, commit])
    tables = {
        **base_state.tables,
        **{
            changed_key: changed_entry
            for changed_key, changed_entry in commit.tables.items()
            if changed_entry is not None
        },
    }
    return replace(
        grown_state,
        head=replace(base_state.head, commit_id=commit.id, nonce=None),
        schema=plan.schema or base_state.schema,
        tables={
            table_key: table_entry
            for table_key, table_entry in tables.items()
            if table_key not in plan.dropped_tables
        },
        streams={**base_state.streams, **plan.streams},
    )


def _swap_and_verify(
    request: _WriteRequest, base_manifest: LoadedManifest, next_state: GraphState, commit: Commit
) -> bool:
    """Swap the manifest and verify; True means that the commit is in the log.

    Never report the outcome of the swap alone. A client library may repeat a request whose answer
    was lost, and the repetition then loses to its own first try: even a conflict can mean success.
    """
    try:
        published_manifest = swap_state(request.store, base_manifest, next_state)
    except SwapConflict:
        with failures_as_unknown_effect():
            return _verify_commit_landed(request, base_manifest.state, commit)
    except SwapOutcomeUnknown as unknown_outcome:
        return _resolve_unknown_swap(request, base_manifest, commit, unknown_outcome)
    # If an interrupt arrives before verification ends, the caller hears "unknown", not "failed".
    request.unresolved_swap.mark_unanswered(base_manifest)
    with failures_as_unknown_effect():
        still_newest = is_newest(published_manifest)
        request.unresolved_swap.mark_resolved()
        if not still_newest:
            return _verify_commit_landed(request, base_manifest.state, commit)
    # Memory last: a state that is cached before it is verified could be shown and then vanish.
    request.branch_state.advance(published_manifest)
    return True


def _verify_commit_landed(request: _WriteRequest, base_state: GraphState, commit: Commit) -> bool:
    """Read the newest state and return whether this commit is in its log."""
    branch_state = request.branch_state
    for _ in range(MAX_SWAP_ATTEMPTS):
        newest_manifest = branch_state.reload()
        try:
            logged_commit = _find_in_newer_log(
                branch_state, base_state, newest_manifest.state, commit.id
            )
        except HistoryReclaimed:
            # Chunks were merged and collected since the read. On a deleted branch they stay gone,
            # so retrying is pointless there.
            _require_open_branch(branch_state, newest_manifest.state)
            continue
        if logged_commit is None:
            # A newer version without the commit uses up the version number of the swap: it can
            # never land any more, and only now "not written" is certain.
            request.unresolved_swap.observe_version(newest_manifest)
            _require_open_branch(branch_state, newest_manifest.state)
            return False
        try:
            sync_manifest(
                newest_manifest
            )  # another process may have swapped it and crashed before its sync
        except AbsentError:
            continue  # superseded and cleaned up; the next version contains the commit, too
        request.unresolved_swap.mark_resolved()
        return _require_own_commit(logged_commit, commit)
    raise StorageError(f"the log of branch {branch_state.name} cannot be read", kind="permanent")


def _require_own_commit(logged_commit: Commit, own_commit: Commit) -> bool:
    """Return True if the logged commit is ours; raise if it is a refusal under our commit id.

    Recovery by another process may have given the operation up and recorded that.
    """
    if logged_commit.operation != own_commit.operation:
        raise ReadSetConflict(
            f"the {own_commit.operation} was already resolved by another process as {logged_commit.operation}",
            member="tables",
        )
    return True


def _find_in_newer_log(
    branch_state: BranchState, base_state: GraphState, newest_state: GraphState, commit_id: str
) -> Commit | None:
    """Find a commit in the newest log; chunks that the base already had cannot contain it."""
    base_chunks = {chunk.name for chunk in base_state.chunks}
    newer_state = replace(
        newest_state,
        chunks=tuple(chunk for chunk in newest_state.chunks if chunk.name not in base_chunks),
    )
    return HistoryLog(branch_state.store, newer_state).find(commit_id)


def _require_open_branch(branch_state: BranchState, state: GraphState) -> None:
    """Raise if the branch was deleted."""
    if state.head.closed:
        raise ReadSetConflict(
            f"branch {branch_state.name} was deleted", member="branch", expected=branch_state.ulid
        )


def _resolve_unknown_swap(
    request: _WriteRequest,
    base_manifest: LoadedManifest,
    commit: Commit,
    unknown_outcome: SwapOutcomeUnknown,
) -> bool:
    """Find out what became of a swap that got no answer.

    Retrying with the same commit id is safe, so most cases just return whether it landed. An
    interrupt of the caller and an error of a local disk are raised instead: the one must not be
    swallowed, the other would only repeat.
    """
    cause, disk_refusal = (
        unknown_outcome.__cause__,
        local_disk_error(request.store, unknown_outcome),
    )
    if disk_refusal is None:  # a local disk that refused has nothing in flight
        request.unresolved_swap.mark_unanswered(base_manifest)
    with failures_as_unknown_effect():
        if is_from_replaced_graph(base_manifest):
            # The root was removed and created again. The log there says nothing about our swap.
            message = f"another graph was created at {request.store.root.uri}"
            raise StorageError(message, kind="permanent")
        is_published = _verify_commit_landed(request, base_manifest.state, commit)
    if cause is not None and not isinstance(cause, Exception):
        if is_published:
            cause.add_note(f"commit {commit.id} was written")
        raise cause
    if disk_refusal is not None and not is_published:
        raise to_storage_error(disk_refusal, effect="none") from disk_refusal
    return is_published


def _reload_and_prepare_again(branch_state: BranchState) -> _PrepareAgain:
    """Load the newest state for the next preparation."""
    branch_state.reload()
    return _PrepareAgain()
