"""Recovery records: the outcomes of operations whose process died, one object per outcome.

This module provides the list that `recovery list` shows. A record is written once, under its operation's id, so
resolving an operation twice leaves one record. An unreadable record does not prevent the others from being listed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

RECOVERY_ACTOR = "omnigraph:recovery"
FinalOutcomeKind = Literal["finished", "refused", "discarded", "dropped"]
OutcomeKind = FinalOutcomeKind | Literal["set_aside", "repaired", "seen", "unreadable"]


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """The outcome of one recovered operation.

    `heads` maps each table directory to the HEAD version up to which changes by external writers have been reported.
    `error` explains why an operation was set aside or failed, and `actor` is the actor that resolved or dropped the
    operation. The kind `unreadable` marks a record that is itself damaged.
    """

    operation_id: str
    kind: OutcomeKind
    operation: str
    branch: str
    for_actor: str | None
    commit_id: str | None
    recorded_at: int
    heads: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    actor: str = RECOVERY_ACTOR

    def to_json(self) -> dict[str, Any]:
        """Return the record in its stored and displayed form."""
        return {
            "operation_id": self.operation_id,
            "recovery_kind": self.kind,
            "operation": self.operation,
            "graph_branch": self.branch,
            "recovery_for_actor": self.for_actor,
            "graph_commit_id": self.commit_id,
            "actor_id": self.actor,
            "created_at": self.recorded_at,
            **({"heads": dict(self.heads)} if self.heads else {}),
            **({"error": self.error} if self.error is not None else {}),
        }


def record_operation_set_aside(store: Store, recovery_record: RecoveryRecord) -> None:
    """Record that an operation was set aside. Its final outcome gets a separate record."""
    _store_record(store, f"{recovery_record.operation_id}-set_aside", recovery_record)


def record_operation_dropped(store: Store, recovery_record: RecoveryRecord) -> None:
    """Record that an operation was dropped on request."""
    _store_record(store, recovery_record.operation_id, recovery_record)


def build_unreadable_record(operation_id: str, kind: OutcomeKind, error: str | None = None) -> RecoveryRecord:
    """Build a record for an operation about which only the id is known."""
    return RecoveryRecord(operation_id, kind, "unknown", "", None, None, clock_and_ids.now_micros(), error=error)


def _store_record(store: Store, record_id: str, recovery_record: RecoveryRecord) -> None:
    store.objects.create_json(f"{layout.AUDIT}/{record_id}.json", recovery_record.to_json())


def record_torn_version(store: Store, event_id: str, branch_name: str) -> RecoveryRecord:
    """Record that a torn manifest version was set aside."""
    recovery_record = RecoveryRecord(
        event_id, "set_aside", "set_aside", branch_name, None, None, clock_and_ids.now_micros()
    )
    store.objects.create_json(f"{layout.AUDIT}/{event_id}.json", recovery_record.to_json())
    return recovery_record


def record_repair(store: Store, commit_id: str, branch_name: str, actor: str | None) -> RecoveryRecord:
    """Record, under the id of the adopting commit, that rows from external writers were adopted."""
    recorded_at = clock_and_ids.now_micros()
    recovery_record = RecoveryRecord(commit_id, "repaired", "repair", branch_name, actor, commit_id, recorded_at)
    store.objects.create_json(f"{layout.AUDIT}/{commit_id}.json", recovery_record.to_json())
    return recovery_record


def record_external_changes_seen(
    store: Store, branch_name: str, actor: str | None, table_heads: Mapping[str, int]
) -> RecoveryRecord:
    """Record that commits by external writers were reported but cannot be adopted."""
    event_id, recorded_at = clock_and_ids.new_ulid(), clock_and_ids.now_micros()
    recovery_record = RecoveryRecord(
        event_id, "seen", "repair", branch_name, actor, None, recorded_at, dict(table_heads)
    )
    store.objects.create_json(f"{layout.AUDIT}/{event_id}.json", recovery_record.to_json())
    return recovery_record


def list_recovery_records(store: Store) -> list[RecoveryRecord]:
    """Return all records, starting with the oldest operation. Unreadable records are marked as such."""
    object_names = (
        stored_object.name.removeprefix(f"{layout.AUDIT}/") for stored_object in store.objects.list(layout.AUDIT)
    )
    record_files = [file_name for file_name in object_names if file_name.endswith(".json") and "/" not in file_name]
    records = (_read_record(store, file_name.removesuffix(".json")) for file_name in record_files)
    return [recovery_record for recovery_record in records if recovery_record is not None]


def _read_record(store: Store, record_id: str) -> RecoveryRecord | None:
    """Read one record, or return None if it no longer exists."""
    try:
        stored_facts = store.objects.read_json(f"{layout.AUDIT}/{record_id}.json")
        return None if stored_facts is None else parse_record(stored_facts)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        return build_unreadable_record(record_id, "unreadable", error.message)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"{layout.AUDIT}/{record_id}.json is damaged ({type(error).__name__}: {error})"
        return build_unreadable_record(record_id, "unreadable", message)


def parse_record(stored_facts: Mapping[str, Any]) -> RecoveryRecord:
    """Build a record from the form that `RecoveryRecord.to_json` returns."""
    return RecoveryRecord(
        stored_facts["operation_id"],
        stored_facts["recovery_kind"],
        stored_facts["operation"],
        stored_facts["graph_branch"],
        stored_facts.get("recovery_for_actor"),
        stored_facts.get("graph_commit_id"),
        stored_facts["created_at"],
        {
            str(table_directory): int(head_version)
            for table_directory, head_version in stored_facts.get("heads", {}).items()
        },
        stored_facts.get("error"),
        stored_facts.get("actor_id") or RECOVERY_ACTOR,
    )
