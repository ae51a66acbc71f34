"""Errors of who asks and of what is not there."""
# ruff: noqa: N818 - a name says what happened, as the documentation of the service does

from typing import ClassVar

from omnigraph.errors.root import ClientError, Transient


class Unauthenticated(ClientError):
    """The token is missing or unknown."""

    status = 401
    http_code = "unauthorized"
    hint = "send a valid bearer token"
    extended_exit_code = 6


class PermissionDenied(ClientError, PermissionError):
    """The policy does not allow this."""

    status = 403
    http_code = "forbidden"
    sentence = (
        "[actor '{actor}'|an unnamed actor] may not {action}"
        "[ on branch '{branch}'][ into branch '{target_branch}']"
    )
    hint = "ask for a policy that allows the action, or name the actor"
    extended_exit_code = 6
    actor: str | None = None
    action: str | None = None
    branch: str | None = None
    target_branch: str | None = None


class MethodNotAllowed(ClientError):
    """The path exists, but not with this method."""

    status = 405
    http_code = "method_not_allowed"
    sentence = "{method} is not allowed on {path}"
    hint = "see the routes of the server"
    method: str | None = None
    path: str | None = None


class TooManyRequests(ClientError, Transient):
    """The actor has too many requests in flight."""

    status = 429
    http_code = "too_many_requests"
    sentence = "too many requests[, try again in {retry_after} s]"
    hint = "wait, then send the same request again"
    retry_after: float | None = None


class NotFound(ClientError, KeyError):
    """What was asked for does not exist."""

    status = 404
    http_code: ClassVar[str | None] = "not_found"
    sentence = "{what} not found"
    hint = "list what exists, and look at the spelling"
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

    sentence = "{entity_kind} type '{type_name}' has no id '{entity_id}'[ with a '{property}']"
    entity_kind: str | None = None
    type_name: str | None = None
    entity_id: str | None = None
    property: str | None = None


class GraphNotFound(NotFound):
    """The graph does not exist."""

    sentence = "graph '{graph}' not found"
    graph: str | None = None


class GraphNotInitialized(NotFound):
    """There is no initialised graph here."""

    sentence = "no initialised graph at '{uri}'[: {reason}]"
    hint = "create the graph with init"
    uri: str | None = None
    reason: str | None = None


class StoredQueryNotFound(NotFound):
    """Stored query not found."""

    # The fixed text also answers who may not know that the query exists: it names nothing.
    sentence = "stored query not found"


class QuarantinedGraph(GraphNotFound):
    """The graph is quarantined by its server."""

    http_code = None
    retryable = "same"
    sentence = "graph '{graph}' is quarantined"
    hint = "look in the log of the server why the graph could not be opened"
