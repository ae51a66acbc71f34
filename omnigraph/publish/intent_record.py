"""The data class for a long operation, and its stored form.

This module defines an intent's members and rejects records that this release cannot read. It does no I/O. If finishing
a new kind of operation takes more than publishing its plan, increment `SCHEMA_VERSION`, so that older releases leave
such operations to newer releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import StorageError

SCHEMA_VERSION = 1
_REQUIRED_TEXT, _OPTIONAL_TEXT = (str,), (str, type(None))
_MEMBER_TYPES: Mapping[str, tuple[type, ...]] = {
    "operation_id": _REQUIRED_TEXT,
    "operation": _REQUIRED_TEXT,
    "branch": _REQUIRED_TEXT,
    "branch_ulid": _REQUIRED_TEXT,
    "base_commit": _REQUIRED_TEXT,
    "created_at": (int,),
    "commit_id": _OPTIONAL_TEXT,
    "actor_id": _OPTIONAL_TEXT,
    "message": _OPTIONAL_TEXT,
    "tables": (list,),
    "creates": _OPTIONAL_TEXT,
    "facts": (dict,),
}


class NewerReleaseError(StorageError):
    """The operation was written by a newer release.

    `needs` lists the features that a release must support to resolve the operation.
    """

    code = "StorageError"
    kind = "configuration"
    effect = "none"
    hint = "open the graph for writing with a newer release, which resolves the operation"
    needs: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Intent:
    """A long operation, as recorded before it starts.

    `commit_id` is the commit that the operation will publish (None if it creates a branch), and `created_ulid` is the
    ULID of the branch or tag that it will create. `facts` contains the data that this kind of operation needs to
    finish.
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
    created_ulid: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the intent in its stored form, in which all paths are relative to the root."""
        return {
            "schema_version": SCHEMA_VERSION,
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
            "creates": self.created_ulid,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_json(cls, stored_facts: Mapping[str, Any]) -> "Intent":
        """Parse a stored intent.

        Raises `NewerReleaseError` if a newer release wrote the intent, and `StorageError` if the intent is damaged.
        """
        schema_version = stored_facts.get("schema_version")
        if isinstance(schema_version, int) and schema_version > SCHEMA_VERSION:
            raise newer_release_error(stored_facts.get("operation_id"), schema_version=schema_version)
        is_well_formed = all(
            isinstance(stored_facts.get(member_name, ...), allowed_types)
            for member_name, allowed_types in _MEMBER_TYPES.items()
        )
        if schema_version != SCHEMA_VERSION or not is_well_formed:
            raise damaged_record_error(str(stored_facts.get("operation_id")))
        return cls(
            id=stored_facts["operation_id"],
            operation=stored_facts["operation"],
            branch=stored_facts["branch"],
            branch_ulid=stored_facts["branch_ulid"],
            base_commit=stored_facts["base_commit"],
            created_at=stored_facts["created_at"],
            commit_id=stored_facts["commit_id"],
            actor=stored_facts["actor_id"],
            message=stored_facts["message"],
            tables=tuple(stored_facts["tables"]),
            created_ulid=stored_facts["creates"],
            facts=dict(stored_facts["facts"]),
        )


def newer_release_error(operation_id: object, **needs: Any) -> NewerReleaseError:
    """Return the error for an operation that this release does not support."""
    requirements = ", ".join(f"{requirement.replace('_', ' ')} {value}" for requirement, value in needs.items())
    message = f"the unfinished operation {operation_id} was written by a newer release ({requirements})"
    error = NewerReleaseError(message)
    error.needs = needs
    return error


def damaged_record_error(record_name: str) -> StorageError:
    """Return the error for a record that is damaged."""
    message = f"{record_name}, the record of an unfinished operation, is damaged; the file was kept"
    hint = "restore the file from a backup, then retry; or drop the operation"
    return StorageError(message, kind="permanent", effect="none", hint=hint)
