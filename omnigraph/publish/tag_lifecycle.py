"""Create and delete tags.

Like a branch, a tag is created under an intent, because a cleanup may be about to remove the tagged commit. Deletion
closes the manifest first, so a crashed creation cannot restore the tag.
"""

from omnigraph.errors import AlreadyExists, NotFound
from omnigraph.history import name_conflicts, refs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.revisions import warn_if_name_is_ambiguous, warn_if_name_is_shared
from omnigraph.history.tags import Tag, find_branch_with_commit, load_open_manifest
from omnigraph.publish import branch_lifecycle
from omnigraph.publish.intent import Intent
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids


def create_tag(
    store: Store,
    name: str,
    source_branch: BranchState,
    *,
    commit_id: str | None = None,
    actor: str | None = None,
    message: str | None = None,
) -> Tag:
    """Create a tag for a branch's head or for a past commit on any branch.

    Raises `HistoryReclaimed` if a cleanup has removed the state at that commit.
    """
    tag_name = name_conflicts.check_new_ref_name(name, "tag")
    warn_if_name_is_ambiguous(tag_name, "tag")
    with as_storage_errors("none"):
        ref_number = free_tag_number(store, tag_name)
        if commit_id is not None:
            source_branch = find_branch_with_commit(store, source_branch, commit_id)

        def build_intent(base_commit_id: str) -> Intent:
            return _build_tag_intent(tag_name, source_branch, base_commit_id, actor, message)

        intent, state = branch_lifecycle.arm_creation(store, source_branch, commit_id, build_intent)
    tag_state = branch_lifecycle.execute_creation(store, intent, state, ref_number)
    created_at = intent.created_at
    return Tag(tag_name, intent.base_commit, source_branch.name, tag_state.ulid, created_at, actor, message)


def delete_tag(store: Store, name: str) -> None:
    """Delete a tag. The tagged commit is kept as long as a branch, another tag or the retention period requires it."""
    branch_lifecycle.close_ref(store, refs.find_ref(store, name_conflicts.strip_name(name, "tag"), layout.TAGS))


def free_tag_number(store: Store, new_name: str) -> int:
    """Return the ref number for a new tag.

    If a crashed deletion did not release the name, the number that the release would have used is skipped.
    """
    numbers_by_directory = refs.list_numbers_by_directory(store)
    highest_numbers = numbers_by_directory[layout.TAGS]
    number = highest_numbers.get(new_name, 0)
    if number % 2 and _is_tag_open(store, new_name, number):
        raise AlreadyExists(f"tag '{new_name}' already exists", what=f"tag '{new_name}'")
    open_tag_names = (tag_name for tag_name, number in highest_numbers.items() if number % 2)
    case_variant = name_conflicts.find_case_variant(new_name, open_tag_names)
    if case_variant is not None and _is_tag_open(store, case_variant, highest_numbers[case_variant]):
        message = f"tag '{new_name}' differs only in case from tag '{case_variant}'"
        raise AlreadyExists(message, what=f"tag '{case_variant}'")
    warn_if_name_is_shared(new_name, "tag", numbers_by_directory[layout.REFS])
    return number + 1 + number % 2


def _is_tag_open(store: Store, tag_name: str, number: int) -> bool:
    ref = refs.read_ref(store, tag_name, number, layout.TAGS)
    if ref is None:
        return True
    try:
        load_open_manifest(store, ref)
    except NotFound:
        return False
    return True


def _build_tag_intent(
    tag_name: str, source_branch: BranchState, commit_id: str, actor: str | None, message: str | None
) -> Intent:
    return Intent(
        id=clock_and_ids.new_ulid(),
        operation=branch_lifecycle.TAG_CREATE,
        branch=source_branch.name,
        branch_ulid=source_branch.ulid,
        base_commit=commit_id,
        created_at=clock_and_ids.now_micros(),
        actor=actor,
        message=message,
        created_ulid=clock_and_ids.new_ulid(),
        facts={"name": tag_name},
    )
