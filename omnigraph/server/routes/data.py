"""Routes that read, write, load and export the data of a graph, and its schema."""

from dataclasses import replace

from omnigraph.server.models import answers, requests
from omnigraph.server.route_model import (
    ARROW,
    CONDITION_HEADER,
    CSV,
    FORM,
    GRAPH_PREFIX,
    IDEMPOTENCY_HEADER,
    JSON,
    NDJSON,
    PARQUET,
    HeaderParameter,
    Route,
    UrlParameter,
)

from . import statuses

ROW_FORMATS = (JSON, NDJSON, ARROW, CSV)
_BRANCH = UrlParameter("branch", description="Branch; defaults to main")
_SNAPSHOT = UrlParameter("snapshot", description="Commit, tag or other revision to use instead of a branch")
IDEMPOTENCY = HeaderParameter(
    IDEMPOTENCY_HEADER, description="Key that prevents a repeated request from being applied twice"
)
_CONDITION = HeaderParameter(CONDITION_HEADER, required=True, description="Commit that must be the head of the branch")
_INTEGERS = HeaderParameter(
    "Omnigraph-Integers", description="With `string`, integers that JavaScript would round are returned as strings"
)
_LOAD_PARAMETERS = (
    _BRANCH,
    UrlParameter("from", description="Revision from which a missing branch is created"),
    UrlParameter(
        "mode",
        choices=("overwrite", "append", "merge", "patch", "delete"),
        description="How to apply the records; defaults to merge",
    ),
    UrlParameter("message", description="Commit message"),
    UrlParameter("dry_run", "boolean", description="Check the input without loading it"),
    UrlParameter("assume_utc", "boolean", description="Treat times without a time zone as UTC"),
    UrlParameter(
        "max_errors", "integer", description="Check all input, and list up to this many problems in the error's details"
    ),
    UrlParameter("max_row_bytes", "integer", description="Maximum row size in bytes"),
)
_TYPE = UrlParameter("type", required=True, description="Type of all rows")


def conditional(route: Route) -> Route:
    """Return the conditional form of a write. It has its own path, so that older servers reject the request."""
    return replace(
        route,
        path=f"{route.path}/if-graph-commit",
        operation=f"{route.operation}_if_graph_commit",
        summary=f"{route.summary}, if the head of the branch is the expected commit",
        statuses=tuple(sorted({*route.statuses, 412})),
        headers=(*route.headers, _CONDITION),
        takes_condition=True,
    )


MUTATE_ROUTE = Route(
    "POST",
    f"{GRAPH_PREFIX}/mutate",
    "mutate",
    "Run a mutation in one commit",
    "writes:mutate",
    action="change",
    body=requests.ChangeRequest,
    body_limit="query",
    answer=answers.ChangeOutput,
    statuses=statuses.WRITE,
    headers=(IDEMPOTENCY,),
    lane="heavy",
    is_write=True,
    takes_idempotency_key=True,
)
_LOAD_NDJSON = Route(
    "POST",
    f"{GRAPH_PREFIX}/load/ndjson",
    "loadNdjson",
    "Load NDJSON in one commit",
    "loads:load_ndjson",
    action="change",
    body=NDJSON,
    body_limit="load",
    answer=answers.GraphBatchLoadOutput,
    statuses=statuses.WRITE,
    parameters=_LOAD_PARAMETERS,
    headers=(IDEMPOTENCY,),
    lane="heavy",
    is_write=True,
    takes_idempotency_key=True,
)
_LOAD_ARROW = replace(
    _LOAD_NDJSON,
    path=f"{GRAPH_PREFIX}/load/arrow",
    operation="loadArrow",
    summary="Load an Arrow stream with rows of a single type in one commit",
    handler="loads:load_arrow",
    body=ARROW,
    parameters=(_TYPE, *_LOAD_PARAMETERS),
)
_LOAD_PARQUET = replace(
    _LOAD_ARROW,
    path=f"{GRAPH_PREFIX}/load/parquet",
    operation="loadParquet",
    summary="Load a Parquet file with rows of a single type in one commit",
    handler="loads:load_parquet",
    body=PARQUET,
)
_LOAD_FORM = replace(
    _LOAD_NDJSON,
    path=f"{GRAPH_PREFIX}/load/files",
    operation="loadFiles",
    summary="Load NDJSON, CSV and Parquet files from the parts of a form in one commit",
    handler="form_loads:load_form",
    body=FORM,
    form_options=requests.FormLoadOptions,
)
LOAD_ROUTE = replace(
    _LOAD_NDJSON,
    path=f"{GRAPH_PREFIX}/load",
    operation="load",
    summary="Load NDJSON text in one commit",
    handler="loads:load_text",
    body=requests.IngestRequest,
    answer=answers.IngestOutput,
    parameters=(),
)
_SCHEMA_APPLY = Route(
    "POST",
    f"{GRAPH_PREFIX}/schema/apply",
    "applySchema",
    "Change the schema on a branch in one commit",
    "schemas:apply_schema",
    action="schema_apply",
    body=requests.SchemaApplyRequest,
    answer=answers.SchemaApplyOutput,
    statuses=statuses.WRITE,
    headers=(IDEMPOTENCY,),
    lane="heavy",
    is_write=True,
    takes_idempotency_key=True,
)

_RECORDS = replace(
    MUTATE_ROUTE,
    path=f"{GRAPH_PREFIX}/records",
    operation="writeRecords",
    summary="Insert, upsert, patch or connect records of one type as one commit",
    handler="transactions:write_records",
    body=requests.RecordsRequest,
    body_limit="load",
)
_TRANSACTION = replace(
    MUTATE_ROUTE,
    path=f"{GRAPH_PREFIX}/transaction",
    operation="runTransaction",
    summary="Run several writes and reads as one commit",
    handler="transactions:run_transaction",
    body=requests.TransactionRequest,
    body_limit="load",
    answer=answers.TransactionOutput,
)

DATA_ROUTES = (
    Route(
        "GET",
        f"{GRAPH_PREFIX}/limits",
        "getLimits",
        "Return the limits for the size of requests and results",
        "system:limits",
        action="read",
        answer=answers.LimitsOutput,
        statuses=(400, 401, 403, 404),
    ),
    Route(
        "GET",
        f"{GRAPH_PREFIX}/snapshot",
        "getSnapshot",
        "Show the tables at a revision",
        "commits:snapshot",
        action="read",
        answer=answers.SnapshotOutput,
        statuses=statuses.CACHED_READ,
        parameters=(
            _BRANCH,
            _SNAPSHOT,
            UrlParameter(
                "relative_to",
                description="Branch that times, versions and HEAD in `snapshot` refer to; defaults to main",
            ),
        ),
    ),
    Route(
        "POST",
        f"{GRAPH_PREFIX}/query",
        "query",
        "Run a read query",
        "reads:query",
        action="read",
        body=requests.QueryRequest,
        body_limit="query",
        answer=answers.ReadRowsOutput,
        answers=ROW_FORMATS,
        statuses=statuses.READ_BODY,
        headers=(_INTEGERS,),
    ),
    Route(
        "POST",
        f"{GRAPH_PREFIX}/explain",
        "explain",
        "Show the plan for a query",
        "reads:explain",
        action="read",
        body=requests.ExplainRequest,
        body_limit="query",
        answer=answers.ExplainOutput,
        statuses=statuses.READ_BODY,
    ),
    MUTATE_ROUTE,
    conditional(MUTATE_ROUTE),
    _RECORDS,
    conditional(_RECORDS),
    _TRANSACTION,
    conditional(_TRANSACTION),
    Route(
        "GET",
        f"{GRAPH_PREFIX}/schema",
        "getSchema",
        "Return the schema",
        "schemas:get_schema",
        action="read",
        answer=answers.SchemaOutput,
        statuses=statuses.CACHED_READ,
        parameters=(_BRANCH, _SNAPSHOT),
    ),
    Route(
        "POST",
        f"{GRAPH_PREFIX}/schema/plan",
        "planSchema",
        "Show the migration steps to another schema",
        "schemas:plan_schema",
        action="read",
        body=requests.SchemaPlanRequest,
        answer=answers.SchemaPlanOutput,
        statuses=statuses.READ_BODY,
    ),
    _SCHEMA_APPLY,
    conditional(_SCHEMA_APPLY),
    LOAD_ROUTE,
    conditional(LOAD_ROUTE),
    _LOAD_NDJSON,
    conditional(_LOAD_NDJSON),
    _LOAD_ARROW,
    conditional(_LOAD_ARROW),
    _LOAD_PARQUET,
    conditional(_LOAD_PARQUET),
    _LOAD_FORM,
    conditional(_LOAD_FORM),
    Route(
        "POST",
        f"{GRAPH_PREFIX}/export",
        "export",
        "Export a revision as NDJSON that can be loaded again",
        "exports:export",
        action="export",
        body=requests.ExportRequest,
        answers=(NDJSON,),
        statuses=statuses.EXPORT,
        lane="heavy",
    ),
)
