"""Find and open tags, which point to single commits and stay readable even if branches are deleted.

A tag is stored like a branch, as a manifest behind a numbered name, but nothing is published to it after its creation.
`publish` creates and deletes tags.
"""

from contextlib import suppress

from omnigraph.errors import GraphNotInitialized, NotFound, SnapshotNotFound
from omnigraph.records.frozen import record
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store

from . import name_conflicts, refs
from .branch_state import BranchState, branch_state_of
from .commit_log import HistoryLog
from .manifest import LoadedManifest, read_manifest
from .missing_table_files import missing_manifest_error
from .refs import Ref
from .snapshot import Snapshot, find_commit


@record
class Tag:
    """A tag: a named commit, its branch, and the tag's creator, creation time and message."""

    name: str
    commit_id: str
    branch: str | None
    ulid: str
    created_at: int = 0
    actor: str | None = None
    message: str | None = None


def find_branch_with_commit(store: Store, branch_state: BranchState, commit_id: str) -> BranchState:
    """Find the branch whose log contains a commit, or a tag if only a tag retains the commit.

    `branch_state` is searched first. If only a tag retains the commit, return the tag's own state under the name of the
    branch that the tag was created from. Nothing is ever published to a tag.
    """
    try:
        return find_commit(store, branch_state, commit_id)[0]
    except SnapshotNotFound:
        for tag in list_tags(store):
            with suppress(NotFound):  # the tag was deleted after the listing
                ref = refs.find_ref(store, tag.name, layout.TAGS)
                if HistoryLog(store, load_open_manifest(store, ref).state).find(commit_id) is not None:
                    return branch_state_of(store, tag.branch or layout.MAIN, tag.ulid)
        raise


def list_tags(store: Store) -> list[Tag]:
    """List all tags by name, using one list request and one read per tag. Damaged tags are logged and skipped."""
    highest_numbers = refs.list_highest_numbers(store, layout.TAGS)
    tags = [
        _read_tag_unless_damaged(store, tag_name, number) for tag_name, number in highest_numbers.items() if number % 2
    ]
    return sorted((tag for tag in tags if tag is not None), key=lambda tag: tag.name)


def _read_tag_unless_damaged(store: Store, tag_name: str, number: int) -> Tag | None:
    try:
        return _read_tag(store, tag_name, number)
    except DamagedError as error:
        import logging

        logging.getLogger("omnigraph").warning("tag '%s' was skipped: %s", tag_name, error.message)
        return None


def find_tag(store: Store, name: str) -> Tag:
    """Find a tag by name; raise `NotFound` if it does not exist."""
    tag_name = name_conflicts.strip_name(name, "tag")
    number = refs.find_highest_number(store, tag_name, layout.TAGS)
    tag = _read_tag(store, tag_name, number) if number % 2 else None
    if tag is None:
        raise refs.name_not_found_error(store, tag_name, layout.TAGS)
    return tag


def open_tag(store: Store, name: str) -> Snapshot:
    """Open a tag's snapshot. A cleanup never removes data that a tag references."""
    return tag_snapshot(store, refs.find_ref(store, name_conflicts.strip_name(name, "tag"), layout.TAGS))


def tag_snapshot(store: Store, ref: Ref) -> Snapshot:
    """Open the snapshot that a tag's ref points to."""
    manifest = load_open_manifest(store, ref)
    head_commit_id, state = manifest.state.head.commit_id, manifest.state
    log = HistoryLog(store, state)
    manifest_version = log.get(head_commit_id).manifest_version
    branch_name = ref.parent or layout.MAIN
    return Snapshot(store, branch_name, head_commit_id, manifest_version, state.schema, dict(state.tables), log)


def load_open_manifest(store: Store, ref: Ref) -> LoadedManifest:
    """Load the manifest behind a ref, finishing a deletion that crashed before it released the name."""
    try:
        manifest = read_manifest(store, ref.ulid)
    except GraphNotInitialized as error:
        raise missing_manifest_error(store, ref) from error
    if manifest.state.head.closed:
        if not store.effects.read_only:
            refs.close_name(store, ref)
        raise refs.name_not_found_error(store, ref.name, ref.directory)
    return manifest


def _read_tag(store: Store, tag_name: str, number: int) -> Tag | None:
    ref = refs.read_ref(store, tag_name, number, layout.TAGS)
    if ref is None or ref.fork_commit is None:
        return None
    members = store.objects.read_json(layout.ref_name(tag_name, number, layout.TAGS)) or {}
    creation_details = (members.get("created_at", 0), members.get("actor_id"), members.get("message"))
    return Tag(tag_name, ref.fork_commit, ref.parent, ref.ulid, *creation_details)
