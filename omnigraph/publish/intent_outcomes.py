"""Record the outcomes of intents.

This module converts an intent to its recovery record. The `history` package lists the records.
"""

from omnigraph.history.recovery_records import OutcomeKind, RecoveryRecord, _store_record
from omnigraph.publish.intent import Intent
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids


def record_outcome(store: Store, intent: Intent, kind: OutcomeKind, error: str | None = None) -> RecoveryRecord:
    """Record the outcome of an intent. Only an operation's first record is kept."""
    recovery_record = build_recovery_record(intent, kind, error)
    _store_record(store, intent.id, recovery_record)
    return recovery_record


def build_recovery_record(intent: Intent, kind: OutcomeKind, error: str | None = None) -> RecoveryRecord:
    """Build an operation's recovery record, dated with the current time."""
    operation_facts = (intent.operation, intent.branch, intent.actor, intent.commit_id, clock_and_ids.now_micros())
    return RecoveryRecord(intent.id, kind, *operation_facts, error=error)
