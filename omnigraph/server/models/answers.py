"""The bodies of responses about the server, reads, writes, loads and schemas."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .history import CommitOutput, Int64
from .requests import EntityKindName, LoadModeName

ParamKindName = Literal["string", "bool", "int", "bigint", "float", "date", "datetime", "blob", "vector", "list"]


class HealthOutput(Struct, kw_only=True):
    """Confirmation that the server process is running."""

    status: str
    version: str
    internal_schema_version: int
    source_version: str | None = None


class ReadinessOutput(Struct, kw_only=True):
    """Whether the worker accepts requests, and the number of its graphs."""

    status: Literal["ready", "draining", "degraded"]
    graphs: int
    quarantined: list[str] | UnsetType = UNSET


class LimitsOutput(Struct, kw_only=True):
    """The limits of requests and results. 0 means unlimited."""

    json_bytes: int
    query_bytes: int
    load_bytes: int
    blob_bytes: int
    result_rows: int
    result_bytes: int
    query_seconds: float
    query_memory_bytes: int


class WhoamiOutput(Struct, kw_only=True):
    """The caller and its permission."""

    actor_id: str | None
    authentication: Literal["open", "token", "oidc"]
    permission: str
    actions: list[str]


class GraphInfo(Struct, kw_only=True):
    """A graph on this server."""

    graph_id: str
    uri: str


class GraphListResponse(Struct, kw_only=True):
    """The graphs on this server, sorted by id."""

    graphs: list[GraphInfo]


class SnapshotDatasetOutput(Struct, kw_only=True):
    """A type and its published version."""

    entity_kind: EntityKindName
    type_name: str
    dataset_path: str
    published_dataset_version: Int64
    native_dataset_branch: str | None
    entity_count: Int64
    table_key: str | UnsetType = UNSET
    table_path: str | UnsetType = UNSET
    table_version: Int64 | UnsetType = UNSET
    table_branch: str | UnsetType | None = UNSET
    row_count: Int64 | UnsetType = UNSET


class SnapshotOutput(Struct, kw_only=True):
    """The tables of a branch at one revision."""

    graph_branch: str
    graph_commit_id: str
    graph_manifest_version: Int64
    internal_schema_version: int
    datasets: list[SnapshotDatasetOutput]
    branch: str | UnsetType = UNSET
    manifest_version: Int64 | UnsetType = UNSET
    tables: list[SnapshotDatasetOutput] | UnsetType = UNSET


class ReadTargetOutput(Struct, kw_only=True):
    """The branch or the commit that was read."""

    branch: str | None
    snapshot: str | None


class ReadRowsOutput(Struct, kw_only=True):
    """The rows of a query. `graph_commit_id` is the commit that was read, and can be used as a write precondition."""

    query_name: str
    target: ReadTargetOutput
    row_count: int
    columns: list[str]
    rows: Annotated[Any, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
    graph_commit_id: str | UnsetType | None = UNSET
    warnings: list[str] | UnsetType = UNSET


class ExplainOutput(Struct, kw_only=True):
    """The plan of a query, as text, and as JSON in `details`."""

    query_name: str
    plan: str
    graph_commit_id: str
    details: Any = UNSET


class ChangeOutput(Struct, kw_only=True):
    """The effect of a mutation. `commit` is null if nothing changed. `nodes` and `edges` count entities by type."""

    branch: str
    query_name: str | None
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    nodes: dict[str, int] | UnsetType = UNSET
    edges: dict[str, int] | UnsetType = UNSET
    ids: dict[str, list[str]] | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET


class TransactionBlob(Struct, kw_only=True):
    """A blob in a transaction. `content`, in base64, is present only if the transaction itself wrote the blob."""

    kind: EntityKindName
    id: str
    size: int
    media_type: str
    graph_commit_id: str
    content: str | UnsetType = UNSET


class TransactionResult(Struct, kw_only=True):
    """The rows of a query in a transaction, or a blob, and a digest of this result.

    If `arrow` is present, `rows` is empty.
    """

    columns: list[str]
    rows: Annotated[Any, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
    digest: str
    arrow: str | UnsetType = UNSET
    blob: TransactionBlob | UnsetType = UNSET


class TransactionOutput(Struct, kw_only=True):
    """The effect of a transaction, and the results of its queries, in order.

    `ids` are the ids of the inserted entities by type. `generated_ids` are the ids that mutations generated, in the
    order in which they were generated.
    """

    branch: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    results: list[TransactionResult]
    base_commit_id: str
    nodes: dict[str, int] | UnsetType = UNSET
    edges: dict[str, int] | UnsetType = UNSET
    ids: dict[str, list[str]] | UnsetType = UNSET
    generated_ids: list[str] | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET


class ParamDescriptor(Struct, kw_only=True):
    """A parameter of a stored query."""

    name: str
    kind: ParamKindName
    nullable: bool
    item_kind: ParamKindName | UnsetType = UNSET
    vector_dim: int | UnsetType = UNSET


class QueryCatalogEntry(Struct, kw_only=True):
    """A stored query."""

    name: str
    tool_name: str
    mutation: bool
    params: list[ParamDescriptor]
    description: str | UnsetType = UNSET
    instruction: str | UnsetType = UNSET


class QueriesCatalogOutput(Struct, kw_only=True):
    """The stored queries of a graph, sorted by name."""

    queries: list[QueryCatalogEntry]


class KeyOutput(Struct, kw_only=True):
    """A type's `@key` columns, in the order in which their values appear in an id."""

    kind: EntityKindName
    type: str
    columns: list[str]


class SchemaOutput(Struct, kw_only=True):
    """The schema at a revision. `keys` lists the types that have a `@key`."""

    schema_source: str
    graph_branch: str
    graph_commit_id: str
    shape_hash: str
    keys: list[KeyOutput]


class SchemaPlanOutput(Struct, kw_only=True):
    """The migration steps from the schema of a branch to another schema."""

    uri: str
    supported: bool
    step_count: int
    steps: list[Any]
    warnings: list[Any]


class SchemaApplyOutput(Struct, kw_only=True):
    """The outcome of a schema change."""

    uri: str
    supported: bool
    applied: bool
    step_count: int
    graph_manifest_version: Int64 | None
    steps: list[Any]
    commit: CommitOutput | None
    warnings: list[Any] | UnsetType = UNSET
    manifest_version: Int64 | UnsetType = UNSET


class GraphBatchDeclarationOutput(Struct, kw_only=True):
    """The number of entities of one type."""

    name: str
    entities_loaded: int


class LoadTableOutput(Struct, kw_only=True):
    """The number of entities of one type, with the member names of version 0.3."""

    table_key: str
    rows_loaded: int


class GraphBatchLoadOutput(Struct, kw_only=True):
    """The effect of a load. `commit` is null if nothing changed."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: LoadModeName
    nodes: list[GraphBatchDeclarationOutput]
    edges: list[GraphBatchDeclarationOutput]
    total_entities: int
    actor_id: str | None
    commit: CommitOutput | None
    missing: dict[str, int] | UnsetType = UNSET
    nulled: dict[str, dict[str, int]] | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET


class IngestOutput(GraphBatchLoadOutput, kw_only=True):
    """The effect of a load, with the location of the graph."""

    uri: str
    tables: list[LoadTableOutput] | UnsetType = UNSET
