"""The record of a long operation, and its stored form.

Owns the members of an intent, and the rejection of records that this release cannot read. It does
no I/O. An operation that needs more than publishing its plan must raise `SCHEMA_VERSION`: older
releases then keep it until a newer one resolves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import StorageError

SCHEMA = 1
_TEXT, _MAYBE = (str,), (str, type(None))
_MEMBERS: Mapping[str, tuple[type, ...]] = {
    "operation_id": _TEXT,
    "operation": _TEXT,
    "branch": _TEXT,
    "branch_ulid": _TEXT,
    "base_commit": _TEXT,
    "created_at": (int,),
    "commit_id": _MAYBE,
    "actor_id": _MAYBE,
    "message": _MAYBE,
    "tables": (list,),
    "creates": _MAYBE,
    "facts": (dict,),
}


class NewerReleaseError(StorageError):
    """An operation of a newer release; `needs` is what a release must support to resolve it."""

    code = "StorageError"
    kind = "configuration"
    effect = "none"
    hint = "open the graph for writing with a newer release, which resolves the operation"
    needs: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Intent:
    """A long operation.

    `commit_id` is the commit it will publish (None for a branch creation), `created_ulid` the ULID
    of the branch or tag it will create, `facts` whatever its kind needs to finish it.
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
        """Return the intent as it is stored; everything in it is relative to the root."""
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
        """Parse the intent of a stored object.

        Raises `NewerReleaseError` for one of a newer release, `StorageError` for a damaged one.
        """
        version = facts.get("schema_version")
        if isinstance(version, int) and version > SCHEMA:
            raise newer_release(facts.get("operation_id"), schema_version=version)
        known = all(isinstance(facts.get(name, ...), kinds) for name, kinds in _MEMBERS.items())
        if version != SCHEMA or not known:
            raise damaged(str(facts.get("operation_id")))
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


def newer_release(operation_id: object, **needs: Any) -> NewerReleaseError:
    """Return the error for an operation that this release does not support."""
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in needs.items())
    message = f"the unfinished operation {operation_id} was written by a newer release ({told})"
    error = NewerReleaseError(message)
    error.needs = needs
    return error


def damaged(name: str) -> StorageError:
    """Return the error for a record that differs from what was written."""
    message = f"the record of an unfinished operation, {name}, is damaged; it was kept"
    hint = "restore the file from a copy, then retry; or drop the operation"
    return StorageError(message, kind="permanent", effect="none", hint=hint)
