"""Set aside, list, retry and drop operations that recovery could neither finish nor discard.

A marker next to an intent makes recovery skip the intent. The intent and its parts stay unchanged and continue to
protect the data that they reference. A marker does not decide the outcome: any process that can resolve the operation
may still do so. Markers are written once and are removed after their intent, so a crash at any point is harmless.
"""

from dataclasses import replace

from omnigraph.errors import ConcurrentCommit, NotFound, StorageError
from omnigraph.history.recovery_records import (
    RECOVERY_ACTOR,
    RecoveryRecord,
    build_unreadable_record,
    record_operation_dropped,
    record_operation_set_aside,
)
from omnigraph.publish.intent_outcomes import build_recovery_record
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.store import Store

from . import intent as intents
from .intent import PendingIntent, SetAsideIntent, UnreadableIntent
from .intent_record import NewerReleaseError
from .settle_operation import settle_operation
from .withdraw_operation import withdraw_operation


def set_operation_aside(
    store: Store, operation: PendingIntent | UnreadableIntent, error: Exception
) -> RecoveryRecord | None:
    """Set an operation aside, so that recovery skips it.

    If another process has already completed the operation, return None. The audit record is written before the marker,
    so recovery simply tries again after a crash between the two steps. Writing the marker first could leave a marker
    that was never reported.
    """
    if store.objects.read(layout.intent_name(operation.id)) is None:
        return None
    error_text = describe_error(error)
    outcome = _set_aside_outcome(operation, error_text)
    record_operation_set_aside(store, outcome)
    required_versions = dict(error.needs) if isinstance(error, NewerReleaseError) else {}
    marker_name = layout.intent_name(operation.id, intents.NEWER_PART if required_versions else intents.SET_ASIDE_PART)
    marker_members = {"error": error_text, "needs": required_versions, "recorded_at": outcome.recorded_at}
    store.objects.create_json(marker_name, marker_members)
    if store.objects.read(layout.intent_name(operation.id)) is None:
        store.objects.remove(marker_name)
        return None
    return outcome


def list_set_aside_operations(store: Store) -> list[SetAsideIntent]:
    """List the operations that were set aside, and unreadable operations that have not been set aside yet.

    The oldest operation is listed first.
    """
    intent_listing = intents.list_intents(store)
    unreadable_operations = [
        SetAsideIntent(operation, operation.error.message, {}) for operation in intent_listing.unreadable
    ]
    return sorted([*intent_listing.set_aside, *unreadable_operations], key=lambda operation: operation.id)


def retry_operation(store: Store, operation_id: str) -> RecoveryRecord | None:
    """Resolve an operation that was set aside, and return its record, or None if there is nothing to report.

    If an error is raised, the operation stays set aside.
    """
    operation = find_set_aside_operation(store, operation_id).listed_intent
    if isinstance(operation, UnreadableIntent):
        raise operation.error
    with as_storage_errors("unknown"):
        outcome = settle_operation(store, operation, record_was_set_aside=True)
    if store.objects.read(layout.intent_name(operation_id)) is not None:
        raise ConcurrentCommit(
            f"operation {operation_id} could not be resolved because of concurrent writes to its branch"
        )
    _remove_intent_files(store, operation_id)
    return outcome


def drop_operation(store: Store, operation_id: str, actor: str | None = None) -> RecoveryRecord:
    """Drop an operation permanently and record that it was dropped. A later cleanup removes the staged files.

    If the operation turns out to have been completed, it is recorded as finished.
    """
    set_aside_operation = find_set_aside_operation(store, operation_id)
    was_carried_out = set_aside_operation.intent is not None and withdraw_operation(store, set_aside_operation.intent)
    if set_aside_operation.intent is None:
        outcome = build_unreadable_record(operation_id, "dropped", set_aside_operation.error)
    else:
        outcome = build_recovery_record(
            set_aside_operation.intent, "finished" if was_carried_out else "dropped", set_aside_operation.error
        )
    outcome = replace(outcome, actor=actor or RECOVERY_ACTOR)
    record_operation_dropped(store, outcome)
    _remove_intent_files(store, operation_id)
    return outcome


def describe_error(error: Exception) -> str:
    """Describe an error on one line, for storage in records."""
    if isinstance(error, StorageError):
        return error.message
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__


def _set_aside_outcome(operation: PendingIntent | UnreadableIntent, error_text: str) -> RecoveryRecord:
    if isinstance(operation, UnreadableIntent):
        return build_unreadable_record(operation.id, "set_aside", error_text)
    return build_recovery_record(operation.intent, "set_aside", error_text)


def find_set_aside_operation(store: Store, operation_id: str) -> SetAsideIntent:
    """Find an operation that was set aside; raise `NotFound` if there is none."""
    for operation in list_set_aside_operations(store):
        if operation.id == operation_id:
            return operation
    raise NotFound(
        f"no set-aside operation '{operation_id}'",
        what=f"operation '{operation_id}'",
        hint="run `omnigraph recovery list` to list set-aside operations",
    )


def _remove_intent_files(store: Store, operation_id: str) -> None:
    """Remove an intent, and then its parts, which have no effect without the intent."""
    for part in (*intents.INTENT_PARTS, *intents.MARKER_PARTS):
        store.objects.remove(layout.intent_name(operation_id, part))
