"""Revisions: resolve a commit id, version, timestamp, tag, branch or `HEAD~n` to a snapshot.

This module defines the precedence of names: a string that is not a commit id is looked up as a tag, then as a branch,
then as a timestamp or version number. It only resolves names, opens no tables, and changes nothing.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from omnigraph.errors import BranchNotFound, InputError, NotFound, SnapshotNotFound
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.describe_value import describe
from omnigraph.values.name_rules import quote_name, require_text

from . import refs
from .branch_state import BranchState
from .branches import open_ref
from .commit import Commit
from .diff import snapshot_at
from .snapshot import REVISION_HINT, Snapshot, find_commit, load_snapshot, manifest_snapshot
from .tags import list_tags, open_tag, tag_snapshot

Revision = str | int | datetime | timedelta
HEAD = "HEAD"
_MAX_DIGITS = 18  # maximum number of digits in a revision; commit counts and version numbers are always shorter


def resolve_revision(store: Store, branch_state: BranchState, head_snapshot: Snapshot, revision: Revision) -> Snapshot:
    """Resolve a revision to a snapshot; `HEAD` refers to `head_snapshot`."""
    check_revision_type(revision)
    if isinstance(revision, timedelta):
        return load_snapshot(store, branch_state, clock_and_ids.now() - abs(revision))
    if not isinstance(revision, str):
        return load_snapshot(store, branch_state, revision)
    name, tilde, step_count = revision.strip().partition("~")
    branch_state, start_snapshot = (
        (branch_state, head_snapshot) if name == HEAD else _resolve_name(store, branch_state, name)
    )
    return _step_back(store, branch_state, start_snapshot, revision, step_count or "1") if tilde else start_snapshot


def check_revision_type(revision: object) -> None:
    """Raise `InputError` for a value that cannot be a revision in any graph."""
    if isinstance(revision, bool) or not isinstance(revision, str | int | datetime | timedelta):
        message = f"{describe(revision)} is not a revision"
        raise InputError(message, reason="expected a name, a number or a time")


def resolve_commit(store: Store, branch_state: BranchState, head_snapshot: Snapshot, revision_text: str) -> Commit:
    """Resolve a revision to a commit. If the commit is given by id, its state may already have been cleaned up."""
    if is_ulid(require_text(revision_text, "commit")):
        with suppress(SnapshotNotFound):
            return find_commit(store, branch_state, revision_text)[2]
    return resolve_revision(store, branch_state, head_snapshot, revision_text).commit


def _resolve_name(store: Store, branch_state: BranchState, revision_name: str) -> tuple[BranchState, Snapshot]:
    """Return the snapshot for a name, and the branch whose log is searched first for the snapshot's ancestors."""
    if is_ulid(revision_name):
        return branch_state, _find_commit_snapshot(store, branch_state, revision_name)
    if revision_name and ":" not in revision_name:  # tried before timestamps, because a tag may be named 2026-12-01
        named_snapshot = _resolve_tag_or_branch(store, branch_state, revision_name)
        if named_snapshot is not None:
            return named_snapshot
    timestamp = _parse_timestamp(revision_name)
    if timestamp is not None:
        return branch_state, load_snapshot(store, branch_state, timestamp)
    if _is_number(revision_name):
        return branch_state, load_snapshot(store, branch_state, int(revision_name))
    if not revision_name.startswith("manifest:"):
        raise _unknown_revision_error(store, revision_name)
    return branch_state, load_snapshot(store, branch_state, revision_name)


def _resolve_tag_or_branch(
    store: Store, branch_state: BranchState, ref_name: str
) -> tuple[BranchState, Snapshot] | None:
    """Return the snapshot of a tag or branch, or None if the name is not in use or was just released."""
    tag_ref = refs.find_open_ref(store, ref_name, layout.TAGS)
    if tag_ref is not None:
        with suppress(NotFound):
            return branch_state, tag_snapshot(store, tag_ref)
    branch_ref = refs.find_open_ref(store, ref_name)
    if branch_ref is not None:
        with suppress(BranchNotFound):
            named_branch = open_ref(store, branch_ref)
            return named_branch, manifest_snapshot(store, named_branch, named_branch.last_known())
    return None


def _unknown_revision_error(store: Store, revision_name: str) -> InputError:
    existing_names = (*refs.try_list_open_names(store), *refs.try_list_open_names(store, layout.TAGS))
    hint = did_you_mean(revision_name, existing_names, REVISION_HINT)
    message = f"unknown revision {quote_name(revision_name)}"
    return InputError(message, reason="no branch or tag has this name", hint=hint)


def _find_commit_snapshot(store: Store, branch_state: BranchState, commit_id: str) -> Snapshot:
    """Open a commit that is on this branch, on any other branch, or retained only by a tag."""
    try:
        return load_snapshot(store, branch_state, commit_id)
    except SnapshotNotFound:
        for tag in list_tags(store):
            with suppress(NotFound):  # deleted since it was listed
                tagged = open_tag(store, tag.name)
                if tagged.log.find(commit_id) is not None:
                    return snapshot_at(tagged, tagged.log, commit_id)
        raise


def _step_back(
    store: Store, branch_state: BranchState, start_snapshot: Snapshot, revision_text: str, step_count: str
) -> Snapshot:
    """Follow first parents from a snapshot for a given number of steps."""
    if not _is_number(step_count):
        raise InputError(f"{quote_name(revision_text)} is not a revision", reason="expected HEAD~ and a number")
    commit_id = start_snapshot.commit_id
    for _ in range(int(step_count)):
        parent_id = start_snapshot.log.get(commit_id).parent
        if parent_id is None:
            raise SnapshotNotFound(f"there are fewer than {step_count} commits before this commit")
        commit_id = parent_id
    return (
        start_snapshot
        if commit_id == start_snapshot.commit_id
        else _find_commit_snapshot(store, branch_state, commit_id)
    )


def _is_number(digits: str) -> bool:
    return digits.isdecimal() and len(digits) <= _MAX_DIGITS


def _parse_timestamp(timestamp_text: str) -> datetime | None:
    """Parse an ISO timestamp, or return None for any other string."""
    try:
        return (
            datetime.fromisoformat(timestamp_text) if timestamp_text[:4].isdecimal() and "-" in timestamp_text else None
        )
    except ValueError:
        return None
