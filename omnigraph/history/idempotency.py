"""Recognise a repeated write by its idempotency key.

The key is looked up in the branch state of every attempt, so a repetition that races with the
original is recognised too. Only first-parent commits of the last 24 hours count, at most 4,096.
A write without a key pays nothing.
"""

from itertools import islice

from omnigraph import ids
from omnigraph.errors import InputError
from omnigraph.storage.store import Store

from .commit import Commit
from .log import Log
from .plan import Signature
from .state import State

_WINDOW = 24 * 60 * 60 * 1_000_000  # microseconds
_COMMITS = 4096
_EXPIRED = 64  # one publisher with a wrong clock must not end the search


def replayed(store: Store, state: State, signature: Signature) -> Commit | None:
    """Return the commit that this key already produced, or None.

    Raises:
        InputError: the key was used for another request; the caller confuses two writes.

    """
    found = None if signature.key is None else commit_of_key(store, state, signature.key)
    return None if found is None else _same_request(found, signature)


def commit_of_key(store: Store, state: State, key: str) -> Commit | None:
    """Return the commit that was written under a key, whatever its request was."""
    oldest, expired = ids.now_micros() - _WINDOW, 0
    line = Log(store, state).first_parents(state.head.commit_id)
    for one in islice(line, _COMMITS):
        expired = expired + 1 if one.published_at < oldest else 0
        if expired == _EXPIRED:
            return None
        if not expired and one.key == key:
            return one
    return None


def _same_request(one: Commit, signature: Signature) -> Commit:
    if one.request != signature.request:
        raise InputError(
            f"idempotency key '{signature.key}' was used for another request",
            reason="key reused",
            commit_id=one.id,
        )
    return one
