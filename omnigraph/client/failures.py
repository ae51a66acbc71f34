"""Turn the body of an error response back into the exception that an embedded graph raises.

The server sends the stable name of the error class and its facts, so the client raises the same class with the same
facts, hint, effect and retry advice. An error from another program, such as a proxy, becomes the exception for its HTTP
status. This module never guesses the class from the text of a message.
"""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, get_args

from omnigraph.errors import (
    ClientError,
    Conflict,
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
from omnigraph.errors.root import Effect, Retry, default_message

Item = TypeVar("Item")
_CLASS_BY_STATUS: dict[int, type[OmnigraphError]] = {
    400: InputError,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    408: RequestTimeout,
    409: Conflict,
    412: PreconditionFailed,
    413: ResourceLimitExceeded,
    415: UnsupportedMediaType,
    422: InputError,
    429: TooManyRequests,
    500: InternalError,
    503: ServerBusy,
}
# Members of typed objects whose names differ from the facts of their class.
_FACT_NAMES = {
    "published_dataset_version_conflict": {
        "expected_published_dataset_version": "expected",
        "actual_published_dataset_version": "actual",
    },
    "embedding_source": {"status": "provider_status"},
}
_FIRST_SERVER_ERROR = 500
_GATEWAY_STATUSES = frozenset({502, 503, 504})
_READ_PAGE_BYTES, _MAX_PAGE_CHARACTERS = 1 << 16, 300
_NO_TEXT = re.compile(r"<(style|script)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_OWN_FACTS = frozenset({"self", "message", "hint", "effect", "retryable", "status", "request_id"})
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


def decode_error(
    status: int,
    body: bytes,
    *,
    request_id: str | None = None,
    effect_if_foreign: Effect = "unknown",
    retry_after: float | None = None,
) -> OmnigraphError:
    r"""Return the exception for an error response.

    `effect_if_foreign` is the effect to report if a program other than the server, such as a proxy, sent a 5xx error.

    >>> error = decode_error(404, b'{"error": "branch \'dev\' not found", "kind": "BranchNotFound",'
    ...     b' "details": {"branch": "dev"}}')
    >>> type(error).__name__, error.branch
    ('BranchNotFound', 'dev')
    >>> print(decode_error(502, b"<h1>Bad&nbsp;Gateway</h1>").message)
    the server returned status 502: Bad Gateway
    """
    members = _read_members(body)
    if not isinstance(members.get("error"), str):
        members = _describe_foreign_answer(status, body, effect_if_foreign)
    error = _build_error(_find_class(members, status), members["error"], members)
    if error.status is not None and error.status != status:  # usage errors have no status, even when sent as 400
        error.status = status
    error.request_id = members.get("request_id") or request_id
    if retry_after is not None and "retry_after" not in error.details:
        error.details["retry_after"] = retry_after
        if isinstance(error, TooManyRequests):
            error.retry_after = retry_after
    return error


def build_error(members: dict[str, Any]) -> OmnigraphError:
    """Return the exception for a failed job's error."""
    return _build_error(_find_class(members, 500), str(members.get("error") or "the job failed"), members)


def _read_members(body: bytes) -> dict[str, Any]:
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):  # a proxy returned its own page
        return {}
    return members if isinstance(members, dict) else {}


def _describe_foreign_answer(status: int, body: bytes, effect: Effect) -> dict[str, Any]:
    """Return the members of an error that another program sent.

    A 5xx error has the given effect, because a gateway may have forwarded the request.
    """
    text = _extract_text(body)
    members: dict[str, Any] = {"error": f"the server returned status {status}" + (f": {text}" if text else "")}
    if status >= _FIRST_SERVER_ERROR:
        members |= {"effect": effect, "hint": "check the URL, and the proxies between this program and the server"}
    if status in _GATEWAY_STATUSES:
        members["retry"] = "same"
    return members


def _extract_text(body: bytes) -> str:
    """Return the text of a page, without tags and on one line."""
    text = body[:_READ_PAGE_BYTES].decode("utf-8", "replace")
    text = "" if text.lstrip().startswith(("{", "[")) else _NO_TEXT.sub(" ", text)
    words = "".join(character if character.isprintable() else " " for character in html.unescape(text)).split()
    line = " ".join(words)
    return line if len(line) <= _MAX_PAGE_CHARACTERS else line[: _MAX_PAGE_CHARACTERS - 1] + "…"


def _find_class(members: dict[str, Any], status: int) -> type[OmnigraphError]:
    error_class = _classes_by_code().get(str(members.get("kind")))
    if error_class is not None:
        return error_class
    fallback = ServerError if status >= _FIRST_SERVER_ERROR else ClientError
    return _CLASS_BY_STATUS.get(status, fallback)


@cache
def _classes_by_code() -> dict[str, type[OmnigraphError]]:
    """Return all error classes, keyed by stable name. If several classes share a name, use the most general one."""
    classes: dict[str, type[OmnigraphError]] = {}
    pending: list[type[OmnigraphError]] = [OmnigraphError]
    while pending:
        error_class = pending.pop(0)
        classes.setdefault(error_class.code, error_class)
        pending.extend(error_class.__subclasses__())
    return classes


def _build_error(error_class: type[OmnigraphError], message: str, members: dict[str, Any]) -> OmnigraphError:
    """Create an exception without its constructor, because a response may lack arguments that the constructor needs."""
    error: Any = error_class.__new__(error_class)
    facts = _read_facts(error_class, members)
    OmnigraphError.__init__(
        error,
        message or default_message(error_class),
        hint=members["hint"] if isinstance(members.get("hint"), str) else None,
        effect=members["effect"] if members.get("effect") in get_args(Effect) else None,
        retryable=members["retry"] if members.get("retry") in get_args(Retry) else None,
        **facts,
    )
    if isinstance(error, LanguageError):
        error.diagnostics = tuple(read_known_members(Diagnostic, item) for item in _read_list(members, "diagnostics"))
        if isinstance(error, SchemaUnsupported) and "steps" in members:
            error.steps = tuple(members["steps"])
    if isinstance(error, MergeConflict):
        error.conflicts = [read_conflict(document) for document in _read_list(members, "merge_conflicts")]
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
        if name not in _OWN_FACTS
    }


def read_conflict(document: dict[str, Any]) -> EntityConflict:
    """Return the merge conflict that a document describes."""
    facts = {name: document.get(name) for name in CONFLICT_MEMBERS}
    facts["message"] = facts["message"] or ""
    return EntityConflict(**facts, changed=tuple(document.get("changed", ())))  # type: ignore[arg-type]


def read_known_members(record_class: type[Item], document: Mapping[str, Any]) -> Item:
    """Return a record with only the members that its class declares, because a newer server may send others.

    >>> read_known_members(Diagnostic, {"code": "T1", "kind": "type", "message": "m", "fix": "new"}).code
    'T1'
    """
    names = {field.name for field in fields(record_class) if field.init}  # type: ignore[arg-type]
    return record_class(**{name: value for name, value in document.items() if name in names})


def _read_list(members: Mapping[str, Any], name: str) -> list[Any]:
    items = members.get(name)
    return items if isinstance(items, list) else []
