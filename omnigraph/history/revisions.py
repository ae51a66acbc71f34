"""Resolve revisions to snapshots.

A revision is a commit id, a version, a time, a tag, a branch, or an ancestor such as `HEAD~2^`. A string is interpreted
as the first of these that matches: a full commit id, a tag, a branch, a time, a version number, or the beginning of a
commit id. A warning is issued if a tag or branch hides another interpretation. This module only resolves names. It
opens no tables and changes nothing.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from omnigraph.errors import AmbiguousRevision, BranchNotFound, InputError, NotFound, SnapshotNotFound
from omnigraph.errors.caller_warning import warn_caller
from omnigraph.errors.counts import format_count
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.describe_value import describe
from omnigraph.values.moments import parse_moment
from omnigraph.values.name_rules import quote_name, require_text

from . import refs
from .branch_state import BranchState
from .branches import open_ref
from .commit import Commit
from .commit_prefixes import expand_commit_prefix, find_commits_by_prefix, is_commit_prefix
from .origin_record import RefKind
from .snapshot import REVISION_HINT, Snapshot, find_commit, load_snapshot, manifest_snapshot
from .tags import list_tags, open_tag, tag_snapshot

Revision = str | int | datetime | timedelta
HEAD = "HEAD"
_MAX_DIGITS = 18  # maximum digits of a number in a revision; no commit count or version number has more
_STEPS_PATTERN = re.compile(rf"(?:[~^][0-9]{{0,{_MAX_DIGITS}}})+")
_STEP_PATTERN = re.compile(r"([~^])([0-9]*)")


def resolve_revision(store: Store, branch_state: BranchState, head_snapshot: Snapshot, revision: Revision) -> Snapshot:
    """Resolve a revision to a snapshot. `HEAD` refers to `head_snapshot`."""
    check_revision_type(revision)
    if isinstance(revision, timedelta):
        return load_snapshot(store, branch_state, clock_and_ids.now() - abs(revision))
    if not isinstance(revision, str):
        return load_snapshot(store, branch_state, revision)
    name, steps = _split_steps(revision.strip())
    branch_state, start_snapshot = (
        (branch_state, head_snapshot) if name == HEAD else _resolve_name(store, branch_state, name)
    )
    return _follow_steps(store, branch_state, start_snapshot, steps) if steps else start_snapshot


def _split_steps(revision_text: str) -> tuple[str, str]:
    """Split a revision into a name and the steps that lead from the named commit to an ancestor.

    >>> _split_steps("HEAD~2^"), _split_steps("v1")
    (('HEAD', '~2^'), ('v1', ''))
    """
    name = re.split("[~^]", revision_text, maxsplit=1)[0]
    steps = revision_text[len(name) :]
    if steps and _STEPS_PATTERN.fullmatch(steps) is None:
        reason = "expected steps such as HEAD~2 or HEAD^"
        raise InputError(f"{quote_name(revision_text)} is not a revision", reason=reason)
    return name, steps


def check_revision_type(revision: object) -> None:
    """Raise `InputError` for a value that cannot be a revision in any graph."""
    if isinstance(revision, bool) or not isinstance(revision, str | int | datetime | timedelta):
        message = f"{describe(revision)} is not a revision"
        raise InputError(message, reason="expected a name, a number or a time")


def resolve_commit(store: Store, branch_state: BranchState, head_snapshot: Snapshot, revision_text: str) -> Commit:
    """Resolve a revision to a commit. If a commit is given by its id, a cleanup may already have removed its state."""
    if is_ulid(require_text(revision_text, "commit")):
        with suppress(SnapshotNotFound):
            return find_commit(store, branch_state, revision_text)[2]
    return resolve_revision(store, branch_state, head_snapshot, revision_text).commit


def _resolve_name(store: Store, branch_state: BranchState, revision_name: str) -> tuple[BranchState, Snapshot]:
    """Return the snapshot for a name, and the branch whose log to search first for the snapshot's ancestors."""
    if is_ulid(revision_name):
        return branch_state, _find_commit_snapshot(store, branch_state, revision_name)
    if revision_name and ":" not in revision_name:
        named_snapshot = _resolve_tag_or_branch(store, branch_state, revision_name)
        if named_snapshot is not None:
            return named_snapshot
    moment = parse_moment(revision_name, clock_and_ids.now())
    if moment is not None:
        return branch_state, load_snapshot(store, branch_state, moment)
    if _is_version(revision_name):
        return branch_state, load_snapshot(store, branch_state, int(revision_name))
    if revision_name.startswith("manifest:"):
        return branch_state, load_snapshot(store, branch_state, revision_name)
    commit_id = expand_commit_prefix(store, branch_state, revision_name) if is_commit_prefix(revision_name) else None
    if commit_id is None:
        raise _unknown_revision_error(store, revision_name)
    return branch_state, _find_commit_snapshot(store, branch_state, commit_id)


def _resolve_tag_or_branch(
    store: Store, branch_state: BranchState, ref_name: str
) -> tuple[BranchState, Snapshot] | None:
    """Return the snapshot of a tag or branch, or None if the name is not in use or was just released."""
    tag_ref = refs.find_open_ref(store, ref_name, layout.TAGS)
    branch_ref = refs.find_open_ref(store, ref_name)
    if tag_ref is not None:
        with suppress(NotFound):
            snapshot = tag_snapshot(store, tag_ref)
            _warn_if_ambiguous(store, branch_state, ref_name, ["tag", *(["branch"] if branch_ref is not None else [])])
            return branch_state, snapshot
    if branch_ref is not None:
        with suppress(BranchNotFound):
            named_branch = open_ref(store, branch_ref)
            snapshot = manifest_snapshot(store, named_branch, named_branch.last_known())
            _warn_if_ambiguous(store, branch_state, ref_name, ["branch"])
            return named_branch, snapshot
    return None


def warn_if_name_is_ambiguous(ref_name: str, name_kind: str) -> None:
    """Warn if a new branch or tag hides a time or a version number with the same spelling."""
    if parse_moment(ref_name, clock_and_ids.now()) is not None:
        other_reading = "time"
    elif _is_version(ref_name):
        other_reading = "version number"
    else:
        return
    message = (
        f"{name_kind} name {quote_name(ref_name)} is also a {other_reading}; as a revision, it means the {name_kind}"
    )
    warn_caller(message, AmbiguousRevision)


def warn_if_name_is_shared(ref_name: str, name_kind: RefKind, numbers_by_name: Mapping[str, int]) -> None:
    """Warn if a new branch has the same name as a tag, or a new tag has the same name as a branch.

    `numbers_by_name` maps each name of the other kind to its highest ref number.
    """
    if numbers_by_name.get(ref_name, 0) % 2 == 0:
        return
    other_kind = "branch" if name_kind == "tag" else "tag"
    message = f"{name_kind} name {quote_name(ref_name)} is also a {other_kind}; as a revision, it means the tag"
    warn_caller(message, AmbiguousRevision)


def _warn_if_ambiguous(store: Store, branch_state: BranchState, ref_name: str, readings: list[str]) -> None:
    """Warn if a name can be read in several ways. The first entry in `readings` is the reading that is used."""
    if parse_moment(ref_name, clock_and_ids.now()) is not None:
        readings.append("time")
    if _is_version(ref_name):
        readings.append("version number")
    # All current commit ids begin with 0, so most names need no search.
    if (
        ref_name.startswith("0")
        and is_commit_prefix(ref_name)
        and find_commits_by_prefix(store, branch_state, ref_name)
    ):
        readings.append("commit id")
    if len(readings) > 1:
        other_readings = " and a ".join(readings[1:])
        message = (
            f"revision {quote_name(ref_name)} is both a {readings[0]} and a {other_readings}; using the {readings[0]}"
        )
        warn_caller(message, AmbiguousRevision)


def _unknown_revision_error(store: Store, revision_name: str) -> InputError:
    existing_names = (*refs.try_list_open_names(store), *refs.try_list_open_names(store, layout.TAGS))
    hint = did_you_mean(revision_name, existing_names, REVISION_HINT)
    message = f"unknown revision {quote_name(revision_name)}"
    return InputError(message, reason="no branch or tag has this name", hint=hint)


def _find_commit_snapshot(store: Store, branch_state: BranchState, commit_id: str) -> Snapshot:
    """Open the snapshot at a commit that is on this or another branch, or that only a tag retains."""
    try:
        return load_snapshot(store, branch_state, commit_id)
    except SnapshotNotFound:
        for tag in list_tags(store):
            with suppress(NotFound):  # the tag was deleted after it was listed
                tagged = open_tag(store, tag.name)
                if tagged.log.find(commit_id) is not None:
                    from .diff import snapshot_at

                    return snapshot_at(tagged, tagged.log, commit_id)
        raise


def _follow_steps(store: Store, branch_state: BranchState, start_snapshot: Snapshot, steps: str) -> Snapshot:
    """Follow steps to an ancestor: `~N` is the N-th first parent, `^N` is the N-th parent, and `^0` changes nothing."""
    commit_id = start_snapshot.commit_id
    for kind, digits in _STEP_PATTERN.findall(steps):
        number = int(digits or "1")
        parent_numbers = [1] * number if kind == "~" else [number] if number else []
        for parent_number in parent_numbers:
            commit_id = _find_parent(start_snapshot, commit_id, parent_number, number)
    return (
        start_snapshot
        if commit_id == start_snapshot.commit_id
        else _find_commit_snapshot(store, branch_state, commit_id)
    )


def _find_parent(snapshot: Snapshot, commit_id: str, parent_number: int, step_count: int) -> str:
    parents = snapshot.log.get(commit_id).parents
    if parent_number <= len(parents):
        return parents[parent_number - 1]
    if parent_number > 1:
        raise SnapshotNotFound(f"commit {commit_id} has no parent number {parent_number}")
    raise SnapshotNotFound(f"there are fewer than {format_count(step_count, 'commit')} before this commit")


def _is_version(text: str) -> bool:
    """Return whether a string is a version number. A long string of digits with a leading zero is a commit id."""
    is_number = text.isdecimal() and len(text) <= _MAX_DIGITS
    return is_number and not (text.startswith("0") and is_commit_prefix(text))
