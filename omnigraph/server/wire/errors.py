"""Convert an exception to an HTTP status and an error object.

Only the messages of Omnigraph's own errors are sent to clients. Any other exception becomes an internal error with a
fixed text, and its details are logged. A message that mentions a storage location or a file is replaced as well.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from omnigraph.errors import (
    Cancelled,
    InternalError,
    OmnigraphError,
    PermissionDenied,
    ReadOnlyError,
    TooManyRequests,
    UsageError,
)
from omnigraph.errors.root import default_message
from omnigraph.records.frozen import record

# Strings that occur only in the names of a graph's files and objects.
_STORAGE_NAMES = re.compile(r"\.lance\b|_versions/|_transactions/|__init_claim|\b\w+:///|\bs3://|\bs3a://")
_HIDDEN_MEMBERS = frozenset({"uri", "path", "location", "file"})
_CLIENT_CLOSED_STATUS = 499  # only logged, because the client does not read the response
_MAX_DETAIL_ITEMS = 100
_LONG_DETAILS = frozenset({"problems"})  # a client requests a number of problems


@record
class WireError:
    """An error response: its status, its headers and its body."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def encode_error(
    error: BaseException, request_id: str, *, roots: Collection[str] = (), with_old_names: bool = False
) -> WireError:
    """Return the response for an exception. `roots` are the storage locations that must not appear in it.

    >>> from omnigraph.errors import BranchNotFound
    >>> wire_error = encode_error(BranchNotFound(branch="dev"), "r1")
    >>> wire_error.status, orjson.loads(wire_error.body)["error"]
    (404, "branch 'dev' not found")
    """
    public_error = _to_public_error(error)
    members = public_error.to_json(public=True)
    members["request_id"] = request_id
    status = status_of(public_error)
    if members.get("code") is None and isinstance(public_error, UsageError):
        members["code"] = "bad_request"
    if with_old_names:
        _add_old_names(members)
    else:
        members.pop("manifest_conflict", None)
    _remove_storage_names(members, public_error, roots)
    return WireError(status, orjson.dumps(members, default=str), _headers_of(public_error))


def status_of(error: OmnigraphError) -> int:
    """Return the HTTP status of an error. For a usage error without its own status, this is 400."""
    if isinstance(error, ReadOnlyError):
        return 409
    if isinstance(error, Cancelled):
        return _CLIENT_CLOSED_STATUS
    if error.status is not None:
        return error.status
    return 400 if isinstance(error, UsageError) else 500


def _to_public_error(error: BaseException) -> OmnigraphError:
    if isinstance(error, OmnigraphError):
        return error
    return InternalError()


def _headers_of(error: OmnigraphError) -> dict[str, str]:
    headers: dict[str, str] = {}
    status = status_of(error)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 405:
        headers["Allow"] = str(error.details.get("allowed", ""))
    if isinstance(error, TooManyRequests) or "retry_after" in error.details:
        headers["Retry-After"] = str(max(1, round(error.details.get("retry_after", 1))))
    elif status == 503:
        headers["Retry-After"] = "1"
    if "etag" in error.details:
        headers["ETag"] = str(error.details["etag"])
    if "content_range" in error.details:
        headers["Content-Range"] = str(error.details["content_range"])
    return headers


def _add_old_names(members: dict[str, Any]) -> None:
    """Add the member names of version 0.3 to the conflicts of a merge."""
    for conflict in members.get("merge_conflicts", ()):
        conflict["table_key"] = f"{conflict['entity_kind']}:{conflict['type_name']}"
        conflict["row_id"] = conflict.get("entity_id")


def _remove_storage_names(members: dict[str, Any], error: OmnigraphError, roots: Collection[str]) -> None:
    """Replace a message that mentions a graph's storage, and remove details that mention it."""
    for member_name in ("error", "hint"):
        if _mentions_storage(str(members.get(member_name, "")), roots):
            members[member_name] = default_message(type(error))
    details = members.get("details")
    if not isinstance(details, dict):
        return
    public_details = {
        name: value
        for name, value in details.items()
        if name not in _HIDDEN_MEMBERS
        and not _mentions_storage(str(value)[:10_000], roots)
        and (name in _LONG_DETAILS or _is_small(value))
    }
    members["details"] = public_details
    if isinstance(error, PermissionDenied) or not public_details:
        del members["details"]


def _mentions_storage(text: str, roots: Collection[str]) -> bool:
    return _STORAGE_NAMES.search(text) is not None or any(root in text for root in roots if root)


def _is_small(value: object) -> bool:
    return not isinstance(value, list | tuple | dict) or len(value) <= _MAX_DETAIL_ITEMS
