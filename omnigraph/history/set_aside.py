"""Operations that recovery could not settle: set aside, list, retry, drop.

A marker next to an intent tells recovery to leave it alone. The intent and its parts stay as they
are and keep protecting what they reference. A marker decides nothing: any process that can settle
the operation may still do so. Markers are written once and removed after their intent, so a crash
at any point is harmless.
"""

from dataclasses import replace

from omnigraph.errors import ConcurrentCommit, NotFound, StorageError
from omnigraph.storage import layout
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store

from . import intent as intents
from .audit import (
    ACTOR,
    Outcome,
    outcome_of,
    outcome_of_unreadable,
    record_dropped,
    record_unsettled,
)
from .intent import Pending, SetAside, Unreadable
from .intent_record import NewerReleaseError
from .settle import settle
from .withdraw import withdraw


def set_aside(store: Store, kept: Pending | Unreadable, error: Exception) -> Outcome | None:
    """Leave an operation alone from now on; None if it was ended by another process meanwhile.

    The audit record is written before the marker: after a crash between the two, recovery simply
    tries again. The other order could leave a marker that nobody was told about.
    """
    if store.objects.read(layout.intent_name(kept.id)) is None:
        return None
    message = describe(error)
    outcome = _outcome(kept, message)
    record_unsettled(store, outcome)
    needs = dict(error.needs) if isinstance(error, NewerReleaseError) else {}
    marker = layout.intent_name(kept.id, intents.NEWER if needs else intents.SET_ASIDE)
    facts = {"error": message, "needs": needs, "recorded_at": outcome.recorded_at}
    store.objects.create_json(marker, facts)
    if store.objects.read(layout.intent_name(kept.id)) is None:
        store.objects.remove(marker)
        return None
    return outcome


def list_set_aside(store: Store) -> list[SetAside]:
    """List operations that recovery leaves alone, including unreadable ones it will set aside.

    Oldest first.
    """
    found = intents.listing(store)
    unread = [SetAside(one, one.error.message, {}) for one in found.unreadable]
    return sorted([*found.set_aside, *unread], key=lambda one: one.id)


def retry_operation(store: Store, operation_id: str) -> Outcome | None:
    """Settle an operation that was set aside; None if it was over already.

    Raises what settling raises; the operation then stays set aside.
    """
    kept = find_set_aside(store, operation_id).kept
    if isinstance(kept, Unreadable):
        raise kept.error
    with reported("unknown"):
        outcome = settle(store, kept, again=True)
    if store.objects.read(layout.intent_name(operation_id)) is not None:
        raise ConcurrentCommit(f"operation {operation_id} could not be settled: its branch is busy")
    _remove_parts(store, operation_id)
    return outcome


def drop_operation(store: Store, operation_id: str, actor: str | None = None) -> Outcome:
    """Give an operation up for good and record that; a cleanup removes what it staged.

    An operation that turns out to have been carried out is recorded as finished.
    """
    found = find_set_aside(store, operation_id)
    done = found.intent is not None and withdraw(store, found.intent)
    if found.intent is None:
        outcome = outcome_of_unreadable(operation_id, "dropped", found.error)
    else:
        outcome = outcome_of(found.intent, "finished" if done else "dropped", found.error)
    outcome = replace(outcome, actor=actor or ACTOR)
    record_dropped(store, outcome)
    _remove_parts(store, operation_id)
    return outcome


def describe(error: Exception) -> str:
    """Describe an error on one line, as records store it."""
    if isinstance(error, StorageError):
        return error.message
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _outcome(kept: Pending | Unreadable, error: str) -> Outcome:
    if isinstance(kept, Unreadable):
        return outcome_of_unreadable(kept.id, "set_aside", error)
    return outcome_of(kept.intent, "set_aside", error)


def find_set_aside(store: Store, operation_id: str) -> SetAside:
    """Find one operation that is set aside; raise `NotFound` if there is none."""
    for one in list_set_aside(store):
        if one.id == operation_id:
            return one
    raise NotFound(
        f"no operation '{operation_id}' is set aside",
        what=f"operation '{operation_id}'",
        hint="list set-aside operations: omnigraph recovery list",
    )


def _remove_parts(store: Store, operation_id: str) -> None:
    """Remove an intent, then its parts: without the intent they decide nothing."""
    for part in (*intents.PARTS, *intents.MARKERS):
        store.objects.remove(layout.intent_name(operation_id, part))
