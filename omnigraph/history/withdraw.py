"""Taking back an operation that was decided and could not be carried out.

Whoever was about to carry it out may only sleep: each kind of operation is closed in the way that
a late owner runs into. What was carried out after all is left alone.
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
    """Make sure that nobody carries an operation out; True when somebody has.

    Raises when that may succeed later: the store is away, or the branch is busy.
    """
    if intent.operation == READ or _verdict(store, intent) != "publish":
        return False
    try:
        with reported("unknown"):
            return _close_door(store, intent)
    except Exception as error:
        # What fails for good here fails for whoever would carry it out, too.
        if judge_failure(error) == "later":
            raise
        _log.warning("operation %s is dropped without closing what it began: %s", intent.id, error)
        return False


def _verdict(store: Store, intent: Intent) -> str | None:
    """What was decided; a verdict that cannot be read may have been to publish."""
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
    if intent.commit_id is None:  # of a newer release: nobody here knows what it does
        return False
    line = line_of(store, intent.branch, intent.branch_ulid)
    stands = refuse(line, intent)
    return stands is not None and stands.operation != REFUSED


def _close_creation(store: Store, intent: Intent) -> bool:
    """Close the manifest, unless the name leads to it: then the branch or tag was made."""
    name, created = intent.facts["name"], intent.creates or ""
    try:
        ref = refs.look_up(store, name, place_of(intent))
    except StorageError as error:
        if judge_failure(error) == "later":
            raise
        ref = None
    if ref is not None and ref.ulid == created:
        return True
    with suppress(GraphNotInitialized):  # it was never made
        close(store, line_of(store, name, created))
    return False


def _close_rename(store: Store, intent: Intent) -> bool:
    """Close the new name, unless the old one was closed: then the branch was renamed."""
    old, made = rename_refs(intent)
    if refs.highest_number(store, old.name) > old.number:
        return True
    refs.release(store, made)
    return False
