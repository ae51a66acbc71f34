"""Turn the body of an error response back into the exception that the embedded graph raises.

The server sends the stable name of the error class and its attributes, so the client raises the same class with the
same attributes, hint, effect and retry advice. This module never guesses from the text of a message.
"""

import json
from functools import cache
from typing import Any

from omnigraph.errors import (
    ClientError,
    EntityConflict,
    InputError,
    InternalError,
    LanguageError,
    MergeConflict,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    OmnigraphError,
    PermissionDenied,
    PreconditionFailed,
    RequestTimeout,
    ResourceLimitExceeded,
    SchemaUnsupported,
    ServerBusy,
    ServerError,
    TooManyRequests,
    Unauthenticated,
    UnsupportedMediaType,
)
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.errors.merge_conflict import CONFLICT_MEMBERS
from omnigraph.errors.root import default_message

_CLASS_BY_STATUS: dict[int, type[OmnigraphError]] = {
    400: InputError,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    408: RequestTimeout,
    412: PreconditionFailed,
    413: ResourceLimitExceeded,
    415: UnsupportedMediaType,
    429: TooManyRequests,
    500: InternalError,
    503: ServerBusy,
}
# Members of typed objects whose names differ from those of the class's attributes.
_FACT_NAMES = {
    "published_dataset_version_conflict": {
        "expected_published_dataset_version": "expected",
        "actual_published_dataset_version": "actual",
    },
    "embedding_source": {"status": "provider_status"},
}
_TYPED_MEMBERS = (
    "published_dataset_version_conflict",
    "read_set_conflict",
    "key_conflict",
    "resource_limit",
    "blob_range",
    "external_blob_source",
    "embedding_source",
    "recovery_required",
    "precondition_failure",
    "change_feed_gap",
    "change_diff_refusal",
)


def decode_error(status: int, body: bytes, *, request_id: str | None = None) -> OmnigraphError:
    r"""Return the exception for an error response.

    >>> error = decode_error(404, b'{"error": "branch \'dev\' not found", "kind": "BranchNotFound",'
    ...     b' "details": {"branch": "dev"}}')
    >>> type(error).__name__, error.branch
    ('BranchNotFound', 'dev')
    """
    members = _read_members(body)
    error_class = _find_class(members, status)
    message = members.get("error")
    error = _build_error(error_class, message if isinstance(message, str) else _describe_status(status), members)
    if error.status is not None and error.status != status:  # usage errors have no status, even when sent as 400
        error.status = status
    error.request_id = members.get("request_id") or request_id
    return error


def build_error(members: dict[str, Any]) -> OmnigraphError:
    """Return the exception for the error of a failed job."""
    return _build_error(_find_class(members, 500), str(members.get("error") or "the job failed"), members)


def _read_members(body: bytes) -> dict[str, Any]:
    try:
        members = json.loads(body)
    except ValueError:  # a proxy sent its own error page
        return {}
    return members if isinstance(members, dict) else {}


def _find_class(members: dict[str, Any], status: int) -> type[OmnigraphError]:
    error_class = _classes_by_code().get(str(members.get("kind")))
    if error_class is not None:
        return error_class
    fallback = ServerError if status >= 500 else ClientError
    return _CLASS_BY_STATUS.get(status, fallback)


@cache
def _classes_by_code() -> dict[str, type[OmnigraphError]]:
    """Return all error classes by their stable name. Of classes that share a name, the most general one is used."""
    classes: dict[str, type[OmnigraphError]] = {}
    pending: list[type[OmnigraphError]] = [OmnigraphError]
    while pending:
        error_class = pending.pop(0)
        classes.setdefault(error_class.code, error_class)
        pending.extend(error_class.__subclasses__())
    return classes


def _build_error(error_class: type[OmnigraphError], message: str, members: dict[str, Any]) -> OmnigraphError:
    """Create an exception without its constructor, because constructors derive their messages from richer input."""
    error: Any = error_class.__new__(error_class)
    facts = _read_facts(error_class, members)
    OmnigraphError.__init__(
        error,
        message or default_message(error_class),
        hint=members.get("hint"),
        effect=members.get("effect"),
        retryable=members.get("retry"),
        **facts,
    )
    if isinstance(error, LanguageError):
        error.diagnostics = tuple(Diagnostic(**diagnostic) for diagnostic in members.get("diagnostics", ()))
        if isinstance(error, SchemaUnsupported) and "steps" in members:
            error.steps = tuple(members["steps"])
    if isinstance(error, MergeConflict):
        error.conflicts = [read_conflict(document) for document in members.get("merge_conflicts", ())]
    return error  # type: ignore[no-any-return]


def _read_facts(error_class: type[OmnigraphError], members: dict[str, Any]) -> dict[str, Any]:
    details = members.get("details")
    facts: dict[str, Any] = dict(details) if isinstance(details, dict) else {}
    for member_name in _TYPED_MEMBERS:
        typed_member = members.get(member_name)
        if isinstance(typed_member, dict):
            names = _FACT_NAMES.get(member_name, {})
            facts |= {names.get(str(name), str(name)): value for name, value in typed_member.items()}
    if members.get("merge_conflicts"):
        facts["merge_conflicts"] = members["merge_conflicts"]
    return {
        name: tuple(value) if isinstance(getattr(error_class, name, None), tuple) else value
        for name, value in facts.items()
        if name not in ("message", "hint", "effect", "retryable", "status", "request_id")
    }


def read_conflict(document: dict[str, Any]) -> EntityConflict:
    """Parse a merge conflict from its JSON."""
    facts = {name: document.get(name) for name in CONFLICT_MEMBERS}
    facts["message"] = facts["message"] or ""
    return EntityConflict(**facts, changed=tuple(document.get("changed", ())))  # type: ignore[arg-type]


def _describe_status(status: int) -> str:
    return f"the server responded with status {status}"
