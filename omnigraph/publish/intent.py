"""Intents, which are written before a long operation starts and record what it is about to do.

This module manages the life cycle of an intent. Arming an intent writes it, and the owner renews its lease while the
work runs. Confirming an intent stores the staged plan. A single verdict, publish or discard, decides the outcome, and
the intent is then removed. An intent protects the data that it references from cleanup, and it lets other processes
finish or discard the operation if the owner dies. No operation waits for an intent, not even for one that cannot be
read.
"""

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .intent_record import Intent, damaged_record_error

_log = logging.getLogger("omnigraph")
LEASE_DURATION = timedelta(seconds=60)  # duration of a lease, measured by the store's clock
RENEWAL_SECONDS = 20.0  # seconds between two renewals of a lease
INTENT_PARTS = ("json", "confirmed", "lease", "verdict")
# If one of these parts exists, recovery skips the intent, because the intent cannot be resolved or requires a newer
# release.
SET_ASIDE_PART, NEWER_PART = MARKER_PARTS = ("set_aside", "newer")

Verdict = Literal["publish", "discard"]
__all__ = [
    "Intent",
    "IntentListing",
    "PendingIntent",
    "SetAsideIntent",
    "UnreadableIntent",
    "Verdict",
    "arm",
    "confirm",
    "decide",
    "is_expired",
    "list_intents",
    "read_confirmation",
    "renew",
    "retire",
    "set_aside_files",
    "store_time",
    "sweep_leftovers",
]


@dataclass(frozen=True, slots=True)
class PendingIntent:
    """A readable intent, with the store times at which the intent was armed and its owner was last active."""

    intent: Intent
    alive_at: datetime
    confirmed: bool
    armed_at: datetime

    @property
    def id(self) -> str:
        """The operation's id."""
        return self.intent.id


@dataclass(frozen=True, slots=True)
class UnreadableIntent:
    """An intent that cannot be read, with the error that explains why.

    The error indicates whether the intent is damaged, was written by a newer release, or may become readable later.
    """

    id: str
    error: StorageError
    alive_at: datetime
    armed_at: datetime


@dataclass(frozen=True, slots=True)
class SetAsideIntent:
    """An intent that recovery could not resolve and now skips.

    `needs` lists the features that a release must support to resolve the intent. A release that supports all of them
    resolves the intent automatically. Without such a release, an operator must intervene.
    """

    listed_intent: PendingIntent | UnreadableIntent
    error: str
    needs: Mapping[str, Any]
    recorded_at: int | None = None

    @property
    def id(self) -> str:
        """The operation's id."""
        return self.listed_intent.id

    @property
    def intent(self) -> Intent | None:
        """The operation, or None if its record cannot be read."""
        return self.listed_intent.intent if isinstance(self.listed_intent, PendingIntent) else None

    def to_json(self) -> dict[str, Any]:
        """Return the operation as JSON for display, with null for members that cannot be read."""
        intent = self.intent
        return {
            "operation_id": self.id,
            "operation": intent.operation if intent else None,
            "graph_branch": intent.branch if intent else None,
            "for_actor": intent.actor if intent else None,
            "graph_commit_id": intent.commit_id if intent else None,
            "error": self.error,
            "needs": dict(self.needs),
            "set_aside_at": self.recorded_at,
        }


def arm(store: Store, intent: Intent) -> None:
    """Write an intent. Its first lease starts when the store creates the file.

    A failed call has no effect on the graph, because an intent that was neither confirmed nor decided is never
    executed.
    """
    try:
        with as_storage_errors("none"):
            created = store.objects.create_json(layout.intent_name(intent.id), intent.to_json())
    except StorageError as error:
        error.effect = "none"
        raise
    if not created:
        raise StorageError(f"intent {intent.id} already exists", kind="precondition")


def renew(store: Store, intent: Intent) -> None:
    """Renew an intent's lease to show that the owner is still alive."""
    store.objects.write_lease(layout.intent_name(intent.id, "lease"), {"nonce": clock_and_ids.new_nonce()})


def confirm(store: Store, intent: Intent, staged_plan: Mapping[str, Any]) -> None:
    """Store the staged plan. From then on, any process can finish the operation."""
    confirmation_file = layout.intent_name(intent.id, "confirmed")
    if not store.objects.create_json(confirmation_file, staged_plan):
        raise StorageError(f"intent {intent.id} was already confirmed", kind="precondition")


def read_confirmation(store: Store, intent: Intent) -> dict[str, Any] | None:
    """Return the staged plan, or None if the owner did not store one."""
    return store.objects.read_json(layout.intent_name(intent.id, "confirmed"))


def decide(store: Store, intent: Intent, requested_verdict: Verdict) -> Verdict | None:
    """Request a verdict and return the one that was recorded first, or None if the intent has already been resolved.

    After the verdict is written, the intent is looked up again. If the intent no longer exists, another process has
    resolved it and removed its verdict. The new verdict is then removed as well.
    """
    verdict_file = layout.intent_name(intent.id, "verdict")
    verdict: Verdict | None = requested_verdict
    if not store.objects.create_json(verdict_file, {"verdict": requested_verdict}):
        stored_verdict = store.objects.read_json(verdict_file)
        verdict = stored_verdict.get("verdict") if stored_verdict else None
        if stored_verdict is not None and verdict not in ("publish", "discard"):
            raise damaged_record_error(verdict_file)
    if store.objects.read(layout.intent_name(intent.id)) is None:
        store.objects.remove(verdict_file)
        return None
    return verdict


def retire(store: Store, intent: Intent, parts: Sequence[str] = INTENT_PARTS) -> None:
    """Remove the files of a completed intent: the intent itself first, and its verdict last.

    The work is already done, so a failure is only logged. Any remaining files are removed the next time the graph is
    opened for writing.
    """
    try:
        for part in INTENT_PARTS:
            if part in parts:
                store.objects.remove(layout.intent_name(intent.id, part))
    except (StorageError, OSError) as error:
        _log.warning("intent %s could not be removed: %s", intent.id, error)


@dataclass(frozen=True, slots=True)
class IntentListing:
    """The result of listing a graph's intents.

    `leftovers` are parts whose intent no longer exists, `unreadable` contains the unreadable intents that have not been
    set aside, and `foreign_files` are files written by other programs.
    """

    pending: tuple[PendingIntent, ...]
    leftovers: tuple[ListedObject, ...]
    unreadable: tuple[UnreadableIntent, ...] = ()
    set_aside: tuple[SetAsideIntent, ...] = ()
    foreign_files: tuple[ListedObject, ...] = ()


def list_intents(store: Store) -> IntentListing:
    """List all intents and leftover parts. If there are none, this takes a single request.

    Unreadable intents are included in the result, so only a failed listing raises an error.
    """
    files_by_name = {stored_file.name: stored_file for stored_file in store.objects.list(layout.INTENTS)}
    parsed_names = {file_name: layout.parse_intent_name(file_name) for file_name in files_by_name}
    intent_ulids = [
        parsed_name[0] for parsed_name in parsed_names.values() if parsed_name is not None and parsed_name[1] == "json"
    ]
    listed_intents = [
        listed_intent
        for intent_ulid in intent_ulids
        if (listed_intent := _read_intent(store, intent_ulid, files_by_name)) is not None
    ]
    marker_by_id = {
        listed_intent.id: marker_part
        for listed_intent in listed_intents
        if (marker_part := _find_marker(listed_intent.id, files_by_name)) is not None
    }
    waiting_intents = [listed_intent for listed_intent in listed_intents if listed_intent.id not in marker_by_id]
    recognized_names = {
        file_name
        for file_name, parsed_name in parsed_names.items()
        if parsed_name is not None or _is_clock_tick(file_name)
    }
    part_names = {file_name for file_name in recognized_names if not file_name.endswith(".json")}
    return IntentListing(
        tuple(listed_intent for listed_intent in waiting_intents if isinstance(listed_intent, PendingIntent)),
        tuple(
            files_by_name[file_name]
            for file_name in files_by_name
            if file_name in part_names and _intent_file(file_name) not in files_by_name
        ),
        tuple(listed_intent for listed_intent in waiting_intents if isinstance(listed_intent, UnreadableIntent)),
        tuple(
            _read_marker(store, listed_intent, marker_by_id[listed_intent.id])
            for listed_intent in listed_intents
            if listed_intent.id in marker_by_id
        ),
        tuple(files_by_name[file_name] for file_name in files_by_name if file_name not in recognized_names),
    )


def sweep_leftovers(store: Store, leftovers: Sequence[ListedObject], current_time: datetime) -> None:
    """Remove leftover parts that are older than one lease period and whose intent no longer exists."""
    for leftover in leftovers:
        if (
            abs(current_time - leftover.modified) > LEASE_DURATION
            and store.objects.read(_intent_file(leftover.name)) is None
        ):
            store.objects.remove(leftover.name)


def set_aside_files(store: Store) -> list[ListedObject]:
    """Return all files that belong to set-aside intents, so that a copy of the graph can include them."""
    intent_files = store.objects.list(layout.INTENTS)
    stems = {intent_file.name: intent_file.name.rpartition(".")[0] for intent_file in intent_files}
    set_aside_stems = {stem for file_name, stem in stems.items() if file_name.rpartition(".")[2] in MARKER_PARTS}
    return [intent_file for intent_file in intent_files if stems[intent_file.name] in set_aside_stems]


def _find_marker(intent_ulid: str, file_names: Container[str]) -> str | None:
    """Return the marker part that sets an intent aside, or None if there is no marker."""
    marker_parts = (part for part in MARKER_PARTS if layout.intent_name(intent_ulid, part) in file_names)
    return next(marker_parts, None)


def _is_clock_tick(file_name: str) -> bool:
    return file_name.startswith(f"{layout.INTENTS}/clock-") and file_name.endswith(".tick")


def _intent_file(part_file: str) -> str:
    return f"{part_file.rpartition('.')[0]}.json"


def _read_intent(
    store: Store, intent_ulid: str, files_by_name: Mapping[str, ListedObject]
) -> PendingIntent | UnreadableIntent | None:
    """Read a listed intent, or return None if its owner removed it after the listing."""
    intent_file = layout.intent_name(intent_ulid)
    armed_at = files_by_name[intent_file].modified
    lease_file = files_by_name.get(layout.intent_name(intent_ulid, "lease"))
    alive_at = max(armed_at, lease_file.modified) if lease_file else armed_at
    try:
        stored_facts = store.objects.read_json(intent_file)
        if stored_facts is None:
            return None
        intent = Intent.from_json(stored_facts)
        if intent.id != intent_ulid:
            raise damaged_record_error(intent_file)
    except StorageError as error:
        return UnreadableIntent(intent_ulid, error, alive_at, armed_at)
    return PendingIntent(intent, alive_at, layout.intent_name(intent_ulid, "confirmed") in files_by_name, armed_at)


def _read_marker(store: Store, listed_intent: PendingIntent | UnreadableIntent, marker_part: str) -> SetAsideIntent:
    """Read the reason why an intent was set aside. An intent with a damaged marker still counts as set aside."""
    try:
        marker_facts = store.objects.read_json(layout.intent_name(listed_intent.id, marker_part)) or {}
    except StorageError as error:
        marker_facts = {"error": f"cannot read the reason the operation was set aside: {error.message}"}
    needs, recorded_at = marker_facts.get("needs"), marker_facts.get("recorded_at")
    return SetAsideIntent(
        listed_intent,
        str(marker_facts.get("error", "")),
        needs if isinstance(needs, dict) else {},
        recorded_at if isinstance(recorded_at, int) else None,
    )


def store_time(store: Store) -> datetime:
    """Return the current time by the store's clock. Ages must be computed only from store times."""
    tick_file = f"{layout.INTENTS}/clock-{clock_and_ids.new_ulid()}.tick"
    store.objects.create_bytes(tick_file, b"")
    try:
        return next(
            stored_file.modified for stored_file in store.objects.list(layout.INTENTS) if stored_file.name == tick_file
        )
    finally:
        store.objects.remove(tick_file)


def is_expired(listed_intent: PendingIntent | UnreadableIntent, current_time: datetime) -> bool:
    """Return whether the owner's last renewal of the lease is more than one lease period old.

    A lease whose renewal time is more than one lease period in the future has also expired: either the store's clock
    was set back, or the file time was changed. An owner that is still alive will soon renew the lease with the current
    time.
    """
    return abs(current_time - listed_intent.alive_at) > LEASE_DURATION
