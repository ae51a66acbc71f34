"""Errors for requests that conflict with a graph's state or history."""
# ruff: noqa: N818 - a class name states what happened and needs no `Error` suffix

from base64 import b64encode
from collections.abc import Mapping
from datetime import date
from math import isfinite
from typing import Any

from .root import ClientError, Conflict


class KeyConflict(Conflict):
    """An entity with this id already exists.

    >>> print(KeyConflict(type_key="node:Person", entity_id="ada").message)
    node type 'Person' already has an entity with id 'ada'
    """

    sentence = (
        "[line {line}: ]{entity_kind} type '{type_name}' already has"
        " [an entity with id '{entity_id}'|an entity with this id][, from line {first_input_position}]"
    )
    wire_member = "key_conflict"
    wire_facts = ("entity_kind", "type_name", "entity_id")
    hint = "use mode `merge` to update existing entities"
    entity_kind: str | None = None
    type_name: str | None = None
    entity_id: str | None = None
    line: int | None = None
    first_input_position: int | None = None

    def __init__(self, message: str | None = None, *, type_key: str | None = None, **facts: Any) -> None:
        super().__init__(message, **split_type_key(type_key), **facts)


# The messages of both read-set conflicts end with this text, which lists the changed entities and the last change.
_CHANGES_SENTENCE = (
    "[; changed since the read: {changed_ids}][ and {more_changes} more]"
    "[; last change in commit {commit_id}][ by {actor}]"
)
_RETRY_HINT = (
    "read the current state, then decide whether to retry; `graph.retry` refreshes the graph and repeats the call"
)


class VersionConflict(Conflict):
    """Entities of a type changed after they were read.

    `changed_ids` lists some of the changed entities, and `more_changes` counts the others. `commit_id` and `actor`
    identify the last change. If no ids are listed, any entity of the type may have changed.

    >>> error = VersionConflict(type_key="node:Person", expected=3, actual=4, changed_ids=("ada",), more_changes=2)
    >>> error.code, error.typed_members()["manifest_conflict"]
    ('ExpectedVersionMismatch', {'table_key': 'node:Person', 'expected': 3, 'actual': 4})
    >>> print(error.message)
    node type 'Person' is at version 4, expected 3; changed since the read: ada and 2 more
    """

    code = "ExpectedVersionMismatch"
    retryable = "fresh"
    sentence = "{entity_kind} type '{type_name}' is at version {actual}, expected {expected}" + _CHANGES_SENTENCE
    wire_facts = ("entity_kind", "type_name", "expected", "actual")
    hint = _RETRY_HINT
    entity_kind: str | None = None
    type_name: str | None = None
    expected: Any = None
    actual: Any = None
    changed_ids: tuple[str, ...] = ()
    more_changes: int | None = None
    commit_id: str | None = None
    actor: str | None = None

    def __init__(self, message: str | None = None, *, type_key: str | None = None, **facts: Any) -> None:
        super().__init__(message, **split_type_key(type_key), **facts)

    @property
    def type_key(self) -> str:
        """Return the type's kind and name as one key, for example `node:Person`."""
        return f"{self.entity_kind}:{self.type_name}"

    def typed_members(self) -> dict[str, Any]:
        """Return the conflict under its old and its new name, so that both older and newer clients recognize it."""
        return {
            "manifest_conflict": {"table_key": self.type_key, "expected": self.expected, "actual": self.actual},
            "published_dataset_version_conflict": {
                "entity_kind": self.entity_kind,
                "type_name": self.type_name,
                "expected_published_dataset_version": self.expected,
                "actual_published_dataset_version": self.actual,
            },
        }


class ReadSetConflict(Conflict):
    """The branch changed while the write was being prepared.

    If the transaction had read entities that changed, `changed_ids` lists some of them, and `more_changes` counts
    the others. `commit_id` and `actor` identify the last change.
    """

    code = "ReadSetChanged"
    retryable = "fresh"
    sentence = (
        "the branch changed while the write was being prepared[: {member}][ was {expected}][ and is now {actual}]"
        + _CHANGES_SENTENCE
    )
    wire_member = "read_set_conflict"
    wire_facts = ("member", "expected", "actual")
    hint = _RETRY_HINT
    member: str | None = None
    expected: Any = None
    actual: Any = None
    changed_ids: tuple[str, ...] = ()
    more_changes: int | None = None
    commit_id: str | None = None
    actor: str | None = None


class ConcurrentCommit(Conflict):
    """Other writers repeatedly committed first; the same write may succeed later."""

    code = "RowLevelCasContention"
    retryable = "fresh"
    prefix = "retryable storage commit conflict: "
    sentence = "retryable storage commit conflict: {reason}"
    hint = "try again when there are fewer concurrent writers"
    reason: str | None = None


class AlreadyExists(Conflict):
    """The object to create already exists."""

    sentence = "{what} already exists"
    hint = "choose a different name, or use the existing object"
    what: str | None = None


class InitializationClaimed(Conflict):
    """Another process is initializing the graph."""

    sentence = "another process is initializing '{uri}'"
    hint = "wait for the other init to finish; if it crashed, run `init` with `force` to take over"
    extended_exit_code = 1
    uri: str | None = None


class BranchBusy(Conflict):
    """The branch is in use and cannot be deleted."""

    sentence = "branch '{branch}' cannot be deleted[: {reason}]"
    hint = "delete or close everything that depends on the branch first"
    branch: str | None = None
    reason: str | None = None


class SchemaApplyDisabled(Conflict):
    """The schema of this graph is managed by its cluster."""

    hint = "change the schema in the cluster configuration, then apply the configuration"
    extended_exit_code = 1


class SchemaMismatch(Conflict):
    """A merge, reset, revert or cherry-pick is not possible, because the schemas are incompatible.

    >>> print(SchemaMismatch(source="dev", target="main").message)
    branches 'dev' and 'main' cannot be merged: their schemas differ
    """

    sentence = "branches '{source}' and '{target}' cannot be merged: their schemas differ"
    hint = "apply the same schema to both branches, then try again"
    source: str | None = None
    target: str | None = None


class ChangeDiffRefused(Conflict):
    """The two commits cannot be compared.

    `reason` is `parentless_commit`, `schema_boundary` or `unknown`.
    """

    sentence = "cannot list the changes in commit '{graph_commit_id}'[ for type '{type_name}'][: {reason}]"
    wire_member = "change_diff_refusal"
    wire_facts = ("reason", "graph_commit_id", "type_name")
    hint = "take a new baseline at the newer commit"
    extended_exit_code = 1
    reason: str | None = "unknown"
    graph_commit_id: str | None = None
    type_name: str | None = None

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        facts.setdefault("reason", type(self).reason)
        super().__init__(message, **facts)


class CommitHasNoParent(ChangeDiffRefused):
    """The first commit in a graph has no parent to compare with."""

    reason = "parentless_commit"


class ChangeSchemaBoundary(ChangeDiffRefused):
    """A type's rows in the older commit are incompatible with the type of the same name in the newer commit.

    Either these rows cannot be converted, or the two types share only their name.
    """

    reason = "schema_boundary"


class HistoryReclaimed(ClientError):
    """A cleanup removed a version that this request needs."""

    code = "HistoricalVersionReclaimed"
    status = 410
    http_code = None
    sentence = "a cleanup removed the data for commit '{first_unreadable_commit_id}'"
    wire_member = "change_feed_gap"
    wire_facts = ("cursor", "first_unreadable_commit_id")
    hint = "take a new baseline and continue from its cursor"
    cursor: str | None = None
    first_unreadable_commit_id: str | None = None


class ChangeFeedGap(HistoryReclaimed):
    """A cleanup removed commits that the change feed has not delivered yet."""

    sentence = "change feed gap at commit '{first_unreadable_commit_id}'"


class PreconditionFailed(ClientError):
    """The branch head is not the expected commit."""

    status = 412
    http_code = None
    retryable = "fresh"
    sentence = "precondition failed[ on branch '{branch}']: expected commit '{expected}'[, but the head is '{actual}']"
    wire_member = "precondition_failure"
    wire_facts = ("expected", "actual")
    hint = "read the current state, then decide whether to retry"
    exit_code = 4
    extended_exit_code = 4
    branch: str | None = None
    expected: str | None = None
    actual: str | None = None


class BlobPreconditionFailed(ClientError):
    """The blob does not have the expected ETag."""

    status = 412
    http_code = "conflict"
    retryable = "fresh"
    sentence = "the blob does not have the expected ETag: its current ETag is {etag}"
    hint = "read the blob again, then decide whether to retry"
    etag: str | None = None


def to_json_value(value: Any) -> Any:
    """Convert a value to a form that can be encoded as JSON.

    >>> to_json_value({"at": date(2024, 1, 31), "x": [1.5, float("inf")]})
    {'at': '2024-01-31', 'x': [1.5, 'inf']}
    >>> to_json_value(b"hi")
    'base64:aGk='
    """
    if isinstance(value, Mapping):
        return {member_name: to_json_value(item) for member_name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, bytes):
        return f"base64:{b64encode(value).decode()}"
    if hasattr(value, "to_json"):  # a large blob
        return value.to_json()
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def split_type_key(type_key: str | None) -> dict[str, Any]:
    """Split a type key into its kind and name.

    >>> split_type_key("edge:Knows")
    {'entity_kind': 'edge', 'type_name': 'Knows'}
    """
    if type_key is None:
        return {}
    entity_kind, _, type_name = type_key.partition(":")
    return {"entity_kind": entity_kind, "type_name": type_name}
