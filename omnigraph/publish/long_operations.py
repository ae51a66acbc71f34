"""Run long operations: stage under an intent, confirm, request the verdict, and publish.

This module manages the life cycle of operations that may outlive their process. Either the owner or recovery publishes
a confirmed plan, exactly once. If the plan cannot be published, a refusal is recorded in the commit log.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from omnigraph.errors import ClientError, ConcurrentCommit, ReadSetConflict, RecoveryRequired, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import LoadedManifest
from omnigraph.history.missing_table_files import report_missing_files
from omnigraph.history.recovery_records import OutcomeKind
from omnigraph.history.state import GraphState
from omnigraph.publish.requirements import check_requirements
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.store import Store
from omnigraph.storage.table import can_replay
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from . import intent as intents
from .intent import Intent
from .lease import keep_lease_alive
from .plan_json import plan_to_json
from .publish import publish

PlanStager = Callable[[WriteTxn], PublishPlan | None]
ConfirmedPlanFactory = Callable[[WriteTxn], PublishPlan]
REFUSED_OPERATION = "refused"
_log = logging.getLogger("omnigraph")


def publish_long_operation(
    branch_state: BranchState,
    operation: str,
    stage_plan: PlanStager,
    commit_metadata: CommitMetadata,
    table_keys: tuple[TableKey, ...] = (),
    intent_facts: Mapping[str, Any] | None = None,
) -> Commit | None:
    """Stage a long operation under the protection of an intent, and publish it exactly once.

    `intent_facts` is additional data to record in the intent. A merge, for example, records its source.

    Raises `RecoveryRequired` if the store failed after the operation was confirmed but before it was
    published. The next writer that opens the graph then publishes the operation.
    """
    base_manifest = branch_state.refresh()
    intent = _build_intent(branch_state, base_manifest, operation, commit_metadata, table_keys)
    intent = replace(intent, facts={**intent.facts, **(intent_facts or {})})
    intents.arm(branch_state.store, intent)
    staged_plan = _stage_and_confirm(branch_state, base_manifest, intent, stage_plan)
    if staged_plan is None:
        _discard_intent(branch_state.store, intent)
        return None
    with _require_recovery_on_failure(intent):
        if intents.decide(branch_state.store, intent, "publish") == "publish":
            # The verdict was recorded, but the branch is too busy to publish.
            with _require_recovery_on_failure(intent, (ConcurrentCommit,)):
                return finish_confirmed(branch_state, intent, lambda _: staged_plan)
        return _find_published_elsewhere(branch_state, intent)


def finish_confirmed(
    branch_state: BranchState,
    intent: Intent,
    load_plan: ConfirmedPlanFactory,
    on_resolved: Callable[[OutcomeKind], object] = lambda _: None,
) -> Commit:
    """Publish a confirmed operation. If that is impossible, publish a refusal and raise the cause.

    `on_resolved` is called with the recorded outcome before the intent is removed. The outcome is `finished` or
    `refused`, or `discarded` if the branch was deleted. If the branch is too busy, `ConcurrentCommit` is raised, and
    the intent remains so that the operation can be finished later.
    """
    publish_result: Commit | ClientError | None
    try:
        publish_result = _publish_intent(branch_state, intent, load_plan)
    except ConcurrentCommit:
        raise
    except ClientError as error:  # a conflict, a failed requirement, or a key used for a different request
        publish_result = error
    logged_commit = find_intent_commit(branch_state.store, branch_state.last_known().state, intent) or publish_refusal(
        branch_state, intent
    )
    on_resolved(_outcome_kind(logged_commit))
    intents.retire(branch_state.store, intent)
    if logged_commit is not None and logged_commit.operation != REFUSED_OPERATION:
        return logged_commit
    if isinstance(publish_result, Commit) and publish_result.id != intent.commit_id:
        return publish_result  # the earlier commit with the same idempotency key
    if isinstance(publish_result, ClientError):
        raise publish_result
    raise ReadSetConflict(member="tables", expected=intent.base_commit)


def publish_refusal(branch_state: BranchState, intent: Intent) -> Commit | None:
    """Publish a refusal under the intent's commit id, so that the intent's plan can never be published later.

    Returns the commit that the log now contains under this id, or None if the branch was deleted. Another process may
    have published the commit.
    """
    refusal_metadata = CommitMetadata(actor=intent.actor)
    with suppress(ReadSetConflict):  # no commit can be published to a deleted branch
        _publish_intent(branch_state, intent, lambda _: PublishPlan(REFUSED_OPERATION), refusal_metadata)
    newest_state = branch_state.refresh().state
    logged_commit = find_intent_commit(branch_state.store, newest_state, intent)
    if logged_commit is None and not newest_state.head.closed:
        raise ConcurrentCommit(f"the {intent.operation} was rejected, but the rejection could not be recorded")
    return logged_commit


def find_intent_commit(store: Store, state: GraphState, intent: Intent) -> Commit | None:
    """Find an intent's commit in the log, searching only the commits after the intent's base."""
    for commit in HistoryLog(store, state).first_parents(state.head.commit_id):
        if commit.id == intent.commit_id:
            return commit
        if commit.id == intent.base_commit:
            return None
    return None


def _publish_intent(
    branch_state: BranchState,
    intent: Intent,
    load_plan: ConfirmedPlanFactory,
    commit_metadata: CommitMetadata | None = None,
) -> Commit | None:
    """Publish a plan with the intent's commit id and creation time unless the log already contains the commit."""

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        if find_intent_commit(txn.store, txn.base.state, intent) is not None:
            return None
        # The intent has protected the plan's files, even if a cleanup ran in the meantime.
        plan = replace(load_plan(txn), protected_by_intent=True)
        _check_still_applies(plan, txn, intent)
        return plan

    branch_state.refresh()
    identity = (intent.commit_id or "", intent.created_at)
    return publish(branch_state, prepare, commit_metadata or commit_metadata_of(intent), identity=identity)


def _check_still_applies(plan: PublishPlan, txn: WriteTxn, intent: Intent) -> None:
    """Check that a plan staged on an older base is still valid on the new base, because it cannot be staged again."""
    check_requirements(plan.requirements, txn)
    for table_key, staged_write in plan.writes.items():
        if not can_replay(staged_write, txn.table(table_key)):
            raise ReadSetConflict(member="tables", expected=intent.base_commit)


def commit_metadata_of(intent: Intent) -> CommitMetadata:
    """Return the commit metadata that an intent recorded."""
    facts = intent.facts
    return CommitMetadata(intent.actor, intent.message, facts.get("key"), facts.get("request"))


def _build_intent(
    branch_state: BranchState,
    base_manifest: LoadedManifest,
    operation: str,
    commit_metadata: CommitMetadata,
    table_keys: tuple[TableKey, ...],
) -> Intent:
    return Intent(
        id=clock_and_ids.new_ulid(),
        operation=operation,
        branch=branch_state.name,
        branch_ulid=branch_state.ulid,
        base_commit=base_manifest.state.head.commit_id,
        created_at=clock_and_ids.now_micros(),
        commit_id=clock_and_ids.new_ulid(),
        actor=commit_metadata.actor,
        message=commit_metadata.message,
        tables=table_keys,
        facts={"key": commit_metadata.idempotency_key, "request": commit_metadata.request_hash},
    )


def _stage_and_confirm(
    branch_state: BranchState, base_manifest: LoadedManifest, intent: Intent, stage_plan: PlanStager
) -> PublishPlan | None:
    """Stage and confirm the operation. On any failure, discard the intent."""
    try:
        missing_files_explained = report_missing_files(branch_state.store, lambda: base_manifest.state.tables)
        with missing_files_explained, as_storage_errors("none"), keep_lease_alive(branch_state.store, intent):
            txn = WriteTxn(
                branch_state.store, branch_state.name, base_manifest, intent.commit_id or "", intent.created_at
            )
            plan = stage_plan(txn)
            if plan is not None:
                plan = plan.with_base_requirements(txn)
                intents.confirm(branch_state.store, intent, plan_to_json(plan))
            return plan
    except BaseException as error:
        was_discarded = _try_discard(branch_state.store, intent)
        if isinstance(error, StorageError):
            error.effect = "none" if was_discarded else "unknown"
        raise


def _try_discard(store: Store, intent: Intent) -> bool:
    """Try to discard a failed operation.

    If the discard fails as well, the lease expires and recovery decides the outcome.
    """
    try:
        return _discard_intent(store, intent)
    except (StorageError, OSError) as error:
        _log.warning("intent %s could not be discarded: %s", intent.id, error)
        return False


def _discard_intent(store: Store, intent: Intent) -> bool:
    verdict = intents.decide(store, intent, "discard")
    if verdict == "discard":
        intents.retire(store, intent)
    return verdict == "discard"


def _find_published_elsewhere(branch_state: BranchState, intent: Intent) -> Commit:
    """Return the commit if another process published it. Otherwise, raise `ConcurrentCommit`."""
    logged_commit = find_intent_commit(branch_state.store, branch_state.refresh().state, intent)
    if logged_commit is None or logged_commit.operation == REFUSED_OPERATION:
        raise ConcurrentCommit(f"the {intent.operation} took too long and was abandoned")
    return logged_commit


@contextmanager
def _require_recovery_on_failure(
    intent: Intent, failures: tuple[type[Exception], ...] = (StorageError, OSError)
) -> Iterator[None]:
    """Raise `RecoveryRequired` if the block fails, because a confirmed operation may still be published."""
    try:
        yield
    except failures as error:
        message = f"the {intent.operation} was confirmed, but may not have been published yet"
        raise RecoveryRequired(message, operation_id=intent.id, effect="unknown") from error


def _outcome_kind(logged_commit: Commit | None) -> OutcomeKind:
    if logged_commit is None:
        return "discarded"
    return "refused" if logged_commit.operation == REFUSED_OPERATION else "finished"
