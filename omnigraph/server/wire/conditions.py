"""Headers that make a request conditional or repeatable: write preconditions, entity tags and idempotency keys."""

import hashlib
import re
from collections.abc import Sequence

from omnigraph.errors import InputError
from omnigraph.publish.idempotency import ACTOR_SEPARATOR
from omnigraph.server.route_model import CONDITION_HEADER, IDEMPOTENCY_HEADER, Route

_COMMIT_PATTERN = re.compile(r"[0-9A-Za-z]{1,64}")
_MAX_KEY_LENGTH = 255


def read_condition(route: Route, values: Sequence[str]) -> str | None:
    """Return the commit that a conditional write requires, or None on routes without a condition.

    A conditional route requires the header exactly once. Any other route rejects the header, because ignoring it would
    turn a conditional write into an unconditional one.
    """
    if not route.takes_condition:
        if values and route.is_write:
            path = route.conditional_path
            hint = "this operation has no conditional form" if path is None else f"send the request to {path}"
            reason = "unexpected condition"
            raise InputError(f"{CONDITION_HEADER} is not accepted on this path", reason=reason, hint=hint)
        return None
    if len(values) != 1:
        raise InputError(f"{CONDITION_HEADER} must be specified exactly once", reason="missing condition")
    commit_id = values[0].strip()
    if _COMMIT_PATTERN.fullmatch(commit_id) is None:
        raise InputError(f"{CONDITION_HEADER} must be a commit id", reason="malformed condition")
    return commit_id


def read_idempotency_key(route: Route, values: Sequence[str], actor: str | None) -> str | None:
    """Return the key by which the engine recognizes a repeated write, or None if the request has no idempotency key.

    The key consists of the actor's name and the client's key.
    """
    if not values:
        return None
    if not route.takes_idempotency_key:
        raise InputError(f"{IDEMPOTENCY_HEADER} is not accepted on this path", reason="unsupported header")
    key = values[0].strip()
    if len(values) > 1 or not 0 < len(key) <= _MAX_KEY_LENGTH or not key.isprintable():
        message = f"{IDEMPOTENCY_HEADER} must be specified once, with 1 to {_MAX_KEY_LENGTH} printable characters"
        raise InputError(message, reason="malformed header")
    return f"{actor or ''}{ACTOR_SEPARATOR}{key}"


def make_etag(commit_id: str, *facts: object) -> str:
    """Return a strong entity tag for the result of a request at a commit.

    >>> make_etag("01A", "query", None) == make_etag("01A", "query", None)
    True
    """
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return f'"{commit_id}:{digest}"'


def matches_etag(if_none_match: str | None, etag: str) -> bool:
    """Return whether an `If-None-Match` header matches an entity tag (weak comparison).

    >>> matches_etag('W/"a", "b"', '"b"'), matches_etag("*", '"b"'), matches_etag('"x"', '"b"')
    (True, True, False)
    """
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
