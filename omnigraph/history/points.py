"""Revisions: resolve a commit id, version, timestamp, tag, branch or `HEAD~n` to a snapshot.

Owns the precedence of names: a text that is not a commit id is a tag, else a branch, else a
timestamp or a version number. It resolves names only; it opens no table and changes nothing.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from omnigraph import ids
from omnigraph.errors import BranchNotFound, InputError, NotFound, SnapshotNotFound
from omnigraph.ids import is_ulid
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_text
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values.describe import describe

from . import refs
from .branches import line_behind
from .commit import Commit
from .diff import snapshot_of
from .line import Line
from .snapshot import WAYS, Snapshot, find_commit, of_state, snapshot
from .tags import list_tags, open_tag, shown_by

Named = str | int | datetime | timedelta
HEAD = "HEAD"
_DIGITS = 18  # of a number in a revision; no commit count or version number is longer


def find_point(store: Store, line: Line, near: Snapshot, point: Named) -> Snapshot:
    """Resolve a revision to a snapshot; `HEAD` stands for `head_snapshot`."""
    check_point(point)
    if isinstance(point, timedelta):
        return snapshot(store, line, ids.now() - abs(point))
    if not isinstance(point, str):
        return snapshot(store, line, point)
    name, sign, steps = point.strip().partition("~")
    line, shown = (line, near) if name == HEAD else _named(store, line, name)
    return _back(store, line, shown, point, steps or "1") if sign else shown


def check_point(point: object) -> None:
    """Raise `InputError` for a value that cannot be a revision, whatever exists in the graph."""
    if isinstance(point, bool) or not isinstance(point, str | int | datetime | timedelta):
        message = f"{describe(point)} is not a revision"
        raise InputError(message, reason="expected a name, a number or a time")


def find_commit_named(store: Store, line: Line, near: Snapshot, text: str) -> Commit:
    """Resolve a revision to a commit; given by id, its state may have been cleaned up already."""
    if is_ulid(require_text(text, "commit")):
        with suppress(SnapshotNotFound):
            return find_commit(store, line, text)[2]
    return find_point(store, line, near, text).commit


def _named(store: Store, line: Line, name: str) -> tuple[Line, Snapshot]:
    """Return the snapshot of a name, and the branch on which its ancestors are searched first."""
    if is_ulid(name):
        return line, _commit(store, line, name)
    if name and ":" not in name:  # before timestamps: a tag may well be called 2026-12-01
        found = _tag_or_branch(store, line, name)
        if found is not None:
            return found
    moment = _moment(name)
    if moment is not None:
        return line, snapshot(store, line, moment)
    if _is_number(name):
        return line, snapshot(store, line, int(name))
    if not name.startswith("manifest:"):
        raise _unknown(store, name)
    return line, snapshot(store, line, name)


def _tag_or_branch(store: Store, line: Line, name: str) -> tuple[Line, Snapshot] | None:
    """Return the snapshot of a tag or branch; None if the name is not open or just closed."""
    tag = refs.look_up(store, name, layout.TAGS)
    if tag is not None:
        with suppress(NotFound):
            return line, shown_by(store, tag)
    branch = refs.look_up(store, name)
    if branch is not None:
        with suppress(BranchNotFound):
            there = line_behind(store, branch)
            return there, of_state(store, there, there.base())
    return None


def _unknown(store: Store, name: str) -> InputError:
    known = (*refs.known_names(store), *refs.known_names(store, layout.TAGS))
    hint = did_you_mean(name, known, WAYS)
    return InputError(
        f"unknown revision {quote_name(name)}", reason="no branch and no tag", hint=hint
    )


def _commit(store: Store, line: Line, commit_id: str) -> Snapshot:
    """Open a commit of this branch, of any other branch, or one that only a tag still keeps."""
    try:
        return snapshot(store, line, commit_id)
    except SnapshotNotFound:
        for tag in list_tags(store):
            with suppress(NotFound):  # deleted since it was listed
                shown = open_tag(store, tag.name)
                if shown.log.find(commit_id) is not None:
                    return snapshot_of(shown, shown.log, commit_id)
        raise


def _back(store: Store, line: Line, shown: Snapshot, text: str, steps: str) -> Snapshot:
    """Follow first parents back from a snapshot by a number of steps."""
    if not _is_number(steps):
        raise InputError(
            f"{quote_name(text)} is not a revision", reason="expected HEAD~ and a number"
        )
    at = shown.commit_id
    for _ in range(int(steps)):
        before = shown.log.get(at).parent
        if before is None:
            raise SnapshotNotFound(f"there are fewer than {steps} commits before this one")
        at = before
    return shown if at == shown.commit_id else _commit(store, line, at)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS


def _moment(text: str) -> datetime | None:
    """Parse an ISO timestamp; None for any other text."""
    try:
        return datetime.fromisoformat(text) if text[:4].isdecimal() and "-" in text else None
    except ValueError:
        return None
