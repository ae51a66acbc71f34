"""Crash recovery: finish or discard operations whose owner has died, or set them aside if neither is possible.

Recovery runs when a graph is opened for writing and, at intervals, before a write. Recovery is idempotent and processes
only intents whose lease has expired. No operation waits for recovery. An operation that cannot be resolved blocks
neither other operations nor the caller. The only failure that raises an error is a failed listing.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from omnigraph.errors import StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.recovery_records import RecoveryRecord
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from . import intent as intents
from .intent import IntentListing, PendingIntent, SetAsideIntent, UnreadableIntent
from .recovery_failure import judge_failure

RecoveryResult = TypeVar("RecoveryResult")
UNFINISHED_FILE_AGE = timedelta(hours=1)  # age at which a temporary file counts as abandoned
# The directories that contain control objects. The root itself contains only claims. Table files, log chunks and
# schemas are too numerous to list here, so the collector removes their leftovers.
_CONTROL_DIRECTORIES = ("", layout.INTENTS, layout.REFS, layout.TAGS, layout.AUDIT)
RECOVERY_INTERVAL_SECONDS = 5.0  # minimum number of seconds between two recoveries of a root by the same process
_log = logging.getLogger("omnigraph")
_last_recovery: dict[str, float] = {}
_roots_in_recovery: set[str] = set()
_lock = threading.Lock()


def recover(store: Store) -> list[RecoveryRecord]:
    """Resolve every operation whose lease has expired. If there is nothing to recover, this only lists files."""
    intent_listing = intents.list_intents(store)
    unfinished_files = store.objects.list_unfinished(*_CONTROL_DIRECTORIES)
    if not (
        intent_listing.pending
        or intent_listing.unreadable
        or intent_listing.leftovers
        or _find_settleable(intent_listing)
        or unfinished_files
    ):
        return []
    try:
        with as_storage_errors("none"):
            store_time = intents.store_time(store)
    except StorageError as error:  # the disk is full or read-only, and a write would report the same error
        _log.warning("recovery of unfinished operations was skipped: %s", error.message)
        return []
    outcomes = _settle_expired(store, intent_listing, store_time)
    _set_aside_unreadable(store, intent_listing, store_time)
    _remove_leftovers(store, intent_listing, unfinished_files, store_time)
    return [outcome for outcome in outcomes if outcome is not None]


def recover_when_due(store: Store, *, interval: float | None = None) -> list[RecoveryRecord]:
    """Run `recover` unless this process is running it for this root, or did so during the last `interval` seconds.

    If recovery fails, the error is raised and the next call tries again.
    """
    root_identity = store.root.identity
    if not _begin_recovery(root_identity, RECOVERY_INTERVAL_SECONDS if interval is None else interval):
        return []
    started_at: float | None = clock_and_ids.monotonic()
    try:
        return recover(store)
    except BaseException:
        started_at = None
        raise
    finally:
        _end_recovery(root_identity, started_at)


def install_recovery_hook(branch_state: BranchState) -> None:
    """Install a hook that runs recovery before a write to the branch if recovery is due."""
    branch_state.recover_if_needed = partial(recover_when_due, branch_state.store)


def _begin_recovery(root_identity: str, interval_seconds: float) -> bool:
    """Return whether recovery is due and the caller must run it, without waiting for a recovery in progress."""
    now = clock_and_ids.monotonic()
    with _lock:
        last_started = _last_recovery.get(root_identity)
        is_recent = last_started is not None and 0 <= now - last_started < interval_seconds
        if is_recent or root_identity in _roots_in_recovery:
            return False
        _roots_in_recovery.add(root_identity)
        return True


def _end_recovery(root_identity: str, started_at: float | None) -> None:
    with _lock:
        _roots_in_recovery.discard(root_identity)
        if started_at is None:
            _last_recovery.pop(root_identity, None)
        else:
            _last_recovery[root_identity] = started_at


def _find_settleable(intent_listing: IntentListing) -> list[SetAsideIntent]:
    """Return the operations that an older release set aside, and that this release can resolve."""
    if not intent_listing.set_aside:
        return []
    from .settle_operation import can_settle

    return [set_aside_intent for set_aside_intent in intent_listing.set_aside if can_settle(set_aside_intent.needs)]


def _settle_expired(store: Store, intent_listing: IntentListing, store_time: datetime) -> list[RecoveryRecord | None]:
    """Resolve operations whose lease has expired, starting with operations that an older release set aside."""
    settleable = [
        set_aside_intent.listed_intent
        for set_aside_intent in _find_settleable(intent_listing)
        if isinstance(set_aside_intent.listed_intent, PendingIntent)
    ]
    expired_intents = [
        listed_intent for listed_intent in intent_listing.pending if intents.is_expired(listed_intent, store_time)
    ]
    return [
        *(_settle_or_set_aside(store, listed_intent, was_set_aside=True) for listed_intent in settleable),
        *(_settle_or_set_aside(store, listed_intent) for listed_intent in expired_intents),
    ]


def _settle_or_set_aside(store: Store, pending: PendingIntent, *, was_set_aside: bool = False) -> RecoveryRecord | None:
    """Resolve one operation and log any failure. If the failure is permanent, set the operation aside.

    An unclear failure counts as permanent only if it occurs twice while the store responds.
    """
    from .settle_operation import settle_operation

    for is_last_try in (False, True):
        try:
            with as_storage_errors("unknown"):
                return settle_operation(store, pending, record_was_set_aside=was_set_aside)
        except Exception as error:
            prospect = judge_failure(error)
            if prospect == "unclear" and _store_responds(store):
                if not is_last_try:
                    continue
                prospect = "for_good"
            if prospect == "for_good":
                return _try_set_aside(store, pending, error)
            _log.warning("operation %s will be resolved later: %s", pending.id, error)
            return None
    return None


def _store_responds(store: Store) -> bool:
    """Return whether the store can create, list and remove an object, which rules out an outage."""
    try:
        with as_storage_errors("none"):
            intents.store_time(store)
    except StorageError:
        return False
    return True


def _try_set_aside(
    store: Store, operation: PendingIntent | UnreadableIntent, error: Exception
) -> RecoveryRecord | None:
    from .set_aside import set_operation_aside

    return _run_logging_failure(operation.id, partial(set_operation_aside, store, operation, error))


def _set_aside_unreadable(store: Store, intent_listing: IntentListing, store_time: datetime) -> None:
    """Set aside intents that are damaged or need a newer release, but not intents that may become readable later."""
    for unreadable_intent in intent_listing.unreadable:
        if intents.is_expired(unreadable_intent, store_time) and judge_failure(unreadable_intent.error) == "for_good":
            _try_set_aside(store, unreadable_intent, unreadable_intent.error)


def _remove_leftovers(
    store: Store, intent_listing: IntentListing, unfinished_files: Sequence[ListedObject], store_time: datetime
) -> None:
    _run_logging_failure("leftovers", partial(intents.sweep_leftovers, store, intent_listing.leftovers, store_time))
    for unfinished_file in unfinished_files:
        # Files with temporary names are never read, so they can be removed. A writer that is still running then gets an
        # error.
        if store_time - unfinished_file.modified > UNFINISHED_FILE_AGE:
            _run_logging_failure(unfinished_file.name, partial(store.objects.remove, unfinished_file.name))


def _run_logging_failure(subject: str, action: Callable[[], RecoveryResult]) -> RecoveryResult | None:
    """Run an action that the next recovery can repeat, logging any failure."""
    try:
        with as_storage_errors("unknown"):
            return action()
    except StorageError as error:
        _log.warning("recovery of %s will be retried later: %s", subject, error.message)
        return None
