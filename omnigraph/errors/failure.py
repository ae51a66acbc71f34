"""Errors for storage, serving, initialization and cancelled operations."""
# ruff: noqa: N818 - a class name states what happened and needs no `Error` suffix

from typing import Any, Literal

from .root import ClientError, ConfigError, ServerError, Transient, UsageError

StorageKind = Literal["transient", "configuration", "not_found", "precondition", "permanent", "unknown"]
"""The cause of a storage failure, or `unknown` if it could not be determined."""


class StorageError(ServerError):
    """The store failed.

    If `kind` is `transient`, the error is a `TransientStorageError`. Even then, do not retry an operation without
    knowing whether it took effect.

    >>> isinstance(StorageError(kind="transient"), Transient)
    True
    """

    sentence = "the store failed ({kind})[: {reason}]"
    hint = "check the store's availability, credentials and free space"
    kind: StorageKind = "unknown"
    reason: str | None = None

    def __new__(cls, *args: Any, **facts: Any) -> "StorageError":
        """Create the error, as a `TransientStorageError` if `kind` is `transient`."""
        is_transient = cls is StorageError and facts.get("kind") == "transient"
        return super().__new__(TransientStorageError if is_transient else cls, *args)

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        facts.setdefault("kind", type(self).kind)
        super().__init__(message, **facts)


class TransientStorageError(StorageError, Transient):
    """The store failed temporarily, for example because of a timeout, throttling or a lost connection."""

    kind = "transient"
    hint = "wait, then try again"


class IndexUnreadable(UserWarning):
    """Warning: an index cannot be read. Results stay correct, but queries are slower until the index is rebuilt."""


class AmbiguousRevision(UserWarning):
    """Warning: the name of a tag or branch can also be read as another revision, such as a date or a commit id."""


class BlobIntegrityError(ServerError):
    """A stored blob does not match its metadata."""

    effect = "none"
    hint = "restore the blob from a backup; run `check` to find other damaged blobs"


class InternalError(ServerError):
    """An internal error occurred in Omnigraph."""

    sentence = "internal error: {reason}"
    hint = "report this error with the request id and the log"
    reason: str | None = None


class InitializationCommitted(ServerError):
    """The graph was initialized, but could not be verified."""

    effect = "done"
    sentence = "the graph at '{uri}' was initialized, but could not be verified[: {reason}]"
    hint = "do not delete anything; open the graph to check whether it is complete"
    uri: str | None = None
    reason: str | None = None


class InitializationIndeterminate(ServerError):
    """It is unknown whether the graph was initialized."""

    sentence = "it is unknown whether the graph at '{uri}' was initialized[: {reason}]"
    hint = "do not delete anything; try to open the graph, and run `init` again if the graph does not exist"
    uri: str | None = None
    reason: str | None = None
    probe: Any = None


class RecoveryRequired(ServerError, Transient):
    """An unfinished write must be recovered first."""

    status = 503
    http_code = None
    retryable = "after_recovery"
    sentence = "recovery required for operation {operation_id}"
    wire_member = "recovery_required"
    wire_facts = ("operation_id",)
    hint = "open the graph for writing, which recovers the write, or restart the server"
    operation_id: str | None = None


class QueryTimeout(ServerError, Transient):
    """The query took longer than its time limit."""

    status = 503
    http_code = None
    effect = "none"
    sentence = "the query took longer than {limit} ms"
    wire_member = "resource_limit"
    wire_facts = ("resource", "limit", "actual")
    hint = "narrow the query, or increase the time limit"
    resource: str = "query_wall_ms"
    limit: int | None = None
    actual: int | None = None

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        facts.setdefault("resource", "query_wall_ms")
        super().__init__(message, **facts)


class QueryProcessDied(ServerError, Transient):
    """A process in the query pool exited before returning a result.

    >>> print(QueryProcessDied(process_exit_code=-9).message)
    the process running the query exited with code -9
    """

    status = 503
    http_code = None
    effect = "none"
    sentence = "the process running the query exited[ with code {process_exit_code}]"
    hint = (
        "run the query again; the pool has started a new process."
        " Exit code -9 often means that the process ran out of memory"
    )
    process_exit_code: int | None = None


class Shutdown(ServerError, Transient):
    """The server is shutting down."""

    status = 503
    http_code = None
    effect = "none"
    hint = "try again when the server is available"
    extended_exit_code = 1


class Cancelled(ClientError):
    """The operation was cancelled."""

    status = None
    http_code = None
    hint = "nothing was changed; run the operation again if needed"
    exit_code = 130
    extended_exit_code = 130


class ClusterError(ConfigError):
    """The cluster configuration is invalid.

    `diagnostics` contains mappings with `code`, `severity`, `path` and `message`.
    """

    sentence = "{reason}"
    hint = "correct the cluster configuration"
    diagnostics: tuple[dict[str, Any], ...] = ()

    def __init__(self, message: str | None = None, *, diagnostics: Any = (), **facts: Any) -> None:
        diagnostic_dicts = tuple(dict(diagnostic) for diagnostic in diagnostics)
        super().__init__(message or _first_diagnostic_headline(diagnostic_dicts), **facts)
        self.diagnostics = diagnostic_dicts

    def typed_members(self) -> dict[str, Any]:
        """Return all diagnostics for the configuration."""
        return {"diagnostics": list(self.diagnostics)} if self.diagnostics else {}


class NotSupportedRemotely(UsageError):
    """The operation is not available for a graph on a server."""

    sentence = "{what} is only available on an embedded graph"
    hint = "run the command on the machine where the graph is stored"
    what: str | None = None


class ReadOnlyError(UsageError):
    """The graph handle is read-only."""

    sentence = "{what} is not allowed: the graph handle is read-only"
    hint = "open the branch itself, without read_only and without a past revision"
    what: str | None = None


class GraphClosed(UsageError):
    """The graph handle is closed."""

    hint = "open the graph again"


def _first_diagnostic_headline(diagnostics: tuple[dict[str, Any], ...]) -> str | None:
    if not diagnostics:
        return None
    remaining_note = f" (and {len(diagnostics) - 1} more)" if len(diagnostics) > 1 else ""
    path, message = diagnostics[0].get("path", ""), diagnostics[0].get("message", "")
    return f"{path}: {message}{remaining_note}".lstrip(": ")
