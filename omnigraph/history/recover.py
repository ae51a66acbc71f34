"""Settling operations whose owner is gone: finish what was confirmed, discard the rest.

Nothing waits for this. It runs at a read-write open and now and then before a write; running it
twice changes nothing, and only intents whose lease has run out are touched.
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from omnigraph import ids
from omnigraph.errors import (
    AlreadyExists,
    ClientError,
    GraphNotInitialized,
    NotFound,
    StorageError,
)
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.storage.torn import TornError

from . import intent as intents
from . import refs
from .audit import Kind, Outcome, record
from .branches import CREATIONS, finish_create, past_state, place_of
from .confirmed import plan_from_json
from .intent import Intent, Pending
from .lease import READ
from .line import Line, line_of
from .long import find, finish
from .manifest import read_manifest
from .mend import set_torn_aside
from .plan import PublishPlan, WriteTxn
from .rename import RENAME, finish_rename
from .state import State

UNFINISHED = timedelta(hours=1)  # after which a file that never got its name goes
# Where control objects are written; the root itself holds only claims. Files of tables, pieces of
# the log and schemas are many, and what was left there is the collector's.
_WRITTEN = ("", layout.INTENTS, layout.REFS, layout.TAGS, layout.AUDIT)
INTERVAL = 5.0  # seconds between two looks of one process at one root
_looked: dict[str, float] = {}
_looking: set[str] = set()
_lock = threading.Lock()


def recover(store: Store) -> list[Outcome]:
    """Settle every intent whose lease has run out: one listing when there is none."""
    found = intents.listing(store)
    unfinished = store.objects.unfinished(*_WRITTEN)
    if not found.pending and not found.leftovers and not unfinished:
        return []
    now = intents.store_time(store)
    due = [one for one in found.pending if intents.expired(one, now)]
    outcomes = [_settle(store, one) for one in due]
    intents.sweep(store, found.leftovers, now)
    for one in unfinished:
        # Nobody reads these names, and who still writes to one hears that it is gone.
        if now - one.modified > UNFINISHED:
            store.objects.remove(one.name)
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


def _settle(store: Store, one: Pending) -> Outcome | None:
    if one.intent.operation == READ:  # it had no effect: that it is over is no news
        intents.retire(store, one.intent)
        return None
    wish: intents.Verdict = "publish" if one.confirmed else "discard"
    verdict = intents.decide(store, one.intent, wish)
    if verdict is None:
        return None
    if verdict == "discard":
        outcome = record(store, one.intent, "discarded")
        intents.retire(store, one.intent)
        return outcome
    if one.intent.operation in CREATIONS:
        return _finish_creation(store, one.intent)
    if one.intent.operation == RENAME:
        return _finish_rename(store, one.intent)
    return _finish_publish(store, one.intent)


def _finish_rename(store: Store, intent: Intent) -> Outcome:
    try:
        finish_rename(store, intent)
        kind: Kind = "finished"
    except (AlreadyExists, NotFound):  # somebody else has the name, or the branch
        kind = "discarded"
    outcome = record(store, intent, kind)
    intents.retire(store, intent)
    return outcome


def _finish_publish(store: Store, intent: Intent) -> Outcome | None:
    line = line_of(store, intent.branch, intent.branch_ulid)
    facts = intents.confirmation(store, intent)
    if facts is None:
        _check_over(line, intent)
        return None
    recorded: list[Outcome] = []

    def confirmed(txn: WriteTxn) -> PublishPlan:
        return _read_plan(intent, facts, txn)

    # Refused, and recorded; or the branch was too busy, and the next look comes soon.
    with suppress(ClientError):
        finish(line, intent, confirmed, lambda kind: recorded.append(record(store, intent, kind)))
    return recorded[0] if recorded else None


def _check_over(line: Line, intent: Intent) -> None:
    """Somebody else finished meanwhile, or part of a finished intent came back after a power loss.

    Else something is wrong that only people can judge.
    """
    if line.store.objects.read(layout.intent_name(intent.id)) is None:
        return
    state = line.refresh().state
    if state.head.closed or find(line.store, state, intent) is not None:
        intents.retire(line.store, intent)
        return
    message = f"operation {intent.id} is to be published, and what it staged is not there"
    raise StorageError(message, kind="permanent", effect="none")


def _read_plan(intent: Intent, facts: Mapping[str, Any], txn: WriteTxn) -> PublishPlan:
    try:
        return plan_from_json(facts, txn)
    except (KeyError, TypeError, ValueError) as error:
        name = layout.intent_name(intent.id, "confirmed")
        message = f"what operation {intent.id} staged cannot be read; {name} was kept"
        raise StorageError(message, kind="permanent", effect="none") from error


def _finish_creation(store: Store, intent: Intent) -> Outcome | None:
    # The number before the look: who deletes closes the branch first and takes a number after.
    number = refs.highest_number(store, intent.facts["name"], place_of(intent))
    if _deleted(store, intent):  # made, named and deleted since: the name must not come back
        intents.retire(store, intent)
        return None
    state = _forked_state(store, intent)
    # An odd number is a name that is taken: by this operation before it was cut off, or by others.
    number += number % 2 == 0
    made = state is not None and _take(store, intent, state, number)
    outcome = record(store, intent, "finished" if made else "discarded")
    intents.retire(store, intent)
    return outcome


def _deleted(store: Store, intent: Intent) -> bool:
    """Whether the branch of a creation was made and closed again."""
    created = intent.creates or ""
    try:
        return read_manifest(store, created).state.head.closed
    except TornError:  # never acknowledged: it is made again
        set_torn_aside(store, intent.facts["name"], created)
        return False
    except GraphNotInitialized:
        return False


def _take(store: Store, intent: Intent, state: State, number: int) -> bool:
    try:
        finish_create(store, intent, state, number)
    except (AlreadyExists, NotFound):
        return False
    return True


def _forked_state(store: Store, intent: Intent) -> State | None:
    try:
        source = read_manifest(store, intent.branch_ulid).state
        return past_state(store, source, intent.base_commit)
    except NotFound:
        return None
