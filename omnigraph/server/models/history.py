"""The bodies of responses about commits, branches, merges, tags and changes."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .requests import ChangeOpName, EntityKindName

Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
MergeOutcomeName = Literal["already_up_to_date", "fast_forward", "merged", "conflict"]


class CommitOutput(Struct, kw_only=True):
    """A commit. Times are in microseconds since 1970. `details` describes how a merge, revert or reset was made."""

    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: Int64
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: Int64
    published_at: Int64 | UnsetType = UNSET
    operation: str | UnsetType = UNSET
    message: str | UnsetType | None = UNSET
    note: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    types: list[dict[str, Any]] | UnsetType = UNSET
    manifest_branch: str | UnsetType | None = UNSET
    manifest_version: Int64 | UnsetType = UNSET


class CommitListOutput(Struct, kw_only=True):
    """Commits, newest first. If the list is incomplete, `next_cursor` continues it.

    `refs` maps each commit id to the branches and tags that point to the commit.
    """

    commits: list[CommitOutput]
    next_cursor: str | UnsetType = UNSET
    refs: dict[str, list[str]] | UnsetType = UNSET


class BranchListOutput(Struct, kw_only=True):
    """The names of all branches, sorted."""

    branches: list[str]


class BranchOutput(Struct, kw_only=True):
    """A branch: its head, its origin, and how far it has diverged from its parent."""

    name: str
    head: CommitOutput
    parent: str | None
    fork_commit_id: str | None
    ahead: int | None
    behind: int | None
    created_at: Int64 | None


class BranchCreateOutput(Struct, kw_only=True, rename={"from_": "from"}):
    """A branch that was created, or an existing branch that was opened."""

    uri: str
    from_: str
    name: str
    actor_id: str | None
    graph_commit_id: str


class BranchDeleteOutput(Struct, kw_only=True):
    """A branch that was deleted."""

    uri: str
    name: str
    actor_id: str | None


class BranchRenameOutput(Struct, kw_only=True, rename={"from_": "from"}):
    """A branch that was renamed."""

    uri: str
    from_: str
    name: str
    actor_id: str | None


class MergeConflictOutput(Struct, kw_only=True):
    """A merge conflict, with the values in the merge base and on both sides if they are known."""

    entity_kind: EntityKindName
    type_name: str
    kind: str
    message: str
    entity_id: str | UnsetType | None = UNSET
    changed: list[str] | UnsetType = UNSET
    base: dict[str, Any] | UnsetType | None = UNSET
    ours: dict[str, Any] | UnsetType | None = UNSET
    theirs: dict[str, Any] | UnsetType | None = UNSET
    table_key: str | UnsetType = UNSET
    row_id: str | UnsetType | None = UNSET


class TableChangesOutput(Struct, kw_only=True):
    """The previewed changes to one table, as Arrow streams in base64."""

    type_key: str
    inserted: str
    updated_before: str
    updated_after: str
    deleted: str


class BranchMergeOutput(Struct, kw_only=True):
    """The effect of a merge, or its preview. A preview contains `changes` on request."""

    source: str
    target: str
    outcome: MergeOutcomeName
    actor_id: str | None
    commit: CommitOutput | None
    base_commit_id: str
    source_commit_id: str
    target_commit_id: str
    stats: dict[str, Any]
    merge_conflicts: list[MergeConflictOutput]
    discarded: list[Any]
    lost_edges: list[Any]
    parallel_edges: list[Any]
    schema_change: Any = UNSET
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error: str | UnsetType = UNSET
    changes: list[TableChangesOutput] | UnsetType = UNSET


class TagOutput(Struct, kw_only=True):
    """A tag, which is a permanent name for a commit."""

    name: str
    graph_commit_id: str
    graph_branch: str | None
    created_at: Int64
    actor_id: str | None
    message: str | None


class TagListOutput(Struct, kw_only=True):
    """All tags, sorted by name."""

    tags: list[TagOutput]


class ChangeTypeOutput(Struct, kw_only=True):
    """The type of a changed entity, with its permanent id."""

    id: str
    name: str


class ChangeEndpointsOutput(Struct, kw_only=True, rename={"from_": "from"}):
    """The endpoints of an edge."""

    from_: str
    to: str


class ChangeImageOutput(Struct, kw_only=True):
    """The properties of an entity before or after a change."""

    properties: dict[str, Any]
    endpoints: ChangeEndpointsOutput | UnsetType = UNSET


class EntityChangeOutput(Struct, kw_only=True, rename={"type_": "type"}):
    """A change to an entity. `changed` is only present in a comparison of revisions."""

    kind: EntityKindName
    type_: ChangeTypeOutput
    id: str
    op: ChangeOpName
    before: ChangeImageOutput | UnsetType = UNSET
    after: ChangeImageOutput | UnsetType = UNSET
    changed: list[str] | UnsetType = UNSET


class ChangeCauseOutput(Struct, kw_only=True):
    """The commit that made the changes."""

    graph_commit_id: str
    authored_branch: str
    authored_at: Int64
    parent_commit_id: str | UnsetType = UNSET
    merged_parent_commit_id: str | UnsetType = UNSET
    actor_id: str | UnsetType = UNSET


class ChangeBlockOutput(Struct, kw_only=True):
    """A commit and its changes, or some of its changes."""

    cause: ChangeCauseOutput
    changes: list[EntityChangeOutput]
    schema_change: Any = UNSET


class CommitChangesOutput(ChangeBlockOutput, kw_only=True):
    """One page of the changes in a commit."""

    next_page_token: str | UnsetType = UNSET


class ChangeFeedOutput(Struct, kw_only=True):
    """A page of the change feed. Only the last page of a poll has a `cursor`."""

    blocks: list[ChangeBlockOutput]
    next_page_token: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    caught_up: bool | UnsetType = UNSET


class ChangeBaselineOutput(Struct, kw_only=True):
    """The commit of a baseline, and the cursor from which the feed continues."""

    snapshot_commit_id: str
    resume_cursor: str


class ChangeBaselineRecord(Struct, kw_only=True):
    """The last line of a baseline stream."""

    baseline: ChangeBaselineOutput


class EntityDiffOutput(Struct, kw_only=True):
    """One entity that differs between two revisions."""

    kind: EntityKindName
    type: str
    id: str
    op: ChangeOpName
    changed: list[str]
    before: dict[str, Any] | UnsetType = UNSET
    after: dict[str, Any] | UnsetType = UNSET
    endpoints: dict[str, str] | UnsetType = UNSET


class DiffOutput(Struct, kw_only=True):
    """The entities that differ between two revisions, up to the limit.

    With `images=feed`, the entities are in `feed_changes` instead of `changes`, in the format of the change feed.
    """

    from_commit_id: str
    to_commit_id: str
    summary: dict[str, Any]
    changes: list[EntityDiffOutput]
    truncated: bool
    feed_changes: list[EntityChangeOutput] | UnsetType = UNSET
    schema_change: Any = UNSET
