"""Recognize a repeated write by its idempotency key.

Each attempt looks up the key in the branch state, so a repeated write that races with the original is also recognized.
At most 4,096 first-parent commits from the last 24 hours are searched. A write without a key needs no lookup.
"""

from itertools import islice

from omnigraph.errors import InputError
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.state import GraphState
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .write_plan import CommitMetadata

ACTOR_SEPARATOR = "\x1f"
"""Separates the actor from the key if actors must not share idempotency keys. Neither part contains it."""

_WINDOW_MICROS = 24 * 60 * 60 * 1_000_000  # 24 hours
_MAX_COMMITS = 4096
_MAX_EXPIRED_IN_A_ROW = 64  # commits; a few wrong timestamps do not end the search


def find_replayed_commit(store: Store, state: GraphState, metadata: CommitMetadata) -> Commit | None:
    """Return the commit that was already published under this idempotency key, or None if there is none.

    Raises `InputError` if the key was used for a different request.
    """
    commit = None if metadata.idempotency_key is None else find_commit_by_key(store, state, metadata.idempotency_key)
    return None if commit is None else _require_same_request(commit, metadata)


def find_commit_by_key(store: Store, state: GraphState, key: str) -> Commit | None:
    """Return the commit published under an idempotency key, even for a different request, or None if there is none."""
    oldest_time, expired_in_a_row = clock_and_ids.now_micros() - _WINDOW_MICROS, 0
    first_parents = HistoryLog(store, state).first_parents(state.head.commit_id)
    for commit in islice(first_parents, _MAX_COMMITS):
        expired_in_a_row = expired_in_a_row + 1 if commit.published_at < oldest_time else 0
        if expired_in_a_row == _MAX_EXPIRED_IN_A_ROW:
            return None
        if not expired_in_a_row and commit.key == key:
            return commit
    return None


def _require_same_request(commit: Commit, metadata: CommitMetadata) -> Commit:
    if commit.request != metadata.request_hash:
        caller_key = (metadata.idempotency_key or "").rpartition(ACTOR_SEPARATOR)[2]
        raise InputError(
            f"idempotency key '{caller_key}' was already used for a different request",
            reason="key reused",
            commit_id=commit.id,
        )
    return commit
