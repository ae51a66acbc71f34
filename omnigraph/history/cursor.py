"""Cursors and page tokens: a change-feed reader's position, encoded as a string that the reader stores.

This module defines the token format and the scope that a token is bound to. A token is self-contained: neither the
graph nor the reader stores anything else. A token that was altered or was issued for a different scope is rejected, and
a page token is never accepted as a cursor.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from omnigraph.errors import ChangeCursorRejected

TokenKind = Literal["commit-page", "feed-cursor", "feed-page"]
TOKEN_VERSION = 1
MAX_TOKEN_LENGTH = 4_096  # maximum length of a token, in characters
_MAX_INLINE_ID_BYTES = 256  # maximum size in bytes for including an entity id in full
_ID_PREFIX_BYTES = 64
_CHECKSUM_BYTES = 32
_KIND_LABELS = {
    "commit-page": "a page token for a single commit",
    "feed-cursor": "a cursor",
    "feed-page": "a page token",
}
_MISMATCH_REASONS = {
    "graph": "the token was created for a different graph",
    "genesis": "the token was created for a different graph",
    "branch": "the token was created for a different branch",
    "incarnation": "the branch was deleted and recreated, or its name now belongs to a different branch",
    "filter": "the token was created with a different filter",
}


@dataclass(frozen=True, slots=True)
class CursorBinding:
    """The scope in which a token is valid: a graph, its first commit, one specific branch, and a filter.

    A page token for a single commit is not bound to a branch.
    """

    graph: str
    genesis: str
    filter: str
    branch: str = ""
    incarnation: str = ""


def hash_branch_name(branch_name: str) -> str:
    """Return the hash that tokens contain in place of a branch name.

    >>> hash_branch_name("main")[:8]
    '6461b20c'
    """
    return hash_facts({"branch": branch_name})


def hash_facts(facts: Mapping[str, Any]) -> str:
    """Return a hash of JSON-compatible data, short enough for a token."""
    return sha256(_canonical_json(facts)).hexdigest()[:32]


def encode_token(kind: TokenKind, binding: CursorBinding, **position: Any) -> str:
    """Return a token: JSON and its hash, encoded as base64url without padding.

    >>> bound = CursorBinding("g", "c", "f")
    >>> decode_token(encode_token("feed-cursor", bound, commit="x"), "feed-cursor", bound)
    {'commit': 'x'}
    """
    json_body = _canonical_json({"v": TOKEN_VERSION, "kind": kind, "at": position, **_binding_facts(binding)})
    return _encode_base64(json_body + sha256(json_body).digest())


def decode_token(token: str, kind: TokenKind, binding: CursorBinding) -> dict[str, Any]:
    """Return the position in a token; raise `ChangeCursorRejected` if the token is not valid in this scope."""
    token_facts = _parse_token(token)
    if token_facts.get("v") != TOKEN_VERSION:
        raise ChangeCursorRejected(reason="the token was created by a different version of Omnigraph")
    if token_facts.get("kind") != kind:
        actual_label = _KIND_LABELS.get(str(token_facts.get("kind")), "an unknown kind of token")
        raise ChangeCursorRejected(reason=f"expected {_KIND_LABELS[kind]}, got {actual_label}")
    bound_facts = {fact_name: token_facts.get(fact_name) for fact_name in _MISMATCH_REASONS}
    if bound_facts["incarnation"] == binding.incarnation:
        bound_facts["branch"] = binding.branch or None  # the branch may have been renamed in the meantime
    for fact_name, expected in _binding_facts(binding).items():
        if bound_facts[fact_name] != expected:
            raise ChangeCursorRejected(reason=_MISMATCH_REASONS[fact_name])
    position: dict[str, Any] = token_facts["at"]
    return position


def read_token_position(token: str) -> dict[str, Any]:
    """Return the position in a token without checking the token's scope."""
    position: dict[str, Any] = _parse_token(token)["at"]
    return position


def encode_entity_position(entity_id: str) -> dict[str, str]:
    """Encode an entity id for a token. A long id is replaced with a prefix and a hash.

    >>> encode_entity_position("ann"), sorted(encode_entity_position("x" * 300))
    ({'id': 'ann'}, ['digest', 'prefix'])
    """
    encoded_id = entity_id.encode()
    if len(encoded_id) <= _MAX_INLINE_ID_BYTES:
        return {"id": entity_id}
    id_prefix = encoded_id[:_ID_PREFIX_BYTES].decode(errors="ignore")
    return {"prefix": id_prefix, "digest": sha256(encoded_id).hexdigest()}


def is_entity_position(position: Mapping[str, str], entity_id: str) -> bool:
    """Return whether an entity id matches the one stored in a token."""
    return encode_entity_position(entity_id).items() <= position.items()


def _binding_facts(binding: CursorBinding) -> dict[str, str]:
    binding_facts = {
        "graph": binding.graph,
        "genesis": binding.genesis,
        "branch": binding.branch,
        "incarnation": binding.incarnation,
        "filter": binding.filter,
    }
    return {fact_name: fact_value for fact_name, fact_value in binding_facts.items() if fact_value}


def _parse_token(token: str) -> dict[str, Any]:
    """Parse the JSON in a token and verify that no character was changed."""
    if not isinstance(token, str) or not token or len(token) > MAX_TOKEN_LENGTH:
        raise ChangeCursorRejected(reason=f"expected a string of 1 to {MAX_TOKEN_LENGTH} characters")
    try:
        token_bytes = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        json_body, checksum = token_bytes[:-_CHECKSUM_BYTES], token_bytes[-_CHECKSUM_BYTES:]
        is_intact = _encode_base64(token_bytes) == token and sha256(json_body).digest() == checksum
        token_facts = json.loads(json_body) if is_intact else None
        if (
            isinstance(token_facts, dict)
            and isinstance(token_facts.get("at"), dict)
            and _canonical_json(token_facts) == json_body
        ):
            return token_facts
    except (Base64Error, RecursionError, ValueError):
        pass  # rejected below, like any other string that is not a token
    raise ChangeCursorRejected(reason="the token is truncated or has been modified")


def _canonical_json(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _encode_base64(raw_bytes: bytes) -> str:
    return urlsafe_b64encode(raw_bytes).decode().rstrip("=")
