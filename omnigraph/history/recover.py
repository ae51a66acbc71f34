"""The look for operations whose owner is gone: each is settled, or set aside when that is hopeless.

Nothing waits for this. It runs at a read-write open and now and then before a write; running it
twice changes nothing, and only intents whose lease has run out are touched. One operation that
cannot be settled stops neither the others nor whoever looks; only a failed listing is an error.
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
UNFINISHED = timedelta(hours=1)  # after which a file that never got its name goes
# Where control objects are written; the root itself holds only claims. Files of tables, pieces of
# the log and schemas are many, and what was left there is the collector's.
_WRITTEN = ("", layout.INTENTS, layout.REFS, layout.TAGS, layout.AUDIT)
INTERVAL = 5.0  # seconds between two looks of one process at one root
_log = logging.getLogger("omnigraph")
_looked: dict[str, float] = {}
_looking: set[str] = set()
_lock = threading.Lock()


def recover(store: Store) -> list[Outcome]:
    """Settle every intent whose lease has run out: one listing when there is none."""
    found = intents.listing(store)
    unfinished = store.objects.unfinished(*_WRITTEN)
    known = [one for one in found.set_aside if understood(one.needs)]
    if not (found.pending or found.unreadable or found.leftovers or known or unfinished):
        return []
    try:
        with reported("none"):
            now = intents.store_time(store)
    except StorageError as error:  # a full or read-only disk: a write would tell the same
        _log.warning("unfinished operations are not looked at: %s", error.message)
        return []
    outcomes = _settle_due(store, found, now)
    _set_unreadable_aside(store, found, now)
    _remove_leftovers(store, found, unfinished, now)
    return [one for one in outcomes if one is not None]


def recover_when_due(store: Store, *, interval: float | None = None) -> list[Outcome]:
    """The same, unless this process looked at this root just now.

    A look that fails is no look: the caller hears of it, and the next one looks again.
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
    """Let every write to a line look for unfinished operations first, when that is due."""
    line.tend = partial(recover_when_due, line.store)


def _begin(root: str, interval: float) -> bool:
    """Whether a look is due; who is told so must look. Nobody waits for a look under way."""
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
    """Settle operations whose lease has run out, those first that an older release set aside."""
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
    """Settle one operation; whatever fails is logged, and what fails for good is set aside."""
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
    """Whether the store creates, lists and removes an object: then a failure is not its absence."""
    try:
        with reported("none"):
            intents.store_time(store)
    except StorageError:
        return False
    return True


def _set_aside(store: Store, kept: Pending | Unreadable, error: Exception) -> Outcome | None:
    return _tolerate(kept.id, partial(set_aside, store, kept, error))


def _set_unreadable_aside(store: Store, found: Listing, now: datetime) -> None:
    """Set aside what is damaged or of a newer release; what may be readable later stays."""
    for one in found.unreadable:
        if intents.expired(one, now) and judge_failure(one.error) == "for_good":
            _set_aside(store, one, one.error)


def _remove_leftovers(
    store: Store, found: Listing, unfinished: Sequence[Found], now: datetime
) -> None:
    _tolerate("leftovers", partial(intents.sweep, store, found.leftovers, now))
    for one in unfinished:
        # Nobody reads these names, and who still writes to one hears that it is gone.
        if now - one.modified > UNFINISHED:
            _tolerate(one.name, partial(store.objects.remove, one.name))


def _tolerate(what: str, action: Callable[[], Result]) -> Result | None:
    """Do something that the next look can do as well; a failure is only logged."""
    try:
        with reported("unknown"):
            return action()
    except StorageError as error:
        _log.warning("recovery of %s goes on later: %s", what, error.message)
        return None
