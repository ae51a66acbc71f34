"""The row types of the route table.

This module defines the types that `routes` uses. It depends neither on handlers nor on the web framework, so that the
OpenAPI document and tests can read the table without a server.
"""

from typing import Any, Literal

from omnigraph.records.cached_property import cached_property
from omnigraph.records.frozen import record

Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE"]
LaneName = Literal["read", "heavy", "loop"]
BodyLimit = Literal["none", "json", "query", "load", "blob"]
ParameterType = Literal["string", "integer", "boolean", "number"]
Action = Literal[
    "read",
    "change",
    "export",
    "branch_create",
    "branch_delete",
    "branch_merge",
    "schema_apply",
    "invoke_query",
    "graph_list",
    "admin",
]
GRAPH_PREFIX = "/graphs/{graph_id}"
REQUEST_ID_HEADER = "Omnigraph-Request-Id"
CONDITION_HEADER = "Omnigraph-If-Graph-Commit"
IDEMPOTENCY_HEADER = "Idempotency-Key"

JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv"
FORM = "multipart/form-data"
BYTES = "application/octet-stream"
EVENTS = "text/event-stream"
HTML = "text/html"
PLAIN = "text/plain"


@record
class UrlParameter:
    """A query parameter of an operation."""

    name: str
    type: ParameterType = "string"
    required: bool = False
    repeated: bool = False
    choices: tuple[str, ...] = ()
    description: str = ""


@record
class HeaderParameter:
    """A request header that an operation reads."""

    name: str
    required: bool = False
    description: str = ""


@record(slots=False, eq=False)
class Route:
    """One operation: its path, its input and output, its required permission, and how it runs.

    `handler` names a function as `module:function`, relative to `omnigraph.server.handlers`. `body` is a model for
    JSON, or a media type for a raw body. `form_options` is the model of a form's `options` part. `answers` lists the
    media types of the 200 response; the default comes first. `action` is None for operations that require no
    permission, and `is_public` operations require no token either. `statuses` lists the statuses other than 200 and 500
    (500 is always possible). `conditional_path` is the path of a write's conditional form, relative to the graph, or
    None if it has no such form. `precheck` names a handler that runs before the body is read.
    """

    method: Method
    path: str
    operation: str
    summary: str
    handler: str
    action: Action | None = None
    precheck: str | None = None
    is_public: bool = False
    body: Any = None
    body_optional: bool = False
    form_options: Any = None
    body_limit: BodyLimit = "json"
    answer: Any = None
    answers: tuple[str, ...] = (JSON,)
    statuses: tuple[int, ...] = ()
    parameters: tuple[UrlParameter, ...] = ()
    headers: tuple[HeaderParameter, ...] = ()
    lane: LaneName = "read"
    is_write: bool = False
    takes_any_parameter: bool = False
    takes_condition: bool = False
    conditional_path: str | None = None
    takes_idempotency_key: bool = False
    deprecated: bool = False
    successor: str | None = None
    success_status: int = 200

    @cached_property
    def is_graph_route(self) -> bool:
        """Whether the operation applies to a single graph."""
        return self.path.startswith(GRAPH_PREFIX)

    @cached_property
    def operation_id(self) -> str:
        """The id in the OpenAPI document."""
        return f"cluster_{self.operation}" if self.is_graph_route else self.operation

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The segments of the path template."""
        return tuple(self.path.strip("/").split("/"))

    @cached_property
    def is_raw_body(self) -> bool:
        """Whether the body is a stream of bytes instead of a JSON document."""
        return isinstance(self.body, str | tuple)

    @cached_property
    def is_json_body(self) -> bool:
        """Whether the operation takes a JSON document."""
        return self.body is not None and not self.is_raw_body

    @cached_property
    def body_media_types(self) -> tuple[str, ...]:
        """The media types that the body may have; empty if the operation takes no body."""
        if self.body is None:
            return ()
        if isinstance(self.body, str):
            return (self.body,)
        return self.body if isinstance(self.body, tuple) else (JSON,)
