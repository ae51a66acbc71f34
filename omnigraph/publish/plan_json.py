"""Store confirmed plans as JSON, so that another process can publish them if their owner dies.

This module defines the JSON form of a plan and its requirements. The JSON form must include everything that publishing
uses: a missing member would go unnoticed until recovery publishes the plan.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.publish.requirements import (
    AbsentIds,
    AbsentTable,
    ExpectedHead,
    Requirement,
    SameContent,
    SameHead,
    SameLookupResult,
    SameSchema,
    SameVersion,
)
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.checksums import FileChecksum
from omnigraph.storage.staged_json import staged_from_json, staged_to_json
from omnigraph.values.table_key import TableKey

from .read_set import UnchangedReads

PLAN_VERSION = 1  # version of this JSON form
_REQUIREMENT_FACTORIES: dict[str, Callable[..., Requirement]] = {
    "same_content": lambda key, *facts: SameContent(TableKey(key), *facts),
    "same_version": lambda key, *facts: SameVersion(TableKey(key), *facts),
    "same_head": SameHead,
    "same_schema": SameSchema,
    "head_was": ExpectedHead,
    "absent_ids": lambda key, values: AbsentIds(TableKey(key), tuple(values)),
    "absent_table": lambda key: AbsentTable(TableKey(key)),
    "same_answer": lambda key, content, where, answer, columns: SameLookupResult(
        TableKey(key), content, tuple((name, values) for name, values in where), answer, tuple(columns)
    ),
    "watch": UnchangedReads.from_json,
}


def plan_to_json(plan: PublishPlan) -> dict[str, Any]:
    """Return a plan as JSON data."""
    return {
        "plan_version": PLAN_VERSION,
        "operation": plan.operation,
        "writes": {table_key: staged_to_json(staged) for table_key, staged in plan.writes.items()},
        "requirements": [requirement.to_json() for requirement in plan.requirements],
        "maintenance": plan.maintenance,
        "registered": {table_key: entry.to_json() for table_key, entry in plan.new_tables.items()},
        "dropped": sorted(plan.dropped_tables),
        "adopted": {table_key: entry.to_json() for table_key, entry in plan.adopted_tables.items()},
        "schema": [plan.schema.hash, plan.schema.location] if plan.schema else None,
        "foreign": [_commit_to_json(commit) for commit in plan.incoming_commits],
        "merged": plan.merged_head,
        "streams": dict(plan.streams),
        "details": dict(plan.details),
        "files": {file_name: checksum.to_json() for file_name, checksum in plan.file_checksums.items()},
    }


def plan_from_json(stored_plan: Mapping[str, Any], txn: WriteTxn) -> PublishPlan:
    """Restore a plan from JSON data. An intent protects the plan's files, so the plan has no collector epoch."""
    schema = stored_plan["schema"]
    return PublishPlan(
        stored_plan["operation"],
        {
            (table_key := TableKey(key_text)): staged_from_json(packed_staged, txn.table(table_key))
            for key_text, packed_staged in stored_plan["writes"].items()
        },
        tuple(requirement_from_json(packed_requirement) for packed_requirement in stored_plan["requirements"]),
        maintenance=stored_plan["maintenance"],
        new_tables=_parse_table_entries(stored_plan["registered"]),
        dropped_tables=frozenset(map(TableKey, stored_plan["dropped"])),
        adopted_tables=_parse_table_entries(stored_plan["adopted"]),
        schema=SchemaRow(*schema) if schema else None,
        incoming_commits=tuple(_commit_from_json(packed_commit) for packed_commit in stored_plan["foreign"]),
        merged_head=stored_plan["merged"],
        streams=stored_plan["streams"],
        details=stored_plan.get("details", {}),
        file_checksums={
            file_name: FileChecksum.from_json(checksum_facts)
            for file_name, checksum_facts in stored_plan.get("files", {}).items()
        },
        gc_epoch=None,
    )


def requirement_from_json(encoded: Sequence[Any]) -> Requirement:
    """Parse a requirement from JSON data."""
    requirement_kind, *arguments = encoded
    return _REQUIREMENT_FACTORIES[requirement_kind](*arguments)


def plan_version(stored_plan: Mapping[str, Any]) -> int:
    """Return the version of a plan's JSON form, which is 1 if an early release stored the plan without a version."""
    version = stored_plan.get("plan_version", 1)
    if not isinstance(version, int):
        raise TypeError(f"plan_version must be an integer, not {version!r}")
    return version


def _parse_table_entries(packed_tables: Mapping[str, Any]) -> dict[TableKey, TableEntry]:
    return {
        (table_key := TableKey(key_text)): TableEntry.from_json(table_key, packed_entry)
        for key_text, packed_entry in packed_tables.items()
    }


def _commit_to_json(commit: Commit) -> list[Any]:
    return [commit.id, commit.branch, commit.manifest_version, commit.to_json()]


def _commit_from_json(packed_commit: list[Any]) -> Commit:
    return Commit.from_json(*packed_commit)
