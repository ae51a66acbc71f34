"""Withdraw an operation that was decided but could not be carried out.

Its owner may be merely suspended and wake up later. Each kind of operation is therefore blocked in
a way that makes a late owner fail. An operation that was carried out after all is left alone.
"""

import logging
from contextlib import suppress

from omnigraph.errors import GraphNotInitialized, StorageError
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store

from . import intent as intents
from . import refs
from .branches import CREATIONS, place_of
from .closing import close
from .intent import Intent
from .lease import READ
from .line import line_of
from .long import REFUSED, refuse
from .recovery_failure import judge_failure
from .rename import RENAME, rename_refs

_log = logging.getLogger("omnigraph")


def withdraw(store: Store, intent: Intent) -> bool:
    """Make sure that no process carries an operation out; True if one has already.

    Raises if withdrawing may succeed later: the store is down, or the branch is busy.
    """
    if intent.operation == READ or _verdict(store, intent) != "publish":
        return False
    try:
        with reported("unknown"):
            return _close_door(store, intent)
    except Exception as error:
        # What fails permanently here would also fail for a process that carries it out.
        if judge_failure(error) == "later":
            raise
        _log.warning("operation %s is dropped without blocking its owner: %s", intent.id, error)
        return False


def _verdict(store: Store, intent: Intent) -> str | None:
    """Return the verdict; one that cannot be read counts as a verdict to publish."""
    try:
        return intents.decide(store, intent, "discard")
    except StorageError as error:
        if error.kind != "permanent":
            raise
        return "publish"


def _close_door(store: Store, intent: Intent) -> bool:
    if intent.operation in CREATIONS:
        return _close_creation(store, intent)
    if intent.operation == RENAME:
        return _close_rename(store, intent)
    if intent.commit_id is None:  # of a newer release; this one does not know what it does
        return False
    line = line_of(store, intent.branch, intent.branch_ulid)
    stands = refuse(line, intent)
    return stands is not None and stands.operation != REFUSED


def _close_creation(store: Store, intent: Intent) -> bool:
    """Close the manifest, unless the name leads to it: then the branch or tag was created."""
    name, created = intent.facts["name"], intent.creates or ""
    try:
        ref = refs.look_up(store, name, place_of(intent))
    except StorageError as error:
        if judge_failure(error) == "later":
            raise
        ref = None
    if ref is not None and ref.ulid == created:
        return True
    with suppress(GraphNotInitialized):  # it was never created
        close(store, line_of(store, name, created))
    return False


def _close_rename(store: Store, intent: Intent) -> bool:
    """Close the new name, unless the old one was closed: then the branch was renamed."""
    old, made = rename_refs(intent)
    if refs.highest_number(store, old.name) > old.number:
        return True
    refs.release(store, made)
    return False
