"""Resolve one operation whose owner has died: finish or discard it according to the verdict.

This module determines how each kind of operation is finished. Several processes may resolve the same operation at the
same time, and an operation can be resolved again after any crash. If resolving an operation raises an error, its intent
remains in place.
"""

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import AlreadyExists, ClientError, GraphNotInitialized, NotFound, StorageError
from omnigraph.history import refs
from omnigraph.history.branch_state import BranchState, branch_state_of
from omnigraph.history.branches import state_at_commit
from omnigraph.history.delete_queue import check_state_retained, check_versions_retained
from omnigraph.history.manifest import read_manifest
from omnigraph.history.recovery_records import OutcomeKind, RecoveryRecord
from omnigraph.history.state import GraphState
from omnigraph.history.torn_manifests import set_aside_torn_versions
from omnigraph.publish.branch_lifecycle import CREATE_OPERATIONS, ref_directory, resume_creation
from omnigraph.publish.intent_outcomes import record_outcome
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.storage.torn_versions import TornVersionError

from . import intent as intents
from .intent import Intent, PendingIntent
from .intent_record import SCHEMA_VERSION, newer_release_error
from .lease import READ_OPERATION
from .long_operations import find_intent_commit, finish_confirmed
from .plan_json import PLAN_VERSION, plan_from_json, plan_version
from .rename import RENAME, NameNotVisibleError, finish_rename

_WITHOUT_COMMIT = (*CREATE_OPERATIONS, RENAME, READ_OPERATION)


def settle_operation(
    store: Store, pending: PendingIntent, *, record_was_set_aside: bool = False
) -> RecoveryRecord | None:
    """Finish or discard one operation and record the outcome; return None if there is nothing to report.

    If `record_was_set_aside` is true, the objects that the operation references may have been removed while its record
    was unreadable, so their existence is checked first.
    """
    intent = pending.intent
    if intent.operation == READ_OPERATION:  # a read lease changes nothing, so its end is not reported
        intents.retire(store, intent)
        return None
    if intent.commit_id is None and intent.operation not in _WITHOUT_COMMIT:
        raise newer_release_error(intent.id, operation=intent.operation)
    # Request the verdict first, because only one verdict can ever be written. Otherwise, a slow owner that is still
    # alive could publish an operation that recovery discards.
    verdict = intents.decide(store, intent, "publish" if pending.confirmed else "discard")
    if verdict is None:
        return None
    if verdict == "discard":
        return _record_and_retire(store, intent, "discarded")
    if intent.operation in CREATE_OPERATIONS:
        return _finish_creation(store, intent, was_set_aside=record_was_set_aside)
    if intent.operation == RENAME:
        return _finish_rename(store, intent)
    return _finish_publish(store, intent)


def can_settle(needs: Mapping[str, Any]) -> bool:
    """Return whether this release can resolve an operation that a newer release left behind.

    >>> can_settle({"schema_version": 1}), can_settle({"plan_version": 99}), can_settle({})
    (True, False, False)
    """
    return bool(needs) and all(_supports_need(need_name, needed_version) for need_name, needed_version in needs.items())


def _supports_need(need_name: str, needed_version: object) -> bool:
    supported_versions = {"schema_version": SCHEMA_VERSION, "plan_version": PLAN_VERSION}
    if need_name in supported_versions:
        return isinstance(needed_version, int) and needed_version <= supported_versions[need_name]
    return need_name == "operation" and needed_version in _WITHOUT_COMMIT


def _record_and_retire(store: Store, intent: Intent, kind: OutcomeKind, error: str | None = None) -> RecoveryRecord:
    outcome = record_outcome(store, intent, kind, error)
    intents.retire(store, intent)
    return outcome


def _finish_rename(store: Store, intent: Intent) -> RecoveryRecord:
    try:
        finish_rename(store, intent)
    except NameNotVisibleError as error:  # the rename failed, and the branch keeps its old name
        return _record_and_retire(store, intent, "discarded", error.message)
    except (AlreadyExists, NotFound):  # the name is taken, or the branch no longer exists
        return _record_and_retire(store, intent, "discarded")
    return _record_and_retire(store, intent, "finished")


def _finish_publish(store: Store, intent: Intent) -> RecoveryRecord | None:
    branch_state = _repair_and_load_branch(store, intent)
    confirmation = intents.read_confirmation(store, intent)
    if confirmation is None:
        _retire_finished_or_raise(branch_state, intent)
        return None
    _check_plan_version(intent, confirmation)
    recorded: list[RecoveryRecord] = []

    def read_confirmed_plan(txn: WriteTxn) -> PublishPlan:
        plan = _read_plan(intent, confirmation, txn)
        _check_staged_files(store, intent, plan)
        return plan

    try:
        finish_confirmed(
            branch_state, intent, read_confirmed_plan, lambda kind: recorded.append(record_outcome(store, intent, kind))
        )
    except ClientError:
        if not recorded:  # if the operation was refused, the refusal is already recorded
            raise
    return recorded[0] if recorded else None


def _repair_and_load_branch(store: Store, intent: Intent) -> BranchState:
    """Load an operation's branch, setting aside torn versions, which were never acknowledged."""
    branch_state = branch_state_of(store, intent.branch, intent.branch_ulid)
    try:
        branch_state.refresh()
    except TornVersionError:
        set_aside_torn_versions(store, intent.branch, intent.branch_ulid)
        branch_state.reload()
    return branch_state


def _retire_finished_or_raise(branch_state: BranchState, intent: Intent) -> None:
    """Remove an intent whose plan is missing because its operation was finished or its branch was deleted.

    In all other cases, the intent is damaged, and an error is raised so that an operator can decide.
    """
    if branch_state.store.objects.read(layout.intent_name(intent.id)) is None:
        return
    state = branch_state.refresh().state
    if state.head.closed or find_intent_commit(branch_state.store, state, intent) is not None:
        intents.retire(branch_state.store, intent)
        return
    plan_name = layout.intent_name(intent.id, "confirmed")
    message = f"operation {intent.id} must be published, but its plan, {plan_name}, is missing"
    raise StorageError(message, kind="permanent", effect="none")


def _check_plan_version(intent: Intent, confirmation: Mapping[str, Any]) -> None:
    try:
        version = plan_version(confirmation)
    except TypeError as error:
        raise _unreadable_plan_error(intent) from error
    if version > PLAN_VERSION:
        raise newer_release_error(intent.id, plan_version=version)


def _read_plan(intent: Intent, confirmation: Mapping[str, Any], txn: WriteTxn) -> PublishPlan:
    try:
        return plan_from_json(confirmation, txn)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ClientError):  # the table does not exist, which is an outcome rather than damage
            raise
        raise _unreadable_plan_error(intent) from error


def _unreadable_plan_error(intent: Intent) -> StorageError:
    plan_name = layout.intent_name(intent.id, "confirmed")
    message = f"the plan for operation {intent.id} cannot be read; {plan_name} was kept"
    return StorageError(message, kind="permanent", effect="none")


def _check_staged_files(store: Store, intent: Intent, plan: PublishPlan) -> None:
    """Raise an error if staged files are missing, because publishing would make the branch unreadable."""
    staged_names = [
        staged_name for staged_change in plan.writes.values() for staged_name in staged_change.written_files
    ]
    directories = {staged_name.rpartition("/")[0] for staged_name in staged_names}
    present_names = {listed_file.name for directory in directories for listed_file in store.objects.list(directory)}
    missing_names = [staged_name for staged_name in staged_names if staged_name not in present_names]
    if missing_names:
        message = f"files staged by operation {intent.id} are missing, including {missing_names[0]}"
        raise StorageError(message, kind="permanent", effect="none")
    if plan.adopted_tables:
        check_versions_retained(store, plan.adopted_tables.values(), intent.base_commit)


def _finish_creation(store: Store, intent: Intent, *, was_set_aside: bool) -> RecoveryRecord | None:
    # Read the ref number before the manifest. A deletion closes the manifest first and takes the
    # next number afterward, so reading in this order cannot miss a deletion.
    ref_number = refs.find_highest_number(store, _created_name(intent), ref_directory(intent))
    # The branch was created, named and deleted in the meantime, so do not restore the name.
    if _repair_and_check_closed(store, intent):
        intents.retire(store, intent)
        return None
    forked_state = _forked_state(store, intent)
    if was_set_aside and forked_state is not None:
        check_state_retained(store, forked_state, intent.base_commit)
    # An odd number means that the name is taken, either by this operation before a crash or by another operation.
    ref_number += ref_number % 2 == 0
    is_created = forked_state is not None and _create_and_name(store, intent, forked_state, ref_number)
    return _record_and_retire(store, intent, "finished" if is_created else "discarded")


def _created_name(intent: Intent) -> str:
    created_name = intent.facts.get("name")
    if not isinstance(created_name, str) or intent.created_ulid is None:
        raise StorageError(
            f"operation {intent.id} does not record the name and ULID of the new object",
            kind="permanent",
            effect="none",
        )
    return created_name


def _repair_and_check_closed(store: Store, intent: Intent) -> bool:
    """Return whether the branch or tag that an intent creates has already been created and deleted again."""
    created_ulid = intent.created_ulid or ""
    try:
        return read_manifest(store, created_ulid).state.head.closed
    except TornVersionError:  # the version was never acknowledged, so it is created again
        set_aside_torn_versions(store, intent.facts["name"], created_ulid)
        return False
    except GraphNotInitialized:
        return False


def _create_and_name(store: Store, intent: Intent, state: GraphState, ref_number: int) -> bool:
    try:
        resume_creation(store, intent, state, ref_number)
    except (AlreadyExists, NotFound):
        return False
    return True


def _forked_state(store: Store, intent: Intent) -> GraphState | None:
    try:
        source_state = read_manifest(store, intent.branch_ulid).state
        return state_at_commit(store, source_state, intent.base_commit)
    except NotFound:
        return None
