"""Tags: names for single commits that stay readable whatever happens to branches.

A tag is stored like a branch: a manifest of its own behind a numbered name. It is never published
to again. Deleting it closes its manifest first, so a crashed creation cannot bring the tag back.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import AlreadyExists, GraphNotInitialized, NotFound, SnapshotNotFound
from omnigraph.publish.intent import Intent
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError, as_storage_errors
from omnigraph.storage.store import Store
from omnigraph.values import ids

from . import branches, names, refs
from .branch_state import BranchState, branch_state_of
from .log import HistoryLog
from .manifest import LoadedManifest, read_manifest
from .missing_table_files import missing_manifest_error
from .refs import Ref
from .snapshot import Snapshot, find_commit

_log = logging.getLogger("omnigraph")


@dataclass(frozen=True, slots=True)
class Tag:
    """A named commit: the branch it was found on, and who tagged it, when and why."""

    name: str
    commit_id: str
    branch: str | None
    ulid: str
    created_at: int = 0
    actor: str | None = None
    message: str | None = None


def create_tag(
    store: Store,
    name: str,
    source_branch: BranchState,
    *,
    commit_id: str | None = None,
    actor: str | None = None,
    message: str | None = None,
) -> Tag:
    """Tag the head of a branch, or a past commit of any branch.

    Raises `HistoryReclaimed` for a commit whose state was cleaned up.
    """
    tag_name = names.check_new_ref_name(name, "tag")
    with as_storage_errors("none"):
        ref_number = free_tag_number(store, tag_name)
        if commit_id is not None:
            source_branch = find_branch_with_commit(store, source_branch, commit_id)

        def build_intent(base_commit_id: str) -> Intent:
            return _build_tag_intent(tag_name, source_branch, base_commit_id, actor, message)

        intent, state = branches.arm_creation(store, source_branch, commit_id, build_intent)
    tag_state = branches.execute_creation(store, intent, state, ref_number)
    created_at = intent.created_at
    return Tag(
        tag_name, intent.base_commit, source_branch.name, tag_state.ulid, created_at, actor, message
    )


def find_branch_with_commit(store: Store, branch_state: BranchState, commit_id: str) -> BranchState:
    """Find the branch whose log has a commit, this one first; or a tag that alone keeps it.

    The state of a tag carries the name of the branch it was created from; nothing publishes to it.
    """
    try:
        return find_commit(store, branch_state, commit_id)[0]
    except SnapshotNotFound:
        for tag in list_tags(store):
            with suppress(NotFound):  # deleted since the listing
                ref = refs.find_ref(store, tag.name, layout.TAGS)
                if (
                    HistoryLog(store, _load_open_manifest(store, ref).state).find(commit_id)
                    is not None
                ):
                    return branch_state_of(store, tag.branch or layout.MAIN, tag.ulid)
        raise


def list_tags(store: Store) -> list[Tag]:
    """List all tags by name: one listing, one read each. Damaged ref objects are only logged."""
    highest_numbers = refs.list_highest_numbers(store, layout.TAGS)
    tags = [
        _read_tag_unless_damaged(store, tag_name, number)
        for tag_name, number in highest_numbers.items()
        if number % 2
    ]
    return sorted((tag for tag in tags if tag is not None), key=lambda tag: tag.name)


def _read_tag_unless_damaged(store: Store, tag_name: str, number: int) -> Tag | None:
    try:
        return _read_tag(store, tag_name, number)
    except DamagedError as error:
        _log.warning("tag '%s' was skipped: %s", tag_name, error.message)
        return None


def find_tag(store: Store, name: str) -> Tag:
    """Find a tag by name; raise `NotFound` if there is none."""
    tag_name = names.strip_name(name, "tag")
    number = refs.find_highest_number(store, tag_name, layout.TAGS)
    tag = _read_tag(store, tag_name, number) if number % 2 else None
    if tag is None:
        raise refs.name_not_found_error(
            tag_name, layout.TAGS, refs.try_list_open_names(store, layout.TAGS)
        )
    return tag


def open_tag(store: Store, name: str) -> Snapshot:
    """Open the snapshot of a tag; a cleanup never removes what a tag references."""
    return tag_snapshot(store, refs.find_ref(store, names.strip_name(name, "tag"), layout.TAGS))


def tag_snapshot(store: Store, ref: Ref) -> Snapshot:
    """Open the snapshot behind the ref of a tag."""
    manifest = _load_open_manifest(store, ref)
    head_commit_id, state = manifest.state.head.commit_id, manifest.state
    log = HistoryLog(store, state)
    manifest_version = log.get(head_commit_id).manifest_version
    branch_name = ref.parent or layout.MAIN
    return Snapshot(
        store, branch_name, head_commit_id, manifest_version, state.schema, dict(state.tables), log
    )


def delete_tag(store: Store, name: str) -> None:
    """Delete a tag; its commit stays while branches, other tags or its age retain it."""
    branches.close_ref(store, refs.find_ref(store, names.strip_name(name, "tag"), layout.TAGS))


def _load_open_manifest(store: Store, ref: Ref) -> LoadedManifest:
    """Load the manifest behind a ref; finish a deletion that crashed before it closed the name."""
    try:
        manifest = read_manifest(store, ref.ulid)
    except GraphNotInitialized as error:
        raise missing_manifest_error(store, ref) from error
    if manifest.state.head.closed:
        if not store.effects.read_only:
            refs.close_name(store, ref)
        raise refs.name_not_found_error(ref.name, ref.directory)
    return manifest


def free_tag_number(store: Store, new_name: str) -> int:
    """Return the number to create a tag under; close a name that a crashed deletion left open."""
    highest_numbers = refs.list_highest_numbers(store, layout.TAGS)
    number = highest_numbers.get(new_name, 0)
    if number % 2 and _is_tag_open(store, new_name, number):
        raise AlreadyExists(f"tag '{new_name}' already exists", what=f"tag '{new_name}'")
    open_tag_names = (tag_name for tag_name, number in highest_numbers.items() if number % 2)
    case_variant = names.find_case_variant(new_name, open_tag_names)
    if case_variant is not None and _is_tag_open(
        store, case_variant, highest_numbers[case_variant]
    ):
        message = f"tag '{new_name}' differs only in case from tag '{case_variant}'"
        raise AlreadyExists(message, what=f"tag '{case_variant}'")
    return number + 1 + number % 2


def _is_tag_open(store: Store, tag_name: str, number: int) -> bool:
    ref = refs.read_ref(store, tag_name, number, layout.TAGS)
    if ref is None:
        return True
    try:
        _load_open_manifest(store, ref)
    except NotFound:
        return False
    return True


def _build_tag_intent(
    tag_name: str,
    source_branch: BranchState,
    commit_id: str,
    actor: str | None,
    message: str | None,
) -> Intent:
    return Intent(
        id=ids.new_ulid(),
        operation=branches.TAG_CREATE,
        branch=source_branch.name,
        branch_ulid=source_branch.ulid,
        base_commit=commit_id,
        created_at=ids.now_micros(),
        actor=actor,
        message=message,
        created_ulid=ids.new_ulid(),
        facts={"name": tag_name},
    )


def _read_tag(store: Store, tag_name: str, number: int) -> Tag | None:
    ref = refs.read_ref(store, tag_name, number, layout.TAGS)
    if ref is None or ref.fork_commit is None:
        return None
    members = store.objects.read_json(layout.ref_name(tag_name, number, layout.TAGS)) or {}
    creation_details = (
        members.get("created_at", 0),
        members.get("actor_id"),
        members.get("message"),
    )
    return Tag(tag_name, ref.fork_commit, ref.parent, ref.ulid, *creation_details)
