"""Crash recovery: settle operations whose owner is gone, or set them aside if that is hopeless.

Recovery runs when a graph is opened for writing and, at intervals, before a write. It is
idempotent, nothing waits for it, and it touches only intents whose lease has expired. An operation
that cannot be settled blocks neither the others nor the caller; only a failed listing is an error.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.failures import reported
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store

from . import intent as intents
from .audit import Outcome
from .intent import Listing, Pending, Unreadable
from .line import Line
from .recovery_failure import judge_failure
from .set_aside import set_aside
from .settle import settle, understood

Result = TypeVar("Result")
UNFINISHED = timedelta(hours=1)  # age at which a temporary file that was never renamed is removed
# Directories of control objects; the root itself holds only claims. Table files, log chunks and
# schemas are many: leftovers among them are the collector's job.
_WRITTEN = ("", layout.INTENTS, layout.REFS, layout.TAGS, layout.AUDIT)
INTERVAL = 5.0  # seconds between two recoveries of one root by one process
_log = logging.getLogger("omnigraph")
_looked: dict[str, float] = {}
_looking: set[str] = set()
_lock = threading.Lock()


def recover(store: Store) -> list[Outcome]:
    """Settle every intent whose lease has expired; costs one listing when there is none."""
    found = intents.listing(store)
    unfinished = store.objects.unfinished(*_WRITTEN)
    known = [one for one in found.set_aside if understood(one.needs)]
    if not (found.pending or found.unreadable or found.leftovers or known or unfinished):
        return []
    try:
        with reported("none"):
            now = intents.store_time(store)
    except StorageError as error:  # a full or read-only disk; a write would report the same
        _log.warning("recovery of unfinished operations was skipped: %s", error.message)
        return []
    outcomes = _settle_due(store, found, now)
    _set_unreadable_aside(store, found, now)
    _remove_leftovers(store, found, unfinished, now)
    return [outcome for outcome in outcomes if outcome is not None]


def recover_when_due(store: Store, *, interval: float | None = None) -> list[Outcome]:
    """Run `recover`, unless this process has just done so for this root.

    A failed recovery does not count: the error reaches the caller, and the next call tries again.
    """
    root = store.root.identity
    if not _begin(root, INTERVAL if interval is None else interval):
        return []
    looked: float | None = ids.monotonic()
    try:
        return recover(store)
    except BaseException:
        looked = None
        raise
    finally:
        _end(root, looked)


def attend(line: Line) -> None:
    """Run recovery before every write to a branch, whenever it is due."""
    line.tend = partial(recover_when_due, line.store)


def _begin(root: str, interval: float) -> bool:
    """Return whether recovery is due; the caller must then run it. Never wait for a running one."""
    now = ids.monotonic()
    with _lock:
        last = _looked.get(root)
        recent = last is not None and 0 <= now - last < interval
        if recent or root in _looking:
            return False
        _looking.add(root)
        return True


def _end(root: str, looked: float | None) -> None:
    with _lock:
        _looking.discard(root)
        if looked is None:
            _looked.pop(root, None)
        else:
            _looked[root] = looked


def _settle_due(store: Store, found: Listing, now: datetime) -> list[Outcome | None]:
    """Settle operations whose lease has expired; first those that an older release set aside."""
    known = [
        one.kept
        for one in found.set_aside
        if understood(one.needs) and isinstance(one.kept, Pending)
    ]
    due = [one for one in found.pending if intents.expired(one, now)]
    return [
        *(_settle_or_set_aside(store, one, again=True) for one in known),
        *(_settle_or_set_aside(store, one) for one in due),
    ]


def _settle_or_set_aside(store: Store, pending: Pending, *, again: bool = False) -> Outcome | None:
    """Settle one operation. Log any failure; set the operation aside if the failure is permanent.

    An unclear failure is permanent only if it happens twice while the store responds.
    """
    for last in (False, True):
        try:
            with reported("unknown"):
                return settle(store, pending, again=again)
        except Exception as error:
            prospect = judge_failure(error)
            if prospect == "unclear" and _store_answers(store):
                if not last:
                    continue
                prospect = "for_good"
            if prospect == "for_good":
                return _set_aside(store, pending, error)
            _log.warning("operation %s is settled later: %s", pending.id, error)
            return None
    return None


def _store_answers(store: Store) -> bool:
    """Whether the store creates, lists and removes an object: then the failure is not an outage."""
    try:
        with reported("none"):
            intents.store_time(store)
    except StorageError:
        return False
    return True


def _set_aside(store: Store, kept: Pending | Unreadable, error: Exception) -> Outcome | None:
    return _tolerate(kept.id, partial(set_aside, store, kept, error))


def _set_unreadable_aside(store: Store, found: Listing, now: datetime) -> None:
    """Set aside damaged intents and those of a newer release; keep what may be readable later."""
    for one in found.unreadable:
        if intents.expired(one, now) and judge_failure(one.error) == "for_good":
            _set_aside(store, one, one.error)


def _remove_leftovers(
    store: Store, found: Listing, unfinished: Sequence[Found], now: datetime
) -> None:
    _tolerate("leftovers", partial(intents.sweep, store, found.leftovers, now))
    for one in unfinished:
        # Nothing reads temporary names. A writer that is still filling one will get an error.
        if now - one.modified > UNFINISHED:
            _tolerate(one.name, partial(store.objects.remove, one.name))


def _tolerate(what: str, action: Callable[[], Result]) -> Result | None:
    """Run an action that the next recovery can repeat; a failure is only logged."""
    try:
        with reported("unknown"):
            return action()
    except StorageError as error:
        _log.warning("recovery of %s goes on later: %s", what, error.message)
        return None
