"""Create, name and delete branches at a cost that does not depend on table size.

A branch consists of a manifest dataset and a name. Creating a branch requires an intent, because the new branch refers
to states that a cleanup may be about to remove. Deleting a branch first publishes the closing version of its manifest
and then releases its name.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from omnigraph.errors import (
    AlreadyExists,
    BranchBusy,
    BranchNotFound,
    ConcurrentCommit,
    InputError,
    InternalError,
    NotFound,
    StorageError,
)
from omnigraph.history import name_conflicts, refs
from omnigraph.history.branch_state import BranchState, branch_state_of
from omnigraph.history.branches import open_branch, state_at_commit
from omnigraph.history.delete_queue import check_head_not_queued, check_state_retained
from omnigraph.history.manifest import LoadedManifest, create_manifest, manifest_exists, read_manifest, sync_manifest
from omnigraph.history.origin_record import Origin
from omnigraph.history.refs import Ref
from omnigraph.history.revisions import warn_if_name_is_ambiguous, warn_if_name_is_shared
from omnigraph.history.schemas import dropped_history_error, read_erased_directories
from omnigraph.history.state import BranchHead, GraphState
from omnigraph.publish import intent as intents
from omnigraph.publish.closing_version import publish_closing_version
from omnigraph.publish.intent import Intent
from omnigraph.publish.intent_outcomes import record_outcome
from omnigraph.publish.recovery_failure import judge_failure
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors, failures_with_effect
from omnigraph.storage.manifest_cell import UnsyncedError
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

_MAX_FORK_ATTEMPTS = 4


# The parts to write for the intent of a creation. The intent has no lease, so it is valid only while its owner is
# alive.
_INTENT_PARTS = ("json", "verdict")


TAG_CREATE = "tag_create"


CREATE_OPERATIONS = ("branch_create", TAG_CREATE)  # operations whose intents create and name a manifest


IntentFactory = Callable[[str], Intent]  # a function that builds a creation intent from its starting commit


def create_branch(
    store: Store,
    branch_name: str,
    source_branch: BranchState,
    *,
    commit_id: str | None = None,
    actor: str | None = None,
) -> BranchState:
    """Create a branch from the head of `source_branch`, or from a commit in its log."""
    clean_name = name_conflicts.check_new_ref_name(branch_name)
    warn_if_name_is_ambiguous(clean_name, "branch")
    with as_storage_errors("none"):
        ref_number = next_ref_number(store, clean_name)
        intent, state = arm_creation(
            store,
            source_branch,
            commit_id,
            lambda base_commit_id: _branch_intent(clean_name, source_branch, base_commit_id, actor),
        )
    return execute_creation(store, intent, state, ref_number)


def execute_creation(store: Store, intent: Intent, state: GraphState, ref_number: int) -> BranchState:
    """Record the intent's verdict and create the branch or tag, or return it if another process has created it."""
    branch_state = branch_state_of(store, intent.facts["name"], _created_ulid(intent))
    with failures_with_effect("unknown"):
        if intents.decide(store, intent, "publish") != "publish":
            return _find_created_elsewhere(store, branch_state, ref_directory(intent))
        _create_and_name(store, intent, branch_state, state, ref_number)
    return branch_state


def ref_directory(intent: Intent) -> str:
    """Return the ref directory for the branch or tag that an intent creates."""
    return layout.TAGS if intent.operation == TAG_CREATE else layout.REFS


def _create_and_name(
    store: Store, intent: Intent, branch_state: BranchState, state: GraphState, ref_number: int
) -> None:
    """Write the manifest, claim the name, and remove the intent once the outcome is known."""
    manifest_written = False
    try:
        branch_state.advance(_write_manifest(store, intent, state, ref_number))
        manifest_written = True
        publish_name(store, intent, ref_number)
    except (AlreadyExists, NotFound):
        _discard_creation(store, intent)
        raise
    except BaseException as error:
        # Until this process takes the name, nothing refers to the manifest, and no other process creates a ref to it.
        if not manifest_written or _is_name_rejected(store, intent, error):
            _discard_creation(store, intent)
        raise
    intents.retire(store, intent, _INTENT_PARTS)


def _is_name_rejected(store: Store, intent: Intent, error: BaseException) -> bool:
    """Return whether the store permanently rejects the name, so that no retry can succeed."""
    if not isinstance(error, Exception) or judge_failure(error) != "for_good":
        return False
    try:
        ref = refs.find_open_ref(store, intent.facts["name"], ref_directory(intent))
    except Exception as failure:
        return judge_failure(failure) == "for_good"
    return ref is None or ref.ulid != intent.created_ulid


def _discard_creation(store: Store, intent: Intent) -> None:
    """Record that no ref points to the manifest, and then remove the intent.

    Without this record, the manifest could not be distinguished from one whose ref object was lost. If the record
    cannot be written, the intent remains, and recovery discards the creation.
    """
    with suppress(StorageError, OSError):
        record_outcome(store, intent, "discarded")
        intents.retire(store, intent, _INTENT_PARTS)


def _find_created_elsewhere(store: Store, branch_state: BranchState, directory: str) -> BranchState:
    """Return the branch if its ref shows that another process completed the creation. Otherwise, raise an error."""
    with suppress(NotFound):
        if refs.find_ref(store, branch_state.name, directory).ulid == branch_state.ulid:
            return branch_state
    raise ConcurrentCommit(f"creating '{branch_state.name}' took too long and was abandoned")


def _write_manifest(store: Store, intent: Intent, state: GraphState, ref_number: int) -> LoadedManifest:
    """Write a new branch's manifest, or load the one that another process wrote for this intent."""
    try:
        return create_manifest(store, _created_ulid(intent), forked_state(intent, state, ref_number))
    except UnsyncedError:
        raise
    except Exception:
        if not manifest_exists(store, _created_ulid(intent)):
            raise
        return _load_created_manifest(store, intent)


def _load_created_manifest(store: Store, intent: Intent) -> LoadedManifest:
    """Load an existing manifest and sync it, because its writer may not have synced it yet."""
    manifest = read_manifest(store, _created_ulid(intent))
    sync_manifest(manifest)
    return manifest


def resume_creation(store: Store, intent: Intent, state: GraphState, ref_number: int) -> None:
    """Resume an interrupted creation: write the manifest, then claim the name.

    Several processes may resume a creation at the same time, but only one manifest is ever written.
    """
    already_written = manifest_exists(store, _created_ulid(intent))
    manifest = (
        _load_created_manifest(store, intent) if already_written else _write_manifest(store, intent, state, ref_number)
    )
    if manifest.state.head.closed:
        raise BranchNotFound(f"'{intent.facts['name']}' was deleted in the meantime")
    publish_name(store, intent, ref_number)


def forked_state(intent: Intent, state: GraphState, ref_number: int) -> GraphState:
    """Return the first state for the branch or tag that an intent creates, including its origin record.

    `ref_number` is the number of the ref object that will name the branch or tag.
    """
    head = BranchHead(intent.base_commit, _created_ulid(intent), fork=intent.base_commit)
    origin = Origin(
        "tag" if intent.operation == TAG_CREATE else "branch",
        intent.facts["name"],
        ref_number,
        intent.id,
        intent.branch,
        intent.branch_ulid,
        intent.created_at,
        intent.actor,
        intent.message,
    )
    return replace(state, head=head, origin=origin)


def publish_name(store: Store, intent: Intent, ref_number: int) -> None:
    """Create the ref to a manifest that has already been written. A crash before this point leaves only garbage."""
    branch_name, parent_branch, fork_commit_id = (intent.facts["name"], intent.branch, intent.base_commit)
    ref = Ref(branch_name, _created_ulid(intent), ref_number, parent_branch, fork_commit_id, ref_directory(intent))
    if intent.operation == TAG_CREATE:
        _publish_tag_name(store, ref, intent)
        return
    ref_numbers = refs.open_name(store, ref)
    try:
        name_conflicts.check_disjoint(branch_name, conflicting_names(store, branch_name, ref_numbers))
    except AlreadyExists:
        # Each creator found its name free and now sees the other's conflicting name, so neither name may remain.
        publish_closing_version(store, branch_state_of(store, branch_name, ref.ulid))
        refs.close_name(store, ref)
        raise


def _publish_tag_name(store: Store, ref: Ref, intent: Intent) -> None:
    """Create a tag's ref with its author and message.

    Unlike a branch name, a tag name may begin with another name, as in `v1` and `v1/beta`. The highest ref number
    is read again before success is reported.
    """
    tag_facts = {"created_at": intent.created_at, "actor_id": intent.actor, "message": intent.message}
    refs.create_ref_object(store, ref, tag_facts)
    if refs.find_highest_number(store, ref.name, ref.directory) != ref.number:
        raise refs.name_not_found_error(store, ref.name, ref.directory)


def next_ref_number(store: Store, branch_name: str, renamed_from: str | None = None) -> int:
    """Return the ref number with which to claim a name, releasing the name first if a deletion was interrupted."""
    numbers_by_directory = refs.list_numbers_by_directory(store)
    ref_numbers = numbers_by_directory[layout.REFS]
    ref_number = ref_numbers.get(branch_name, 0)
    name_conflicts.check_disjoint(branch_name, conflicting_names(store, branch_name, ref_numbers, renamed_from))
    warn_if_name_is_shared(branch_name, "branch", numbers_by_directory[layout.TAGS])
    if ref_number % 2:
        if not _release_if_closed(store, branch_name):
            name_conflicts.check_disjoint(branch_name, [branch_name])
        ref_number += 1
    return ref_number + 1


def conflicting_names(
    store: Store, branch_name: str, ref_numbers: Mapping[str, int], renamed_from: str | None = None
) -> list[str]:
    """Return the other branch names that conflict with a name, ignoring the names of deleted branches."""
    overlapping_names = name_conflicts.find_overlapping_names(branch_name, refs.open_names_with_main(ref_numbers))
    return [
        other_name
        for other_name in overlapping_names
        if other_name not in (branch_name, renamed_from) and not _release_if_closed(store, other_name)
    ]


def _release_if_closed(store: Store, branch_name: str) -> bool:
    """Return whether the branch behind a name in use has been deleted. If so, release the name."""
    try:
        open_branch(store, branch_name)
    except BranchNotFound:
        return True
    return False


def _created_ulid(intent: Intent) -> str:
    if intent.created_ulid is None:
        raise InternalError(f"intent {intent.id} does not create a branch")
    return intent.created_ulid


def arm_creation(
    store: Store, source_branch: BranchState, commit_id: str | None, build_intent: IntentFactory
) -> tuple[Intent, GraphState]:
    """Write an intent and return it with the state that it protects.

    This succeeds even if the source branch keeps advancing.
    """
    for attempt in range(_MAX_FORK_ATTEMPTS):
        base_manifest = source_branch.last_known()
        intent = build_intent(commit_id or base_manifest.state.head.commit_id)
        intents.arm(store, intent)
        # On the last attempt, fork a busy source at the commit that the intent recorded, which still exists.
        historical = commit_id is not None or attempt == _MAX_FORK_ATTEMPTS - 1
        with suppress(_SourceMovedError):
            return intent, _load_protected_state(store, source_branch, base_manifest, intent, historical=historical)
    raise InternalError(f"branch '{source_branch.name}' could not be forked")


class _SourceMovedError(Exception):
    """The source branch advanced after its state was read and before the intent was written."""


def _branch_intent(branch_name: str, source_branch: BranchState, commit_id: str, actor: str | None) -> Intent:
    return Intent(
        id=clock_and_ids.new_ulid(),
        operation="branch_create",
        branch=source_branch.name,
        branch_ulid=source_branch.ulid,
        base_commit=commit_id,
        created_at=clock_and_ids.now_micros(),
        actor=actor,
        created_ulid=clock_and_ids.new_ulid(),
        facts={"name": branch_name},
    )


def _load_protected_state(
    store: Store, source_branch: BranchState, base_manifest: LoadedManifest, intent: Intent, *, historical: bool
) -> GraphState:
    """Return the state to fork, but first verify that the intent protects this state from cleanup."""
    try:
        if historical:
            newest = source_branch.refresh()
            state = state_at_commit(store, newest.state, intent.base_commit)
            check_state_retained(store, state, intent.base_commit)
            _check_not_erased(store, newest.state, state, intent.base_commit)
        else:
            check_head_not_queued(store, base_manifest.state, intent.base_commit)
        newest = source_branch.refresh()  # if the branch was deleted, nothing protects the data that it referenced
        if not historical:
            state = newest.state
        if newest.state.head.closed:
            raise refs.name_not_found_error(store, source_branch.name)
        if not historical and state.head != base_manifest.state.head:
            raise _SourceMovedError
        return state
    except BaseException:
        if intents.decide(store, intent, "discard") == "discard":
            intents.retire(store, intent, _INTENT_PARTS)
        raise


def _check_not_erased(store: Store, newest_state: GraphState, past_state: GraphState, commit_id: str) -> None:
    """Raise an error if a fork would restore a type that the source branch dropped together with the type's history."""
    erased_locations = read_erased_directories(store, newest_state)
    erased_key = next(
        (table_key for table_key, entry in sorted(past_state.tables.items()) if entry.location in erased_locations),
        None,
    )
    if erased_key is not None:
        raise dropped_history_error(erased_key, commit_id)


def delete_branch(
    store: Store, branch_name: str, *, current_branch: str | None = None, expected_head: str | None = None
) -> None:
    """Close a branch and release its name. Commits in other branches' logs stay readable.

    With `expected_head`, the branch is deleted only if its head is that commit, so later commits are not lost.
    """
    clean_name = name_conflicts.strip_name(branch_name)
    if clean_name == layout.MAIN:
        raise InputError("'main' cannot be deleted", reason="main is the default branch")
    if clean_name == current_branch:
        raise BranchBusy(f"branch '{clean_name}' cannot be deleted: this handle is open on it", branch=clean_name)
    close_ref(store, refs.find_ref(store, clean_name), expected_head)


def close_ref(store: Store, ref: Ref, expected_head: str | None = None) -> None:
    """Close the manifest behind a ref, and then release the ref's name. A second caller gets `NotFound`."""
    already_closed = publish_closing_version(store, branch_state_of(store, ref.name, ref.ulid), expected_head)
    with failures_with_effect("unknown"):
        refs.close_name(store, ref)
    if already_closed:
        raise refs.name_not_found_error(store, ref.name, ref.directory)
