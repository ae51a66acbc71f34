"""Revision ranges: `A..B` means the commits after A, up to and including B.

This module defines the syntax of a range and the rule that A must be an ancestor of B. It only resolves names. It opens
no tables and changes nothing.
"""

from omnigraph.errors import InputError
from omnigraph.storage.store import Store
from omnigraph.values.name_rules import quote_name

from .branch_state import BranchState
from .revisions import HEAD, Revision, resolve_revision
from .snapshot import Snapshot

_RANGE_HINT = "A..B selects the commits after A, up to and including B; without B, up to the head"


def is_range(revision: Revision) -> bool:
    """Return whether a revision is a range. Names and timestamps never contain two consecutive dots.

    >>> is_range("v1..HEAD"), is_range("HEAD~2")
    (True, False)
    """
    return isinstance(revision, str) and ".." in revision


def resolve_range(
    store: Store, branch_state: BranchState, head_snapshot: Snapshot, range_text: str
) -> tuple[Snapshot, Snapshot]:
    """Return the snapshots before a range's first commit and at its last commit.

    Raises `InputError` if the text is not `A..B`, or if A is not an ancestor of B.
    """
    after_text, last_text = _split_range(range_text)
    after_snapshot, last_snapshot = (
        resolve_revision(store, branch_state, head_snapshot, revision) for revision in (after_text, last_text)
    )
    ancestors = last_snapshot.log.iter_ancestors(last_snapshot.commit_id)
    if all(commit.id != after_snapshot.commit_id for commit in ancestors):
        raise InputError(
            f"{quote_name(after_text)} is not an ancestor of {quote_name(last_text)}",
            reason="the range contains no commits",
            hint=_RANGE_HINT,
        )
    return after_snapshot, last_snapshot


def _split_range(range_text: str) -> tuple[str, str]:
    after_text, _, last_text = (part.strip() for part in range_text.partition(".."))
    if last_text.startswith("."):
        raise _not_a_range_error(range_text, "expected two dots, not three")
    if not after_text:
        raise _not_a_range_error(range_text, "expected a commit before `..`")
    return after_text, last_text or HEAD


def _not_a_range_error(range_text: str, reason: str) -> InputError:
    return InputError(f"{quote_name(range_text)} is not a range: {reason}", reason=reason, hint=_RANGE_HINT)
