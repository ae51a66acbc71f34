"""Errors of serving, storing and starting: what went wrong on our side, or was called off."""
# ruff: noqa: N818 - a name says what happened, as the documentation of the service does

from typing import Any, Literal

from omnigraph.errors.root import ClientError, ConfigError, ServerError, Transient, UsageError

StorageKind = Literal[
    "transient", "configuration", "not_found", "precondition", "permanent", "unknown"
]
"""What proof there is about a storage failure; `unknown` implies neither retry nor alarm."""


class StorageError(ServerError):
    """The store failed.

    A failure of kind `transient` is a `TransientStorageError`. Even then only the operation that
    knows its own effects may replay.

    >>> isinstance(StorageError(kind="transient"), Transient)
    True
    """

    sentence = "the store failed ({kind})[: {reason}]"
    hint = "look at the store: its reachability, credentials and space"
    kind: StorageKind = "unknown"
    reason: str | None = None

    def __new__(cls, *args: Any, **facts: Any) -> "StorageError":
        """Of kind `transient`, an error that `except Transient` catches."""
        transient = cls is StorageError and facts.get("kind") == "transient"
        return super().__new__(TransientStorageError if transient else cls, *args)

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        facts.setdefault("kind", type(self).kind)
        super().__init__(message, **facts)


class TransientStorageError(StorageError, Transient):
    """The store failed in a way that may pass: timeout, throttling, a lost connection."""

    kind = "transient"
    hint = "wait, then try again"


class IndexUnreadable(UserWarning):
    """A warning: an index cannot be read. Answers are right; they take longer until it is built."""


class BlobIntegrityError(ServerError):
    """A stored blob contradicts its description."""

    effect = "none"
    hint = "restore the blob from a copy; check finds others like it"


class InternalError(ServerError):
    """Something inside Omnigraph is broken."""

    sentence = "internal error: {reason}"
    hint = "report the request id with the log"
    reason: str | None = None


class InitializationCommitted(ServerError):
    """The graph was initialised, but verifying it failed."""

    effect = "done"
    sentence = "the graph at '{uri}' was initialised, but verifying it failed[: {reason}]"
    hint = "do not delete anything; open the graph"
    uri: str | None = None
    reason: str | None = None


class InitializationIndeterminate(ServerError):
    """It is not known whether the graph was initialised."""

    sentence = "it is not known whether the graph at '{uri}' was initialised[: {reason}]"
    hint = "do not delete anything; open the graph to see, then init again if it is not there"
    uri: str | None = None
    reason: str | None = None
    probe: Any = None


class RecoveryRequired(ServerError, Transient):
    """An unfinished write must be settled first."""

    status = 503
    http_code = None
    retryable = "after_recovery"
    sentence = "recovery required for operation {operation_id}"
    wire_member = "recovery_required"
    wire_facts = ("operation_id",)
    hint = "open the graph read-write once or restart the server"
    operation_id: str | None = None


class QueryTimeout(ServerError, Transient):
    """The query took longer than its time limit."""

    status = 503
    http_code = None
    effect = "none"
    sentence = "the query took longer than {limit} ms"
    wire_member = "resource_limit"
    wire_facts = ("resource", "limit", "actual")
    hint = "narrow the query, or raise the time limit"
    resource: str = "query_wall_ms"
    limit: int | None = None
    actual: int | None = None

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        facts.setdefault("resource", "query_wall_ms")
        super().__init__(message, **facts)


class Shutdown(ServerError, Transient):
    """The server is shutting down."""

    status = 503
    http_code = None
    effect = "none"
    hint = "try again when the server is back"
    extended_exit_code = 1


class Cancelled(ClientError):
    """The operation was cancelled."""

    status = None
    http_code = None
    hint = "nothing was changed; start it again when you like"
    exit_code = 130
    extended_exit_code = 130


class ClusterError(ConfigError):
    """The cluster configuration cannot be used.

    `diagnostics` are mappings with `code`, `severity`, `path` and `message`.
    """

    sentence = "{reason}"
    hint = "correct the cluster configuration"
    diagnostics: tuple[dict[str, Any], ...] = ()

    def __init__(self, message: str | None = None, *, diagnostics: Any = (), **facts: Any) -> None:
        found = tuple(dict(one) for one in diagnostics)
        super().__init__(message or _first(found), **facts)
        self.diagnostics = found

    def typed_members(self) -> dict[str, Any]:
        """Every finding about the configuration."""
        return {"diagnostics": list(self.diagnostics)} if self.diagnostics else {}


class NotSupportedRemotely(UsageError):
    """Only an embedded graph can do what was asked."""

    sentence = "{what} works on an embedded graph only"
    hint = "run the command beside the graph"
    what: str | None = None


class ReadOnlyError(UsageError):
    """The handle only reads."""

    sentence = "{what} is refused: the handle only reads"
    hint = "open the branch itself, without read_only and without a point in time"
    what: str | None = None


class GraphClosed(UsageError):
    """The graph handle is closed."""

    hint = "open the graph again"


def _first(found: tuple[dict[str, Any], ...]) -> str | None:
    if not found:
        return None
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0].get('path', '')}: {found[0].get('message', '')}{more}".lstrip(": ")
