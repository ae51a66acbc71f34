"""The bodies of requests. Unknown members are ignored unless a class forbids them."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

LoadModeName = Literal["overwrite", "append", "merge", "patch", "delete"]
EntityKindName = Literal["node", "edge"]
ChangeOpName = Literal["insert", "update", "delete"]
SideName = Literal["ours", "theirs"]
GranularityName = Literal["entity", "property"]
RecordVerb = Literal["insert", "upsert", "patch", "connect"]
Params = dict[str, Any] | None


class QueryRequest(Struct, kw_only=True):
    """A read query: the text, the name of the query to run, and the parameters."""

    query: str
    name: str | None = None
    params: Params = None
    branch: str | None = None
    snapshot: str | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    limit_rows: Annotated[int, Meta(ge=1)] | None = None
    assume_utc: bool = False
    integers: Literal["number", "string"] | None = None


class ExplainRequest(QueryRequest, kw_only=True):
    """A query to plan. With `analyze`, the query also runs."""

    analyze: bool = False


class ReadRequest(Struct, kw_only=True):
    """A read query, with the member names of version 0.3."""

    query_source: str
    query_name: str | None = None
    params: Params = None
    branch: str | None = None
    snapshot: str | None = None


class ChangeRequest(Struct, kw_only=True):
    """A mutation. `query_source` and `query_name` are the member names of version 0.3."""

    query: str | None = None
    name: str | None = None
    params: Params = None
    branch: str | None = None
    message: str | None = None
    assume_utc: bool = False
    query_source: str | None = None
    query_name: str | None = None


class RecordsRequest(Struct, kw_only=True, rename={"type_": "type"}):
    """Records of one type to write. For `connect`, each record is `[from, to]` or `[from, to, properties]`."""

    verb: RecordVerb
    type_: str
    records: list[Any]
    branch: str | None = None
    message: str | None = None
    assume_utc: bool = False


class TransactionOperation(Struct, kw_only=True, rename={"type_": "type"}):
    """One step of a transaction.

    `query` and `mutate` take a query. The operations on records take a type and records. `update` and `delete` take a
    type and a predicate `where`. `update` also takes the values to `set`. `load` takes either a type and records, or
    `data`: NDJSON text whose lines name their types. `blob` takes a type, the `key` of an entity and a `property`.
    `digest` is the digest of a query result or a blob that the client read earlier. The transaction fails if the result
    or the blob is now different.
    """

    op: Literal["query", "mutate", "update", "delete", "load", "blob"] | RecordVerb
    query: str | None = None
    name: str | None = None
    params: Params = None
    type_: str | None = None
    records: list[Any] | None = None
    where: str | None = None
    set: dict[str, Any] | None = None
    mode: LoadModeName | None = None
    data: str | None = None
    key: Any = None
    kind: EntityKindName | None = None
    property: str | None = None
    digest: str | None = None


class TransactionRequest(Struct, kw_only=True):
    """Several steps that become one commit. With `rollback`, nothing is written, but all results are returned.

    With `arrow`, the rows of each result are an Arrow stream in base64, which keeps the types of all values.
    `generated_ids` are the ids that an earlier run of the first operations returned; this run uses the same ids.
    """

    operations: list[TransactionOperation]
    generated_ids: list[str] | None = None
    branch: str | None = None
    message: str | None = None
    rollback: bool = False
    arrow: bool = False


class InvokeStoredQueryRequest(Struct, kw_only=True):
    """The arguments of a stored query."""

    params: Params = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None


class SchemaApplyRequest(Struct, kw_only=True):
    """A new schema for a branch."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = None
    message: str | None = None
    dry_run: bool = False


class SchemaPlanRequest(Struct, kw_only=True):
    """A schema to compare with the schema of a branch."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = None


class IngestRequest(Struct, kw_only=True, rename={"from_": "from"}):
    """A load of NDJSON text."""

    data: str
    branch: str | None = None
    from_: str | None = None
    mode: LoadModeName | None = None
    message: str | None = None
    dry_run: bool = False
    assume_utc: bool = False


class CsvReading(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to read CSV files. `delimiter` and `quote` are detected for each file if they are missing.

    `null` is the text of missing values, or a list of such texts. `columns` names the columns of files without a header
    line, for all types or by type.
    """

    delimiter: str | None = None
    quote: str | None = None
    null: str | list[str] = ""
    header: bool | None = None
    columns: list[str] | dict[str, list[str]] | None = None
    encoding: str | None = None
    decimal: Literal[".", ","] = "."


class FormLoadOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """The `options` part of a form with files to load.

    `mapping` renames columns and members, by type. `format` is the format of the files whose media type and name do not
    determine it.
    """

    csv: CsvReading = field(default_factory=CsvReading)
    mapping: dict[str, dict[str, str]] = {}
    format: Literal["ndjson", "csv", "parquet"] | None = None


class ExportRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The types and the state to export. `table_keys` is the version 0.3 name of `type_names`.

    With `since`, only entities that were added or changed after this revision are exported.
    """

    branch: str | None = None
    snapshot: str | None = None
    type_names: list[str] = []
    iso_dates: bool = False
    since: str | None = None
    table_keys: list[str] | None = None


class BranchCreateRequest(Struct, kw_only=True, rename={"from_": "from"}):
    """A branch to create. `from` is a branch or another revision."""

    name: str
    from_: str | None = None
    commit: str | None = None
    exist_ok: bool = False


class BranchRenameRequest(Struct, kw_only=True):
    """The new name of a branch."""

    name: str


class BranchResetRequest(Struct, kw_only=True):
    """The revision whose state is restored on a branch."""

    to: str
    message: str | None = None
    dry_run: bool = False
    changes: bool = False


class ConflictResolution(Struct, kw_only=True):
    """The resolution of one conflict: a side, or the values of properties.

    The conflict is identified by its type, its entity and its kind, as in the report of the merge.
    """

    type_name: str
    entity_id: str | None = None
    entity_kind: EntityKindName | None = None
    kind: str | None = None
    choice: SideName | None = None
    values: dict[str, Any] | None = None


Strategies = SideName | dict[str, SideName] | None


class MergeSizes(Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits on how much a merge writes. They can only be lower than the limits of the server."""

    delta_bytes: Annotated[int, Meta(ge=0)] | None = None
    rows: Annotated[int, Meta(ge=0)] | None = None


class BranchMergeRequest(Struct, kw_only=True):
    """A merge of a branch or another revision into a branch.

    `strategy` is a side for all conflicts, or a mapping of conflict kinds and types to sides. `resolutions` resolve
    single conflicts and take precedence over `strategy`. If `changes` is true, a preview also
    lists the changes that the merge would make.
    """

    source: str
    target: str | None = None
    delete_branch: bool = False
    message: str | None = None
    strategy: Strategies = None
    resolutions: list[ConflictResolution] = []
    granularity: GranularityName = "property"
    collapse_edges: bool = False
    limits: MergeSizes = field(default_factory=MergeSizes)
    dry_run: bool = False
    changes: bool = False


class ReplayRequest(Struct, kw_only=True):
    """A commit to revert or to apply to a branch. A revert also accepts a range."""

    commit: str
    branch: str | None = None
    mainline: Annotated[int, Meta(ge=1)] | None = None
    message: str | None = None
    strategy: Strategies = None
    resolutions: list[ConflictResolution] = []
    granularity: GranularityName = "property"
    dry_run: bool = False
    changes: bool = False


class TagCreateRequest(Struct, kw_only=True):
    """A tag to create. Without a revision, the head of `branch` is tagged."""

    name: str
    revision: str | None = None
    branch: str | None = None
    message: str | None = None


class ChangeBaselineRequest(Struct, kw_only=True, rename={"type_": "type"}):
    """The filter for a baseline and for the feed that continues from it."""

    branch: str | None = None
    kind: list[EntityKindName] = []
    type_: list[str] = []
    op: list[ChangeOpName] = []


class SearchRequest(Struct, kw_only=True, rename={"type_": "type"}):
    """A search for nodes of one type by text or vector."""

    type_: str
    property: str
    text: str | None = None
    vector: list[float] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 20
    branch: str | None = None
    snapshot: str | None = None


class CheckRequest(Struct, kw_only=True):
    """Options for checking a graph."""

    quick: bool = False
    sample: Annotated[float, Meta(gt=0, le=1)] | None = None


class OptimizeRequest(Struct, kw_only=True):
    """The branch and the types to compact and index, and limits after which no further work is started."""

    branch: str | None = None
    types: list[str] | None = None
    max_seconds: Annotated[float, Meta(gt=0)] | None = None
    max_bytes: Annotated[int, Meta(gt=0)] | None = None


class CleanupRequest(Struct, kw_only=True):
    """The options of a cleanup. Without `confirm`, the cleanup only reports what would be removed."""

    keep: Annotated[int, Meta(ge=0)] | None = None
    older_than: str | float | None = None
    grace: str | float | None = None
    confirm: bool = False
    erase: bool = False
    purge_dropped: bool = False


class IndexRequest(Struct, kw_only=True):
    """The indexes to build. `rebuild` also replaces existing indexes: all, or those of the given types or columns."""

    branch: str | None = None
    rebuild: bool | list[str] = False


class RepairRequest(Struct, kw_only=True):
    """The options of a repair. Without `confirm`, the repair only reports what it would change."""

    branch: str | None = None
    confirm: bool = False
    force: bool = False
    restore: str | None = None
    name: str | None = None
    tag: bool = False
    drop: str | None = None
    commit: str | None = None


class AbsenceRequest(Struct, kw_only=True, rename={"type_": "type"}):
    """An erased entity, whose traces are searched for in every file."""

    type_: str
    id: str


class HoldRequest(Struct, kw_only=True):
    """The commit to protect from cleanup: the newest commit of a branch, or a snapshot."""

    branch: str | None = None
    snapshot: str | None = None


class DiagnoseRequest(Struct, kw_only=True):
    """Source text to check: queries (against a branch's schema) or a schema."""

    text: str
    language: Literal["query", "schema"] = "query"
    branch: str | None = None


class DescribeRequest(Struct, kw_only=True):
    """A query document to describe."""

    text: str
    branch: str | None = None
    snapshot: str | None = None


class FormatRequest(Struct, kw_only=True):
    """Source text to format."""

    text: str
    language: Literal["query", "schema"] = "query"


class PositionRequest(Struct, kw_only=True):
    """A position in a source text, as a character offset."""

    text: str
    offset: Annotated[int, Meta(ge=0)]
    language: Literal["query", "schema"] = "query"
    branch: str | None = None
