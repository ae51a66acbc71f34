"""The bodies of responses about entities, searches, maintenance jobs and the language services."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from .history import CommitOutput, Int64
from .requests import ChangeOpName, EntityKindName

JobState = Literal["running", "succeeded", "failed", "cancelled"]


class EntityOutput(Struct, kw_only=True):
    """A node or an edge at one commit."""

    kind: EntityKindName
    type: str
    id: str
    properties: dict[str, Any]
    graph_commit_id: str
    endpoints: dict[str, str] | UnsetType = UNSET


class EntityVersionOutput(Struct, kw_only=True):
    """A commit that changed an entity, and the entity's values before and after it."""

    commit: CommitOutput
    op: ChangeOpName
    changed: list[str]
    properties: dict[str, Any] | None
    before: dict[str, Any] | None
    endpoints: dict[str, str] | UnsetType = UNSET


class EntityHistoryOutput(Struct, kw_only=True):
    """The versions of an entity, newest first. `gap_commit_id` is set if earlier history is unreadable."""

    versions: list[EntityVersionOutput]
    complete: bool
    gap_commit_id: str | UnsetType = UNSET
    gap_reason: str | UnsetType = UNSET


class BlamedPropertyOutput(Struct, kw_only=True):
    """A property, its value, and the commit that set it."""

    name: str
    value: Any
    actor_id: str | None
    commit: CommitOutput | None


class BlameOutput(Struct, kw_only=True):
    """The properties of an entity with the commits that set them."""

    properties: list[BlamedPropertyOutput]


class SubgraphNodeOutput(Struct, kw_only=True):
    """A node of a subgraph."""

    type: str
    id: str
    properties: dict[str, Any]


class SubgraphEdgeOutput(Struct, kw_only=True, rename={"from_": "from"}):
    """An edge of a subgraph. Each endpoint has a type and an id."""

    type: str
    id: str
    from_: dict[str, str]
    to: dict[str, str]
    properties: dict[str, Any]


class SubgraphOutput(Struct, kw_only=True):
    """The nodes and edges in a query result, or around a node."""

    nodes: list[SubgraphNodeOutput]
    edges: list[SubgraphEdgeOutput]
    graph_commit_id: str
    truncated: bool = False


class SearchMatchOutput(Struct, kw_only=True):
    """A node that matches a search, and its score."""

    type: str
    id: str
    properties: dict[str, Any]
    score: float | str | None


class SearchOutput(Struct, kw_only=True):
    """The matches of a search, best first."""

    matches: list[SearchMatchOutput]
    graph_commit_id: str


class JobOutput(Struct, kw_only=True):
    """A maintenance job. Times are in microseconds since 1970."""

    job_id: str
    kind: str
    state: JobState
    actor_id: str | None
    started_at: Int64
    finished_at: Int64 | UnsetType = UNSET
    progress: str | UnsetType = UNSET
    result: Any = UNSET
    error: Any = UNSET


class JobListOutput(Struct, kw_only=True):
    """The jobs of a graph, newest first."""

    jobs: list[JobOutput]


class PendingIndexOutput(Struct, kw_only=True):
    """A declared index that does not cover all rows, and the reason."""

    type_key: str
    property: str
    reason: str


class PendingIndexesOutput(Struct, kw_only=True):
    """The declared indexes of a branch that do not cover all rows."""

    pending_indexes: list[PendingIndexOutput]


class OperationsOutput(Struct, kw_only=True):
    """Long operations: the outcomes of recovered ones, those that are running, and those that were set aside."""

    recoveries: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    set_aside: list[dict[str, Any]]


class OperationOutcomeOutput(Struct, kw_only=True):
    """The outcome of an operation that was set aside, or null if it had already been resolved."""

    outcome: dict[str, Any] | None


class HoldOutput(Struct, kw_only=True):
    """A commit that is protected from cleanup until `seconds` have passed since the hold was last renewed."""

    hold_id: str
    graph_commit_id: str
    seconds: float


class EndedHoldOutput(Struct, kw_only=True):
    """A hold that was renewed or ended."""

    hold_id: str


class StatusOutput(Struct, kw_only=True):
    """The size and status of a graph."""

    status: dict[str, Any]


class DiagnosticOutput(Struct, kw_only=True):
    """A diagnostic for a source text. `start` and `end` are character offsets in the text."""

    message: str
    severity: Literal["error", "warning", "info"]
    start: int
    end: int
    line: int
    column: int
    code: str | UnsetType | None = UNSET
    hint: str | UnsetType | None = UNSET


class DiagnoseOutput(Struct, kw_only=True):
    """All diagnostics for a source text."""

    diagnostics: list[DiagnosticOutput]


class DescribeOutput(Struct, kw_only=True):
    """The queries in a query document: their kinds, parameters, results, and the types that they read and write."""

    queries: list[dict[str, Any]]


class FormatOutput(Struct, kw_only=True):
    """The formatted text."""

    text: str


class CompletionOutput(Struct, kw_only=True):
    """A completion at a position. It replaces the characters from `start` to `end` with `text`."""

    text: str
    label: str
    kind: str
    start: int
    end: int
    detail: str | UnsetType | None = UNSET


class CompleteOutput(Struct, kw_only=True):
    """The completions at a position."""

    completions: list[CompletionOutput]


class HoverOutput(Struct, kw_only=True):
    """An explanation of the item at a position, in Markdown, or null if there is nothing to explain."""

    contents: str | None
    start: int | UnsetType = UNSET
    end: int | UnsetType = UNSET


class RunListOutput(Struct, kw_only=True):
    """The list of runs in version 0.3. It is always empty, because runs no longer exist."""

    runs: list[Any]
