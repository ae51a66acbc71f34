"""Intents: the record of what a long operation is about to do, written before it does it.

Owns arming, leases, confirmation, the single verdict, removal, and the listing of intents. An
intent protects what it refers to from cleanup, and lets others finish or discard the operation
after its owner died. Nothing waits for an intent, and an unreadable one blocks nobody.
"""

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.failures import reported
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store

from .intent_record import Intent, damaged

_log = logging.getLogger("omnigraph")
LEASE = timedelta(seconds=60)  # measured in store time
RENEWAL = 20.0  # seconds
PARTS = ("json", "confirmed", "lease", "verdict")
# Parts that make recovery skip an intent: nothing could resolve it, or it needs a newer release.
SET_ASIDE, NEWER = MARKERS = ("set_aside", "newer")

Verdict = Literal["publish", "discard"]
__all__ = [
    "Intent",
    "Listing",
    "Pending",
    "SetAside",
    "Unreadable",
    "Verdict",
    "arm",
    "confirm",
    "confirmation",
    "decide",
    "expired",
    "listing",
    "renew",
    "retire",
    "set_aside_names",
    "store_time",
    "sweep",
]


@dataclass(frozen=True, slots=True)
class Pending:
    """An intent with the store times of its arming and of its last sign of life."""

    intent: Intent
    alive_at: datetime
    confirmed: bool
    armed_at: datetime

    @property
    def id(self) -> str:
        """The id of the operation."""
        return self.intent.id


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An intent that cannot be read, and why.

    The error tells whether it is damaged, was written by a newer release, or may be readable later.
    """

    id: str
    error: StorageError
    alive_at: datetime
    armed_at: datetime


@dataclass(frozen=True, slots=True)
class SetAside:
    """An intent that recovery could not resolve and skips until an operator decides.

    `needs` is what a release must support to resolve it; such a release resolves it on its own.
    """

    kept: Pending | Unreadable
    error: str
    needs: Mapping[str, Any]
    recorded_at: int | None = None

    @property
    def id(self) -> str:
        """The id of the operation."""
        return self.kept.id

    @property
    def intent(self) -> Intent | None:
        """The operation, unless its record cannot be read."""
        return self.kept.intent if isinstance(self.kept, Pending) else None

    def to_json(self) -> dict[str, Any]:
        """Return the operation as it is displayed; members that cannot be read are null."""
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
    """Write an intent; its creation in store time counts as its first lease.

    A failure has no effect: an intent that was neither confirmed nor decided is never carried out.
    """
    try:
        with reported("none"):
            created = store.objects.create_json(layout.intent_name(intent.id), intent.to_json())
    except StorageError as error:
        error.effect = "none"
        raise
    if not created:
        raise StorageError(f"intent {intent.id} already exists", kind="precondition")


def renew(store: Store, intent: Intent) -> None:
    """Renew the lease: show that the owner is alive."""
    store.objects.renew(layout.intent_name(intent.id, "lease"), {"nonce": ids.nonce()})


def confirm(store: Store, intent: Intent, staged: Mapping[str, Any]) -> None:
    """Write everything that was staged: from here on any process can finish the operation."""
    name = layout.intent_name(intent.id, "confirmed")
    if not store.objects.create_json(name, staged):
        raise StorageError(f"intent {intent.id} was already confirmed", kind="precondition")


def confirmation(store: Store, intent: Intent) -> dict[str, Any] | None:
    """Return what was staged; None if the owner did not get that far."""
    return store.objects.read_json(layout.intent_name(intent.id, "confirmed"))


def decide(store: Store, intent: Intent, wish: Verdict) -> Verdict | None:
    """Request a verdict and return the one that holds, the first; None if the intent is over.

    The intent is looked up again afterwards: a verdict that was removed could be created anew.
    """
    name = layout.intent_name(intent.id, "verdict")
    verdict: Verdict | None = wish
    if not store.objects.create_json(name, {"verdict": wish}):
        found = store.objects.read_json(name)
        verdict = found.get("verdict") if found else None
        if found is not None and verdict not in ("publish", "discard"):
            raise damaged(name)
    if store.objects.read(layout.intent_name(intent.id)) is None:
        store.objects.remove(name)
        return None
    return verdict


def retire(store: Store, intent: Intent, parts: Sequence[str] = PARTS) -> None:
    """Remove an intent that is decided and carried out: the intent first, its verdict last.

    Its work is already done, so a failure is only logged; the next open removes the rest.
    """
    try:
        for part in PARTS:
            if part in parts:
                store.objects.remove(layout.intent_name(intent.id, part))
    except (StorageError, OSError) as error:
        _log.warning("intent %s could not be removed: %s", intent.id, error)


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of a listing: intents, and parts whose intent is gone.

    `unreadable` are those not set aside yet, `foreign_files` were written by other programs.
    """

    pending: tuple[Pending, ...]
    leftovers: tuple[Found, ...]
    unreadable: tuple[Unreadable, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    strays: tuple[Found, ...] = ()


def listing(store: Store) -> Listing:
    """List all intents and leftover parts: one request if there are none.

    An unreadable intent is part of the result; only a failed listing raises.
    """
    found = {item.name: item for item in store.objects.list(layout.INTENTS)}
    parsed = {name: layout.parse_intent_name(name) for name in found}
    every = [known[0] for known in parsed.values() if known is not None and known[1] == "json"]
    kept = [one for ulid in every if (one := _read(store, ulid, found)) is not None]
    aside = {one.id: part for one in kept if (part := _marker(one.id, found)) is not None}
    waiting = [one for one in kept if one.id not in aside]
    ours = {name for name, known in parsed.items() if known is not None or _is_tick(name)}
    parts = {name for name in ours if not name.endswith(".json")}
    return Listing(
        tuple(one for one in waiting if isinstance(one, Pending)),
        tuple(found[name] for name in found if name in parts and _owner(name) not in found),
        tuple(one for one in waiting if isinstance(one, Unreadable)),
        tuple(_read_marker(store, one, aside[one.id]) for one in kept if one.id in aside),
        tuple(found[name] for name in found if name not in ours),
    )


def sweep(store: Store, leftovers: Sequence[Found], at: datetime) -> None:
    """Remove old parts whose intent is gone: without its intent a part decides nothing."""
    for one in leftovers:
        if abs(at - one.modified) > LEASE and store.objects.read(_owner(one.name)) is None:
            store.objects.remove(one.name)


def set_aside_names(store: Store) -> list[Found]:
    """Return all files of intents that are set aside: a copy of the graph includes them."""
    found = store.objects.list(layout.INTENTS)
    stems = {one.name: one.name.rpartition(".")[0] for one in found}
    aside = {stem for name, stem in stems.items() if name.rpartition(".")[2] in MARKERS}
    return [one for one in found if stems[one.name] in aside]


def _marker(ulid: str, found: Container[str]) -> str | None:
    """Return the part that sets an intent aside, if there is one."""
    parts = (part for part in MARKERS if layout.intent_name(ulid, part) in found)
    return next(parts, None)


def _is_tick(name: str) -> bool:
    return name.startswith(f"{layout.INTENTS}/clock-") and name.endswith(".tick")


def _owner(name: str) -> str:
    return f"{name.rpartition('.')[0]}.json"


def _read(store: Store, ulid: str, found: Mapping[str, Found]) -> Pending | Unreadable | None:
    """Read an intent of a listing; None if its owner removed it after the listing."""
    name = layout.intent_name(ulid)
    armed_at = found[name].modified
    lease = found.get(layout.intent_name(ulid, "lease"))
    alive_at = max(armed_at, lease.modified) if lease else armed_at
    try:
        facts = store.objects.read_json(name)
        if facts is None:
            return None
        intent = Intent.from_json(facts)
        if intent.id != ulid:
            raise damaged(name)
    except StorageError as error:
        return Unreadable(ulid, error, alive_at, armed_at)
    return Pending(intent, alive_at, layout.intent_name(ulid, "confirmed") in found, armed_at)


def _read_marker(store: Store, kept: Pending | Unreadable, part: str) -> SetAside:
    """Read why an intent was set aside; a damaged marker still sets it aside."""
    try:
        facts = store.objects.read_json(layout.intent_name(kept.id, part)) or {}
    except StorageError as error:
        facts = {"error": f"the reason it was set aside cannot be read: {error.message}"}
    needs, recorded_at = facts.get("needs"), facts.get("recorded_at")
    return SetAside(
        kept,
        str(facts.get("error", "")),
        needs if isinstance(needs, dict) else {},
        recorded_at if isinstance(recorded_at, int) else None,
    )


def store_time(store: Store) -> datetime:
    """Return the time of the store's own clock: ages are differences between its times only."""
    name = f"{layout.INTENTS}/clock-{ids.new_ulid()}.tick"
    store.objects.create_bytes(name, b"")
    try:
        return next(one.modified for one in store.objects.list(layout.INTENTS) if one.name == name)
    finally:
        store.objects.remove(name)


def expired(one: Pending | Unreadable, at: datetime) -> bool:
    """Return whether the owner has given no sign of life for the length of a lease.

    A lease from the future is no sign of life: the clock of the store was set back, or the file
    time was changed. A live owner renews it by the current clock.
    """
    return abs(at - one.alive_at) > LEASE
