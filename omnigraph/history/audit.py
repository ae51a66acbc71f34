"""What became of operations whose owner was gone: one object per outcome, written once.

Owns the list that `recovery list` shows. An outcome is recorded under the id of its operation, so
that finding it twice leaves one record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph import ids
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .intent import Intent

ACTOR = "omnigraph:recovery"
Kind = Literal["finished", "refused", "discarded", "set_aside", "repaired", "seen"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One settled operation.

    `heads` are the tables, by directory, of which somebody saw what foreign tools did, and up to
    which version of their HEAD.
    """

    operation_id: str
    kind: Kind
    operation: str
    branch: str
    for_actor: str | None
    commit_id: str | None
    recorded_at: int
    heads: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record as it is stored and shown."""
        return {
            "operation_id": self.operation_id,
            "recovery_kind": self.kind,
            "operation": self.operation,
            "graph_branch": self.branch,
            "recovery_for_actor": self.for_actor,
            "graph_commit_id": self.commit_id,
            "actor_id": ACTOR,
            "created_at": self.recorded_at,
            **({"heads": dict(self.heads)} if self.heads else {}),
        }


def record(store: Store, intent: Intent, kind: Kind) -> Outcome:
    """Write down how an intent ended; the first record of an operation stands."""
    outcome = Outcome(
        intent.id,
        kind,
        intent.operation,
        intent.branch,
        intent.actor,
        intent.commit_id,
        ids.now_micros(),
    )
    store.objects.create_json(f"{layout.AUDIT}/{intent.id}.json", outcome.to_json())
    return outcome


def record_set_aside(store: Store, event: str, branch: str) -> Outcome:
    """Write down that a torn manifest version was set aside."""
    outcome = Outcome(event, "set_aside", "set_aside", branch, None, None, ids.now_micros())
    store.objects.create_json(f"{layout.AUDIT}/{event}.json", outcome.to_json())
    return outcome


def record_repair(store: Store, commit_id: str, branch: str, actor: str | None) -> Outcome:
    """Write down that rows of foreign tools were taken over, under the commit that did it."""
    known = ids.now_micros()
    outcome = Outcome(commit_id, "repaired", "repair", branch, actor, commit_id, known)
    store.objects.create_json(f"{layout.AUDIT}/{commit_id}.json", outcome.to_json())
    return outcome


def record_seen(store: Store, branch: str, actor: str | None, heads: Mapping[str, int]) -> Outcome:
    """Write down that somebody was told of foreign commits that can only be left alone."""
    event, known = ids.new_ulid(), ids.now_micros()
    outcome = Outcome(event, "seen", "repair", branch, actor, None, known, dict(heads))
    store.objects.create_json(f"{layout.AUDIT}/{event}.json", outcome.to_json())
    return outcome


def list_outcomes(store: Store) -> list[Outcome]:
    """All records, oldest operation first."""
    listed = (one.name for one in store.objects.list(layout.AUDIT))
    names = [name for name in listed if name.endswith(".json")]
    found = (store.objects.read_json(name) for name in names)
    return [_outcome(facts) for facts in found if facts is not None]


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
    )
