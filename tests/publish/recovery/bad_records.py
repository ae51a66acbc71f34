"""Bad records of unfinished operations on a disk or on S3, and what must still work.

A poison writes what a crash, a damaged disk or another release could leave in a root. `exercise`
then uses every verb that looks at `__recovery`; none of them may fail.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.history.refs import find_ref
from omnigraph.publish import intent as intents
from omnigraph.publish.intent import Intent
from omnigraph.publish.recover import recover
from omnigraph.storage import layout
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import Store, open_store
from tests.crash.verbs import OVERDUE, overdue

SCHEMA = "node Person { name: String @key  age: I64? }\nnode City { name: String @key }"
ID = "01J00000000000000000000000"
CREATED = "01J00000000000000000000001"
COMMIT = "01J00000000000000000000002"
NOWHERE = "01J0000000000000000000000X"  # the ULID of a branch that does not exist
LONG_NAME = "x" * 1200  # no store takes it
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Poison:
    """What is put into `__recovery`, by part."""

    parts: dict[str, bytes]


def record(graph: Graph, operation: str = "load", **changes: Any) -> Facts:
    """The stored form of an intent on main, changed member by member."""
    head = graph.head.id
    base = Intent(ID, operation, "main", "main", head, 1, COMMIT, tables=("node:Person",))
    if operation in ("branch_create", "tag_create"):
        base = replace(base, commit_id=None, created_ulid=CREATED, facts={"name": "fresh"})
    if operation == "branch_rename":
        ref = find_ref(graph.snapshot.store, "side")
        facts = {"name": "other", "number": 1, "old_number": ref.number}
        facts |= {"parent": ref.parent, "fork_commit": ref.fork_commit}
        base = replace(base, branch="side", branch_ulid=ref.ulid, commit_id=None, facts=facts)
    if operation == "read":
        base = replace(base, commit_id=None)
    return base.to_json() | changes


def encode(facts: Any) -> bytes:
    """JSON as it is stored."""
    return json.dumps(facts).encode()


def decided(facts: Facts, **parts: bytes) -> Poison:
    """An intent that was decided to be carried out."""
    return Poison({"json": encode(facts), "verdict": encode({"verdict": "publish"}), **parts})


def put(store: Store, poison: Poison) -> None:
    """Write the parts of a poison, whatever store it is."""
    for part, body in poison.parts.items():
        assert store.objects.backend.create(layout.intent_name(ID, part), body)


PLAN: Facts = {
    "operation": "load",
    "writes": {},
    "requirements": [],
    "maintenance": False,
    "registered": {},
    "dropped": [],
    "adopted": {},
    "schema": None,
    "foreign": [],
    "merged": None,
    "streams": {},
    "details": {},
}
_STAGED = {
    "location": "nodes/nowhere",
    "fields": [],
    "touched": [],
    "rows": 1,
    "files": ["nodes/nowhere/data/lost.lance"],
    "kind": "append",
    "new": [],
}
Make = Callable[[Graph], Poison]
# Operations that a verdict lets somebody carry out, and which cannot be.
BROKEN: dict[str, Make] = {
    "branch with a name too long": lambda g: decided(record(g, "branch_create", facts={"name": LONG_NAME})),
    "tag with a name too long": lambda g: decided(record(g, "tag_create", facts={"name": LONG_NAME})),
    "rename to a name too long": lambda g: decided(
        record(g, "branch_rename", facts=record(g, "branch_rename")["facts"] | {"name": LONG_NAME})
    ),
    "branch without a name": lambda g: decided(record(g, "branch_create", facts={})),
    "branch that creates nothing": lambda g: decided(record(g, "branch_create", creates=None)),
    "tag without a name": lambda g: decided(record(g, "tag_create", facts={})),
    "rename without numbers": lambda g: decided(record(g, "branch_rename", facts={"name": "other"})),
    "load of a table that does not exist": lambda g: decided(
        record(g), confirmed=encode(PLAN | {"writes": {"node:Ghost": _STAGED}})
    ),
    "load of files that are missing": lambda g: decided(
        record(g), confirmed=encode(PLAN | {"writes": {"node:Person": _STAGED}})
    ),
    "load on a branch that does not exist": lambda g: decided(
        record(g, branch="ghost", branch_ulid=NOWHERE), confirmed=encode(PLAN)
    ),
    "load whose plan is gone": lambda g: decided(record(g)),
    "load with an empty plan": lambda g: decided(record(g), confirmed=b""),
    "load with a torn plan": lambda g: decided(record(g), confirmed=encode(PLAN)[:40]),
    "load with a plan of another shape": lambda g: decided(record(g), confirmed=encode(PLAN | {"writes": [1, 2]})),
    "merge with a plan of another shape": lambda g: decided(
        record(g, "merge"), confirmed=encode({"adopted": {"node:Person": 7}})
    ),
    "schema change with a plan that is a list": lambda g: decided(record(g, "schema_apply"), confirmed=b"[]"),
    "damaged verdict": lambda g: Poison({"json": encode(record(g)), "verdict": b"{"}),
}
# Records that nobody can read, or not this release.
UNREADABLE: dict[str, Make] = {
    "empty": lambda _: Poison({"json": b""}),
    "torn": lambda g: Poison({"json": encode(record(g))[:50]}),
    "garbage": lambda _: Poison({"json": bytes(range(256))}),
    "no object": lambda _: Poison({"json": b"[]"}),
    "members missing": lambda _: Poison({"json": encode({"schema_version": 1, "operation_id": ID})}),
    "members of another type": lambda g: Poison({"json": encode(record(g, branch=7, tables={"a": 1}, facts=[]))}),
    "another id than its name": lambda g: Poison({"json": encode(record(g, operation_id=COMMIT))}),
}
NEWER: dict[str, Make] = {
    "newer release": lambda _: Poison({"json": encode({"schema_version": 99, "operation_id": ID})}),
    "unknown operation": lambda g: decided(record(g, "branch_move", commit_id=None)),
    "plan of a newer release": lambda g: decided(record(g), confirmed=encode(PLAN | {"plan_version": 99})),
}
EVERY = {**BROKEN, **UNREADABLE, **NEWER}


def contents(graph: Graph) -> dict[str, list[Any]]:
    """What every branch shows; what `exercise` adds is left out."""
    return {
        name: sorted(
            (row["p.name"], row["p.age"])
            for row in graph.checkout(name).query("match { $p: Person } return { $p.name, $p.age }").to_dicts()
            if not row["p.name"].startswith("new")
        )
        for name in graph.branches
    }


def exercise(uri: str, mark: str = "new") -> Graph:
    """Use the graph as several processes would, with every lease run out."""
    with overdue():
        graph = omnigraph.open(uri, durability="os")
        graph.insert("Person", {"name": f"{mark}-insert"})
        graph.load({"Person": [{"name": f"{mark}-load"}]}, mode="append")
        graph.maintenance.optimize()
        graph.branches.create(f"{mark}-branch").insert("Person", {"name": f"{mark}-there"})
        graph.branches.delete(f"{mark}-branch", force=True)
        graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
        assert graph.maintenance.check(), graph.maintenance.check().findings
        assert graph.maintenance.status().datasets
        again = omnigraph.open(uri, durability="os")
        assert f"{mark}-load" in again.nodes("Person").ids()
    return again


def parts_left(store: Store) -> set[str]:
    """Which parts of the poisoned intent are still there."""
    names = (one.name for one in store.objects.list(layout.INTENTS))
    return {name.rpartition(".")[2] for name in names if ID in name}


def recover_now(store: Store) -> list[str]:
    """Recover as the next process would, every lease run out; returns the kinds of outcomes."""
    with overdue():
        return [one.kind for one in recover(store)]


def kinds(graph: Graph) -> list[str]:
    """What the records say of the poisoned operation."""
    return [one.kind for one in graph.maintenance.operations.recoveries() if one.operation_id == ID]


def end_recovery(root: str, at: int) -> None:
    """Recover in a process of its own, which is ended right after its `at`-th effect."""
    intents.LEASE_DURATION = OVERDUE
    store = open_store(root, durability="os")
    with store.effects.failing(Fault(at, "exit")):
        recover(store)
    os._exit(0)
