"""Confirmed plans as JSON, so that another process can publish them after their owner died.

Owns the JSON form of a plan. It must hold everything that publishing uses: a missing member would
go unnoticed until a recovery publishes the plan.
"""

from collections.abc import Mapping
from typing import Any

from omnigraph.storage.checksums import FileChecksum
from omnigraph.storage.staged import staged_from_json, staged_to_json

from .commit import Commit, SchemaRow, TableEntry
from .plan import PublishPlan, WriteTxn, requirement_from_json

PLAN = 1  # version of this JSON form


def plan_to_json(plan: PublishPlan) -> dict[str, Any]:
    """Return everything that was staged, as JSON."""
    return {
        "plan_version": PLAN,
        "operation": plan.operation,
        "writes": {key: staged_to_json(staged) for key, staged in plan.writes.items()},
        "requirements": [requirement.to_json() for requirement in plan.requirements],
        "maintenance": plan.maintenance,
        "registered": {key: entry.to_json() for key, entry in plan.registered.items()},
        "dropped": sorted(plan.dropped),
        "adopted": {key: entry.to_json() for key, entry in plan.adopted.items()},
        "schema": [plan.schema.hash, plan.schema.location] if plan.schema else None,
        "foreign": [_commit_to_json(commit) for commit in plan.foreign],
        "merged": plan.merged,
        "streams": dict(plan.streams),
        "details": dict(plan.details),
        "files": {name: checksum.to_json() for name, checksum in plan.files.items()},
    }


def plan_from_json(facts: Mapping[str, Any], txn: WriteTxn) -> PublishPlan:
    """Parse a plan; its files are protected by their intent, whatever the epoch."""
    schema = facts["schema"]
    return PublishPlan(
        facts["operation"],
        {key: staged_from_json(staged, txn.table(key)) for key, staged in facts["writes"].items()},
        tuple(requirement_from_json(condition) for condition in facts["requirements"]),
        maintenance=facts["maintenance"],
        registered=_entries(facts["registered"]),
        dropped=frozenset(facts["dropped"]),
        adopted=_entries(facts["adopted"]),
        schema=SchemaRow(*schema) if schema else None,
        foreign=tuple(_commit_from_json(packed) for packed in facts["foreign"]),
        merged=facts["merged"],
        streams=facts["streams"],
        details=facts.get("details", {}),
        files={k: FileChecksum.from_json(v) for k, v in facts.get("files", {}).items()},
        epoch=None,
    )


def plan_version(facts: Mapping[str, Any]) -> int:
    """Return the version of the JSON form of a plan; the first releases wrote none."""
    version = facts.get("plan_version", 1)
    if not isinstance(version, int):
        raise TypeError(f"plan_version is {version!r}")
    return version


def _entries(facts: Mapping[str, Any]) -> dict[str, TableEntry]:
    return {key: TableEntry.from_json(key, one) for key, one in facts.items()}


def _commit_to_json(one: Commit) -> list[Any]:
    return [one.id, one.branch, one.manifest_version, one.to_json()]


def _commit_from_json(facts: list[Any]) -> Commit:
    return Commit.from_json(*facts)
