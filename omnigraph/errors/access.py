"""Errors for authentication, authorization and missing objects."""
# ruff: noqa: N818 - a class name states what happened and needs no `Error` suffix

from typing import ClassVar

from .root import ClientError, ServerError, Transient


class Unauthenticated(ClientError):
    """The token is missing or unknown."""

    status = 401
    http_code = "unauthorized"
    hint = (
        "run `omnigraph login` with the server and a valid token, set OMNIGRAPH_TOKEN, or pass the token to "
        "omnigraph.open(url, token=…)"
    )
    extended_exit_code = 6


class PermissionDenied(ClientError, PermissionError):
    """The policy does not allow this action."""

    status = 403
    http_code = "forbidden"
    sentence = (
        "[actor '{actor}'|an unnamed actor] is not allowed to {action}"
        "[ on branch '{branch}'][ into branch '{target_branch}']"
    )
    hint = "request a policy that allows the action, or specify the actor"
    extended_exit_code = 6
    actor: str | None = None
    action: str | None = None
    branch: str | None = None
    target_branch: str | None = None


class MethodNotAllowed(ClientError):
    """The path exists, but does not accept this method."""

    status = 405
    http_code = "method_not_allowed"
    sentence = "{method} is not allowed on {path}"
    hint = "see the server's API reference for the methods that this path supports"
    method: str | None = None
    path: str | None = None


class NotAcceptable(ClientError):
    """None of the accepted media types is available for the response."""

    status = 406
    sentence = "expected one of {media_types} in the Accept header"
    hint = "see the operation's `content` in /openapi.json"
    media_types: str | None = None


class RequestTimeout(ClientError, Transient):
    """The request body did not arrive within the server's time limit."""

    status = 408
    hint = "send the request again, and do not pause for long while sending the body"


class ServerBusy(ServerError, Transient):
    """The server has too many requests in its queue."""

    status = 503
    http_code = None
    effect = "none"
    hint = "wait, then send the same request again"


class ServerUnreachable(ServerError, Transient):
    """The server could not be reached, or the connection was lost.

    `effect` is `none` if the request was never sent, or if it only reads data. Otherwise, the request may have been
    processed.

    >>> print(ServerUnreachable(server="http://localhost:8080", reason="connection refused").message)
    cannot reach the server at http://localhost:8080: connection refused
    """

    status = 503
    http_code = None
    sentence = "cannot reach the server at {server}[: {reason}]"
    hint = "check that the URL is correct and the server is running, then try again"
    server: str | None = None
    reason: str | None = None


class TooManyRequests(ClientError, Transient):
    """The actor has too many requests in flight."""

    status = 429
    http_code = "too_many_requests"
    sentence = "too many requests[; try again in {retry_after} s]"
    hint = "wait, then send the same request again"
    retry_after: float | None = None


class NotFound(ClientError, KeyError):
    """The requested object does not exist."""

    status = 404
    http_code: ClassVar[str | None] = "not_found"
    sentence = "{what} not found"
    hint = "check the spelling, or list the existing objects"
    what: str | None = None


class BranchNotFound(NotFound):
    """The branch does not exist."""

    sentence = "branch '{branch}' not found"
    branch: str | None = None


class CommitNotFound(NotFound):
    """The commit does not exist."""

    sentence = "commit '{commit}' not found"
    commit: str | None = None


class SnapshotNotFound(NotFound):
    """The snapshot does not exist."""

    sentence = "snapshot '{snapshot}' not found"
    snapshot: str | None = None


class EntityNotFound(NotFound):
    """The entity, or its blob, does not exist."""

    sentence = (
        "[line {line}: ]no {entity_kind} of type '{type_name}' has the id '{entity_id}'[ and a value for '{property}']"
    )
    entity_kind: str | None = None
    type_name: str | None = None
    entity_id: str | None = None
    property: str | None = None
    line: int | None = None


class GraphNotFound(NotFound):
    """The graph does not exist."""

    sentence = "graph '{graph}' not found"
    graph: str | None = None


class GraphNotInitialized(NotFound):
    """No initialized graph exists at this location."""

    sentence = "no initialized graph at '{uri}'[: {reason}]"
    hint = "create the graph with `init`"
    uri: str | None = None
    reason: str | None = None


class StoredQueryNotFound(NotFound):
    """The stored query does not exist."""

    # The message does not name the query, because it is also sent to actors who must not learn whether the query
    # exists.
    sentence = "stored query not found"


class QuarantinedGraph(GraphNotFound):
    """The server has quarantined the graph."""

    http_code = None
    retryable = "same"
    sentence = "graph '{graph}' is quarantined"
    hint = "check the server log to see why the graph could not be opened"
