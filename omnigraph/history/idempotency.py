"""Recognising a repeated write by its key.

A key is a read: it is looked for in the state of every attempt. Only first-parent commits of the
last day count, at most 4,096. A write without a key pays nothing.
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
_EXPIRED = 64  # in succession end the search: the clock of one publisher must not


def replayed(store: Store, state: State, signature: Signature) -> Commit | None:
    """The commit that this key made before, if it did.

    The same key with another request is an error: the caller confuses two writes.
    """
    found = None if signature.key is None else commit_of_key(store, state, signature.key)
    return None if found is None else _same_request(found, signature)


def commit_of_key(store: Store, state: State, key: str) -> Commit | None:
    """The commit that a key made, whatever was asked under it."""
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
