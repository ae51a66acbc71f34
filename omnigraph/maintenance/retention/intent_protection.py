"""Protect the data that intents need: the states that they use, and the files that they write.

A confirmed intent protects every file that its plan will publish. Every intent also protects all files that are newer
than the intent itself, because its owner may have written them. An intent that was set aside protects the same files
until it is dropped. Everything that an unreadable intent might need is kept.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from omnigraph.errors import CommitNotFound, GraphNotInitialized, HistoryReclaimed
from omnigraph.history.commit import TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import read_manifest
from omnigraph.publish import intent as intents
from omnigraph.publish.intent import Intent, PendingIntent, UnreadableIntent
from omnigraph.publish.intent_record import NewerReleaseError
from omnigraph.publish.lease import READ_OPERATION
from omnigraph.publish.recovery_failure import judge_failure
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.file_roles import TABLE_ROOTS

from .mark_live import Marking

_OPERATION_LABELS = {READ_OPERATION: "a reader"}
_ALL_DIRECTORIES = frozenset({*TABLE_ROOTS, layout.COMMITS, layout.SCHEMAS, layout.BRANCHES})
_log = logging.getLogger("omnigraph")
_TIME_RESOLUTION = timedelta(seconds=2)  # coarser than the timestamp resolution of any store


@dataclass(slots=True)
class IntentProtection:
    """Protects every file that is newer than the earliest of the given store times."""

    armed_times: list[datetime] = field(default_factory=list)

    def covers(self, modified_at: datetime | None) -> bool:
        """Return whether a file is newer than the earliest of the `armed_times`.

        A file whose age is unknown counts as newer.
        """
        if not self.armed_times:
            return False
        return modified_at is None or modified_at >= min(self.armed_times)


def mark_intents(marking: Marking) -> IntentProtection:
    """Mark everything that the existing intents protect."""
    intent_listing = intents.list_intents(marking.store)
    protection = IntentProtection()
    unsettled: list[PendingIntent | UnreadableIntent] = [*intent_listing.pending, *intent_listing.unreadable]
    for operation in unsettled:
        _protect_operation(marking, protection, operation, "")
    for set_aside_intent in intent_listing.set_aside:
        _protect_operation(marking, protection, set_aside_intent.listed_intent, " (set aside)")
    return protection


def _protect_operation(
    marking: Marking, protection: IntentProtection, operation: PendingIntent | UnreadableIntent, label_suffix: str
) -> None:
    """Protect the files that one intent needs, and list the intent as a holder."""
    if isinstance(operation, PendingIntent):
        is_known = _protect_pending(marking, operation)
        operation_label = _OPERATION_LABELS.get(operation.intent.operation, operation.intent.operation)
        holder = f"{operation_label} on {operation.intent.branch}{label_suffix}"
        may_write = operation.intent.operation != READ_OPERATION
    else:
        is_known = _protect_unreadable(marking, operation)
        holder, may_write = f"the unreadable operation {operation.id}{label_suffix}", True
    if not is_known:
        marking.live.directories |= _ALL_DIRECTORIES
        holder = f"{holder} (the files that it needs are unknown, so no table files are removed)"
    marking.holders[holder] = None
    if may_write:
        # Even a confirmed intent needs this protection, because the blobs next to its files are not listed anywhere.
        protection.armed_times.append(operation.armed_at - _TIME_RESOLUTION)


def _protect_pending(marking: Marking, pending: PendingIntent) -> bool:
    """Protect the files that an intent references; return False if they cannot be determined."""
    try:
        with as_storage_errors("none"):
            _protect_intent(marking, pending.intent)
            confirmation = intents.read_confirmation(marking.store, pending.intent)
            if confirmation is not None:
                _protect_staged(marking, confirmation)
    except Exception as error:
        _log.warning("cannot determine which files operation %s needs: %s", pending.id, error)
        return False
    return True


def _protect_unreadable(marking: Marking, unreadable_intent: UnreadableIntent) -> bool:
    """Protect the files that a damaged intent confirmed; return False if they cannot be determined yet.

    Everything that a damaged intent wrote is newer than the intent itself. The state that the intent was based on may
    be removed: if the intent's record is restored and the operation is retried, the retry checks whether that state
    still exists.
    """
    if isinstance(unreadable_intent.error, NewerReleaseError) or judge_failure(unreadable_intent.error) != "for_good":
        return False
    confirmation_name = layout.intent_name(unreadable_intent.id, "confirmed")
    try:
        confirmation = marking.store.objects.read_json(confirmation_name)
        if confirmation is not None:
            _protect_staged(marking, confirmation)
    except Exception as error:
        _log.warning("cannot determine which files operation %s staged: %s", unreadable_intent.id, error)
        return False
    return True


def _protect_intent(marking: Marking, intent: Intent) -> None:
    if intent.created_ulid is not None:
        marking.live.directories.add(layout.manifest_directory(intent.created_ulid))
    facts = intent.facts
    _protect_commit(marking, intent.branch_ulid, intent.base_commit)
    if facts.get("source_ulid") or facts.get("source_commit"):
        source_ulid = facts.get("source_ulid") or intent.branch_ulid
        _protect_commit(marking, source_ulid, facts.get("source_commit"))


def _protect_commit(marking: Marking, manifest_ulid: str, commit_id: str | None) -> None:
    """Protect a branch's newest state and one commit in its log, if they exist."""
    try:
        manifest = read_manifest(marking.store, manifest_ulid)
    except GraphNotInitialized:
        return
    is_closed = manifest.state.head.closed  # operations on this branch can then no longer be finished
    marking.add_state(manifest, None if is_closed else "the branch of an unfinished operation")
    with suppress(CommitNotFound, HistoryReclaimed):
        if commit_id:
            table_entries, schema_row = HistoryLog(marking.store, manifest.state).tables_and_schema_at(commit_id)
            marking.live.names.add(schema_row.location)
            for entry in table_entries.values():
                marking.add_entry(entry)


def _protect_staged(marking: Marking, confirmation: Mapping[str, Any]) -> None:
    """Protect the files that a confirmed operation will publish."""
    for staged_change in confirmation.get("writes", {}).values():
        marking.live.names |= set(staged_change["files"])
        marking.live.directories |= {file_name.rpartition(".")[0] for file_name in staged_change["files"]}
    for entry_group in ("registered", "adopted"):
        for table_key, encoded_entry in confirmation.get(entry_group, {}).items():
            marking.add_entry(TableEntry.from_json(table_key, encoded_entry))
    if confirmation.get("schema"):
        marking.live.names.add(confirmation["schema"][1])
