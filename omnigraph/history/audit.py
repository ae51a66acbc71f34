"""Recovery records: what became of operations whose owner died, one object per outcome.

Owns the list that `recovery list` shows. A record is written once, under the id of its operation,
so resolving an operation twice leaves one record. An unreadable record never hides the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .intent import Intent

ACTOR = "omnigraph:recovery"
Settled = Literal["finished", "refused", "discarded", "dropped"]
Kind = Settled | Literal["set_aside", "repaired", "seen", "unreadable"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one recovered operation.

    `heads` maps table directories to the HEAD version up to which changes of external writers were
    reported. `error` says why an operation was set aside or could not be carried out, `actor` who
    resolved or dropped it. The kind `unreadable` marks a record that is itself damaged.
    """

    operation_id: str
    kind: Kind
    operation: str
    branch: str
    for_actor: str | None
    commit_id: str | None
    recorded_at: int
    heads: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    actor: str = ACTOR

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is stored and displayed."""
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


def record(store: Store, intent: Intent, kind: Kind, error: str | None = None) -> Outcome:
    """Record how an intent ended; the first record of an operation wins."""
    outcome = outcome_of(intent, kind, error)
    _write(store, intent.id, outcome)
    return outcome


def record_unsettled(store: Store, outcome: Outcome) -> None:
    """Record that an operation was set aside; its final outcome gets a record of its own."""
    _write(store, f"{outcome.operation_id}-set_aside", outcome)


def record_dropped(store: Store, outcome: Outcome) -> None:
    """Record that an operation was given up on request."""
    _write(store, outcome.operation_id, outcome)


def outcome_of(intent: Intent, kind: Kind, error: str | None = None) -> Outcome:
    """Build the record of an operation, dated now."""
    known = (intent.operation, intent.branch, intent.actor, intent.commit_id, ids.now_micros())
    return Outcome(intent.id, kind, *known, error=error)


def outcome_of_unreadable(operation_id: str, kind: Kind, error: str | None = None) -> Outcome:
    """Build the record of an operation of which only the id is known."""
    return Outcome(operation_id, kind, "unknown", "", None, None, ids.now_micros(), error=error)


def _write(store: Store, name: str, outcome: Outcome) -> None:
    store.objects.create_json(f"{layout.AUDIT}/{name}.json", outcome.to_json())


def record_set_aside(store: Store, event: str, branch: str) -> Outcome:
    """Record that a torn manifest version was set aside."""
    outcome = Outcome(event, "set_aside", "set_aside", branch, None, None, ids.now_micros())
    store.objects.create_json(f"{layout.AUDIT}/{event}.json", outcome.to_json())
    return outcome


def record_repair(store: Store, commit_id: str, branch: str, actor: str | None) -> Outcome:
    """Record that rows of external writers were adopted, under the id of the adopting commit."""
    known = ids.now_micros()
    outcome = Outcome(commit_id, "repaired", "repair", branch, actor, commit_id, known)
    store.objects.create_json(f"{layout.AUDIT}/{commit_id}.json", outcome.to_json())
    return outcome


def record_seen(store: Store, branch: str, actor: str | None, heads: Mapping[str, int]) -> Outcome:
    """Record that commits of external writers were reported and can only be left alone."""
    event, known = ids.new_ulid(), ids.now_micros()
    outcome = Outcome(event, "seen", "repair", branch, actor, None, known, dict(heads))
    store.objects.create_json(f"{layout.AUDIT}/{event}.json", outcome.to_json())
    return outcome


def list_outcomes(store: Store) -> list[Outcome]:
    """Return all records, oldest operation first; an unreadable one is listed as such."""
    listed = (
        item.name.removeprefix(f"{layout.AUDIT}/") for item in store.objects.list(layout.AUDIT)
    )
    names = [name for name in listed if name.endswith(".json") and "/" not in name]
    outcomes = (_read(store, name.removesuffix(".json")) for name in names)
    return [one for one in outcomes if one is not None]


def _read(store: Store, name: str) -> Outcome | None:
    """Read one record; None if it no longer exists."""
    try:
        facts = store.objects.read_json(f"{layout.AUDIT}/{name}.json")
        return None if facts is None else _outcome(facts)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        return outcome_of_unreadable(name, "unreadable", error.message)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"{layout.AUDIT}/{name}.json is damaged ({type(error).__name__}: {error})"
        return outcome_of_unreadable(name, "unreadable", message)


def _outcome(facts: Mapping[str, Any]) -> Outcome:
    return Outcome(
        facts["operation_id"],
        facts["recovery_kind"],
        facts["operation"],
        facts["graph_branch"],
        facts.get("recovery_for_actor"),
        facts.get("graph_commit_id"),
        facts["created_at"],
        {str(name): int(version) for name, version in facts.get("heads", {}).items()},
        facts.get("error"),
        facts.get("actor_id") or ACTOR,
    )
