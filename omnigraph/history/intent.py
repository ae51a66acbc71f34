"""Intents: what a long operation is about to do, written down before it does it.

Owns arming, leases, confirmation, the one verdict and removal. An intent protects what it names
from the collector and lets others finish or discard it after its owner is gone. Nothing waits.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.failures import reported
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store

_log = logging.getLogger("omnigraph")
LEASE = timedelta(seconds=60)  # of store time
RENEWAL = 20.0  # seconds
SCHEMA = 1
PARTS = ("json", "confirmed", "lease", "verdict")

Verdict = Literal["publish", "discard"]


@dataclass(frozen=True, slots=True)
class Intent:
    """A long operation.

    `commit_id` is the commit it will publish (None for a branch creation), `creates` the ULID of
    the branch it will make, `facts` whatever its kind needs to finish it.
    """

    id: str
    operation: str
    branch: str
    branch_ulid: str
    base_commit: str
    created_at: int
    commit_id: str | None = None
    actor: str | None = None
    message: str | None = None
    tables: tuple[str, ...] = ()
    creates: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The intent as it is stored; everything in it is relative to the root."""
        return {
            "schema_version": SCHEMA,
            "operation_id": self.id,
            "operation": self.operation,
            "branch": self.branch,
            "branch_ulid": self.branch_ulid,
            "base_commit": self.base_commit,
            "created_at": self.created_at,
            "commit_id": self.commit_id,
            "actor_id": self.actor,
            "message": self.message,
            "tables": list(self.tables),
            "creates": self.creates,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> "Intent":
        """The intent of a stored object; one from a newer program is refused and kept."""
        if facts.get("schema_version") != SCHEMA:
            raise _other_version(facts)
        try:
            return cls(
                id=facts["operation_id"],
                operation=facts["operation"],
                branch=facts["branch"],
                branch_ulid=facts["branch_ulid"],
                base_commit=facts["base_commit"],
                created_at=facts["created_at"],
                commit_id=facts["commit_id"],
                actor=facts["actor_id"],
                message=facts["message"],
                tables=tuple(facts["tables"]),
                creates=facts["creates"],
                facts=dict(facts["facts"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(str(facts.get("operation_id"))) from error


@dataclass(frozen=True, slots=True)
class Pending:
    """An intent that was found, with the store time of its last sign of life."""

    intent: Intent
    alive_at: datetime
    confirmed: bool


def arm(store: Store, intent: Intent) -> None:
    """Write an intent down; its own store time is its first lease.

    A failure has no effect: what was neither confirmed nor decided is never carried out.
    """
    try:
        with reported("none"):
            created = store.objects.create_json(layout.intent_name(intent.id), intent.to_json())
    except StorageError as error:
        error.effect = "none"
        raise
    if not created:
        raise StorageError(f"intent {intent.id} exists already", kind="precondition")


def renew(store: Store, intent: Intent) -> None:
    """Show that the owner lives."""
    store.objects.renew(layout.intent_name(intent.id, "lease"), {"nonce": ids.nonce()})


def confirm(store: Store, intent: Intent, staged: Mapping[str, Any]) -> None:
    """Write down everything that was staged: from here anybody can finish the operation."""
    name = layout.intent_name(intent.id, "confirmed")
    if not store.objects.create_json(name, staged):
        raise StorageError(f"intent {intent.id} was confirmed already", kind="precondition")


def confirmation(store: Store, intent: Intent) -> dict[str, Any] | None:
    """What was staged, if the owner came that far."""
    return store.objects.read_json(layout.intent_name(intent.id, "confirmed"))


def decide(store: Store, intent: Intent, wish: Verdict) -> Verdict | None:
    """Ask for a verdict; the first one stands. None means that the intent is over.

    After a verdict the intent is looked for again: a removed verdict could be created anew.
    """
    name = layout.intent_name(intent.id, "verdict")
    verdict: Verdict | None = wish
    if not store.objects.create_json(name, {"verdict": wish}):
        found = store.objects.read_json(name)
        verdict = found.get("verdict") if found else None
        if found is not None and verdict not in ("publish", "discard"):
            raise _damaged(name)
    if store.objects.read(layout.intent_name(intent.id)) is None:
        store.objects.remove(name)
        return None
    return verdict


def retire(store: Store, intent: Intent, parts: Sequence[str] = PARTS) -> None:
    """Remove an intent that is decided and done: the intent first, its verdict last.

    What it was for is done already: a failure here is only told, the next open removes the rest.
    """
    try:
        for part in PARTS:
            if part in parts:
                store.objects.remove(layout.intent_name(intent.id, part))
    except (StorageError, OSError) as error:
        _log.warning("intent %s could not be removed: %s", intent.id, error)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing showed: intents, and parts of intents that are gone."""

    pending: tuple[Pending, ...]
    leftovers: tuple[Found, ...]


def listing(store: Store) -> Listing:
    """All intents there are and what others left: one request when there is nothing."""
    found = {one.name: one for one in store.objects.list(layout.INTENTS)}
    listed = [name for name in found if name.endswith(".json")]
    pending = [one for name in listed if (one := _pending(store, name, found)) is not None]
    left = [one for name, one in found.items() if _left(name) and _owner(name) not in found]
    return Listing(tuple(pending), tuple(left))


def sweep(store: Store, leftovers: Sequence[Found], at: datetime) -> None:
    """Remove old parts of intents that are gone: without its intent a part decides nothing."""
    for one in leftovers:
        if at - one.modified > LEASE and store.objects.read(_owner(one.name)) is None:
            store.objects.remove(one.name)


def _left(name: str) -> bool:
    return name.rpartition(".")[2] in {"confirmed", "lease", "verdict", "tick"}


def _owner(name: str) -> str:
    return f"{name.rpartition('.')[0]}.json"


def _pending(store: Store, name: str, found: Mapping[str, Found]) -> Pending | None:
    facts = store.objects.read_json(name)
    if facts is None:  # its owner ended between the listing and the reading
        return None
    intent = Intent.from_json(facts)
    if layout.intent_name(intent.id) != name:
        raise _damaged(name)
    lease = found.get(layout.intent_name(intent.id, "lease"))
    alive_at = max(found[name].modified, lease.modified) if lease else found[name].modified
    confirmed = layout.intent_name(intent.id, "confirmed") in found
    return Pending(intent, alive_at, confirmed)


def _damaged(name: str) -> StorageError:
    message = f"the record of an unfinished operation, {name}, is damaged; it was kept"
    hint = "open read-only to read; restore the file, or move it away if the operation can be lost"
    return StorageError(message, kind="permanent", effect="none", hint=hint)


def _other_version(facts: Mapping[str, Any]) -> StorageError:
    name, found = facts.get("operation_id"), facts.get("schema_version")
    message = f"the unfinished operation {name} was written by another release (version {found})"
    hint = "upgrade, then open again; nothing was changed"
    return StorageError(message, kind="configuration", effect="none", hint=hint)


def store_time(store: Store) -> datetime:
    """The time by the clock of the store itself: ages are differences of its times only."""
    name = f"{layout.INTENTS}/clock-{ids.new_ulid()}.tick"
    store.objects.create_bytes(name, b"")
    try:
        return next(one.modified for one in store.objects.list(layout.INTENTS) if one.name == name)
    finally:
        store.objects.remove(name)


def expired(one: Pending, at: datetime) -> bool:
    """Whether the owner has shown no life for the length of a lease."""
    return at - one.alive_at > LEASE
