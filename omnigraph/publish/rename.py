"""Rename a branch: claim the new name, verify it, and then release the old name.

Both names point to the same manifest, so handles that are already open are not affected. An intent records the rename.
After a crash between claiming and releasing, both names exist, and the next process that opens the graph for writing
releases the old one. If several renames of a branch run concurrently, the one that releases the old name wins. The old
name must not be released before the new name is verified to point to the branch. Otherwise, the branch would become
unreachable if the store lost the new name.
"""

from collections.abc import Mapping

from omnigraph.errors import AlreadyExists, BranchNotFound, ConcurrentCommit, InputError, NotFound, StorageError
from omnigraph.history import name_conflicts, refs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.manifest import read_manifest
from omnigraph.history.refs import Ref
from omnigraph.history.revisions import warn_if_name_is_ambiguous
from omnigraph.publish.branch_lifecycle import conflicting_names, next_ref_number
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors, failures_with_effect
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from . import intent as intents
from .intent import Intent
from .recovery_failure import judge_failure

RENAME = "branch_rename"
_INTENT_PARTS = ("json", "verdict")


class NameNotVisibleError(StorageError):
    """The ref object was written, but the store does not return it, so the branch keeps its old name."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "choose a different name; the branch still has its old name"


def rename_branch(store: Store, name: str, requested_name: str, *, actor: str | None = None) -> BranchState:
    """Rename a branch. Open handles keep working, regardless of the name that they were opened with.

    Raises `BranchNotFound` if the branch does not exist, and `AlreadyExists` if the new name exists or conflicts with
    an existing name.
    """
    old_name, new_name = name_conflicts.strip_name(name), name_conflicts.check_new_ref_name(requested_name)
    if old_name == layout.MAIN:
        raise InputError("'main' cannot be renamed", reason="main is the default branch")
    if old_name == new_name:
        raise AlreadyExists(f"branch '{old_name}' already has that name", branch=old_name)
    warn_if_name_is_ambiguous(new_name, "branch")
    with as_storage_errors("none"):
        head_commit_id = open_branch(store, old_name).last_known().state.head.commit_id
        old_ref = refs.find_ref(store, old_name)
        new_number = next_ref_number(store, new_name, old_name)
        intent = _build_rename_intent(old_ref, new_name, new_number, head_commit_id, actor)
        intents.arm(store, intent)
    with failures_with_effect("unknown"):
        if intents.decide(store, intent, "publish") != "publish":
            raise ConcurrentCommit(f"renaming '{old_name}' took too long and was abandoned")
    _finish_own_rename(store, intent)
    with failures_with_effect("unknown"):
        return open_branch(store, new_name)


def _finish_own_rename(store: Store, intent: Intent) -> None:
    """Finish a rename that this process started, and remove the intent as soon as the outcome is known."""
    try:
        with as_storage_errors("unknown"):
            finish_rename(store, intent)
    except (AlreadyExists, NotFound, NameNotVisibleError):
        intents.retire(store, intent, _INTENT_PARTS)
        raise
    except Exception as error:
        is_unchanged = judge_failure(error) == "for_good" and _has_old_name_only(store, intent)
        if isinstance(error, StorageError):
            error.effect = "none" if is_unchanged else "unknown"
        if is_unchanged:
            intents.retire(store, intent, _INTENT_PARTS)
        raise
    intents.retire(store, intent, _INTENT_PARTS)


def finish_rename(store: Store, intent: Intent) -> None:
    """Claim the new name and release the old name.

    Several processes may call this function at the same time, because completed steps are skipped. If the rename is
    impossible, the new name is released again, the old name stays unchanged, and `AlreadyExists`, `BranchNotFound` or
    `NameNotVisibleError` is raised.
    """
    old_ref, new_ref = rename_refs(intent)
    refs.create_ref_object(store, new_ref, {"nonce": intent.id})
    try:
        _check_new_name(store, old_ref, new_ref)
    except (AlreadyExists, NotFound, NameNotVisibleError):
        refs.close_name(store, new_ref)
        raise
    if not refs.close_renamed_name(store, old_ref, new_ref.name, intent.id):
        refs.close_name(store, new_ref)
        raise BranchNotFound(f"branch '{old_ref.name}' was renamed or deleted", branch=old_ref.name)


def _check_new_name(store: Store, old_ref: Ref, new_ref: Ref) -> None:
    """Raise an error if the new name now conflicts with another name, or if the branch has been deleted.

    Also check that the new name points to the branch, unless the old name has already been released.
    """
    highest_numbers = refs.list_highest_numbers(store)
    if highest_numbers.get(old_ref.name, 0) > old_ref.number:
        return  # the old name was closed either by this rename or by another one, which `close_renamed_name` detects
    name_conflicts.check_disjoint(new_ref.name, conflicting_names(store, new_ref.name, highest_numbers, old_ref.name))
    if read_manifest(store, old_ref.ulid).state.head.closed:
        raise refs.name_not_found_error(store, old_ref.name)
    if highest_numbers.get(new_ref.name, 0) > new_ref.number:
        _check_named_elsewhere(store, old_ref, highest_numbers)
    elif not refs.is_ref_visible(store, new_ref):
        raise NameNotVisibleError(
            f"the name '{new_ref.name}' was written, but the store does not return it;"
            f" the branch is still called '{old_ref.name}'"
        )


def _check_named_elsewhere(store: Store, old_ref: Ref, highest_numbers: Mapping[str, int]) -> None:
    """Raise an error unless a third name points to the branch. The new name must already have been released."""
    for open_name, number in highest_numbers.items():
        if number % 2 and open_name != old_ref.name:
            ref = refs.read_ref(store, open_name, number)
            if ref is not None and ref.ulid == old_ref.ulid:
                return
    raise BranchNotFound(f"the rename of '{old_ref.name}' was undone", branch=old_ref.name)


def _has_old_name_only(store: Store, intent: Intent) -> bool:
    """Return True if it is certain that a failed rename has changed nothing."""
    old_ref, new_ref = rename_refs(intent)
    try:
        return refs.is_ref_visible(store, old_ref) and not _may_be_open(store, new_ref)
    except StorageError:
        return False


def _may_be_open(store: Store, ref: Ref) -> bool:
    """Return whether a name may be in use. A name that the store rejects cannot be in use."""
    try:
        return refs.find_open_ref(store, ref.name, ref.directory) is not None
    except Exception as error:
        return judge_failure(error) != "for_good"


def rename_refs(intent: Intent) -> tuple[Ref, Ref]:
    """Return the old and the new ref for the branch that an intent renames."""
    facts = intent.facts
    origin_members = facts["parent"], facts["fork_commit"]
    old_ref = Ref(intent.branch, intent.branch_ulid, facts["old_number"], *origin_members)
    return old_ref, Ref(facts["name"], intent.branch_ulid, facts["number"], *origin_members)


def _build_rename_intent(
    old_ref: Ref, new_name: str, new_number: int, head_commit_id: str, actor: str | None
) -> Intent:
    return Intent(
        id=clock_and_ids.new_ulid(),
        operation=RENAME,
        branch=old_ref.name,
        branch_ulid=old_ref.ulid,
        base_commit=head_commit_id,
        created_at=clock_and_ids.now_micros(),
        actor=actor,
        facts={
            "name": new_name,
            "number": new_number,
            "old_number": old_ref.number,
            "parent": old_ref.parent,
            "fork_commit": old_ref.fork_commit,
        },
    )
