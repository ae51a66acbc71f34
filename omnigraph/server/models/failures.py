"""The bodies of error responses. They document the format that `wire/errors.py` builds from the error classes."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from .history import Int64, MergeConflictOutput
from .requests import EntityKindName

ErrorCodeName = Literal[
    "unauthorized",
    "forbidden",
    "bad_request",
    "not_found",
    "method_not_allowed",
    "conflict",
    "too_many_requests",
    "internal",
]


class ResourceLimitOutput(Struct, kw_only=True):
    """The limit that was exceeded."""

    resource: str
    limit: Int64
    actual: Int64


class PublishedDatasetVersionConflictOutput(Struct, kw_only=True):
    """The type whose entities changed after they were read."""

    entity_kind: EntityKindName
    type_name: str
    expected_published_dataset_version: Int64 | None
    actual_published_dataset_version: Int64 | None


class ReadSetConflictOutput(Struct, kw_only=True):
    """What changed while the write was being prepared."""

    member: str
    expected: Any = UNSET
    actual: Any = UNSET


class KeyConflictOutput(Struct, kw_only=True):
    """The entity that already exists."""

    entity_kind: EntityKindName
    type_name: str
    entity_id: str | UnsetType = UNSET


class BlobRangeOutput(Struct, kw_only=True):
    """The requested range (half-open) and the length of the blob."""

    start: Int64
    end: Int64
    length: Int64


class ExternalBlobSourceOutput(Struct, kw_only=True):
    """The external object that could not be read."""

    uri: str
    reason: str


class RecoveryRequiredOutput(Struct, kw_only=True):
    """The operation that must be recovered first."""

    operation_id: str


class PreconditionFailureOutput(Struct, kw_only=True):
    """The expected head and the actual head."""

    expected: str
    actual: str | UnsetType | None = UNSET


class ChangeFeedGapOutput(Struct, kw_only=True):
    """The first commit whose state a cleanup has removed."""

    first_unreadable_commit_id: str
    cursor: str | UnsetType = UNSET


class ChangeDiffRefusalOutput(Struct, kw_only=True):
    """Why two revisions cannot be compared."""

    reason: Literal["parentless_commit", "schema_boundary", "unknown"]
    graph_commit_id: str
    type_name: str | UnsetType = UNSET


class ErrorOutput(Struct, kw_only=True):
    """The body of every error response. Clients should check the status and which members are present.

    `kind` is the stable name of the error class, `effect` describes what happened to the data, and `retry` indicates
    whether the same request can succeed later.
    """

    error: str
    code: ErrorCodeName | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    effect: Literal["none", "unknown", "done"] | UnsetType = UNSET
    retry: Literal["no", "same", "fresh", "after_recovery"] | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    diagnostics: list[Any] | UnsetType = UNSET
    steps: list[Any] | UnsetType = UNSET
    merge_conflicts: list[MergeConflictOutput] | UnsetType = UNSET
    published_dataset_version_conflict: PublishedDatasetVersionConflictOutput | UnsetType = UNSET
    read_set_conflict: ReadSetConflictOutput | UnsetType = UNSET
    key_conflict: KeyConflictOutput | UnsetType = UNSET
    resource_limit: ResourceLimitOutput | UnsetType = UNSET
    blob_range: BlobRangeOutput | UnsetType = UNSET
    external_blob_source: ExternalBlobSourceOutput | UnsetType = UNSET
    recovery_required: RecoveryRequiredOutput | UnsetType = UNSET
    precondition_failure: PreconditionFailureOutput | UnsetType = UNSET
    change_feed_gap: ChangeFeedGapOutput | UnsetType = UNSET
    change_diff_refusal: ChangeDiffRefusalOutput | UnsetType = UNSET
