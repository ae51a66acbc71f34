"""Cursors and page tokens: the position of a change-feed reader, as text that the reader keeps.

Owns their form and everything that a token is bound to. Nothing is stored on either side: a token
is self-contained, and one that was altered, or made for something else, is rejected. A page token
is never accepted as a cursor.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from omnigraph.errors import ChangeCursorRejected

Kind = Literal["commit-page", "feed-cursor", "feed-page"]
VERSION = 1
LONGEST = 4_096  # characters of a token
_EXACT = 256  # longest entity id, in bytes, that a token carries in full
_PREFIX = 64
_SUM = 32
_WORDS = {
    "commit-page": "a page token of one commit",
    "feed-cursor": "a cursor",
    "feed-page": "a page token",
}
_REASONS = {
    "graph": "it was made for another graph",
    "genesis": "it was made for another graph",
    "branch": "it was made for another branch",
    "incarnation": "the branch was deleted and created again, or another branch has its name",
    "filter": "it was made with another filter",
}


@dataclass(frozen=True, slots=True)
class Binding:
    """What a token is valid for: a graph, its first commit, one incarnation of a branch, a filter.

    The page token of a single commit has no branch.
    """

    graph: str
    genesis: str
    filter: str
    branch: str = ""
    incarnation: str = ""


def branch_scope(name: str) -> str:
    """Return the hash of a branch name, as tokens carry it.

    >>> branch_scope("main")[:8]
    '6461b20c'
    """
    return digest_of({"branch": name})


def digest_of(facts: Mapping[str, Any]) -> str:
    """Return the hash of JSON-compatible facts, short enough for a token."""
    return sha256(_plain(facts)).hexdigest()[:32]


def encode(kind: Kind, binding: Binding, **place: Any) -> str:
    """Return a token: base64url of JSON and its hash, without padding.

    >>> bound = Binding("g", "c", "f")
    >>> decode(encode("feed-cursor", bound, commit="x"), "feed-cursor", bound)
    {'commit': 'x'}
    """
    body = _plain({"v": VERSION, "kind": kind, "at": place, **_facts(binding)})
    return _text(body + sha256(body).digest())


def decode(text: str, kind: Kind, binding: Binding) -> dict[str, Any]:
    """Return the position in a token; raise `ChangeCursorRejected` if it is not valid here."""
    facts = _facts_in(text)
    if facts.get("v") != VERSION:
        raise ChangeCursorRejected(reason="it was made by another version of the program")
    if facts.get("kind") != kind:
        found = _WORDS.get(str(facts.get("kind")), "something else")
        raise ChangeCursorRejected(reason=f"it is {found}, not {_WORDS[kind]}")
    known = {one: facts.get(one) for one in _REASONS}
    if known["incarnation"] == binding.incarnation:
        known["branch"] = binding.branch or None  # the name may have changed since: same branch
    for name, expected in _facts(binding).items():
        if known[name] != expected:
            raise ChangeCursorRejected(reason=_REASONS[name])
    place: dict[str, Any] = facts["at"]
    return place


def peek(text: str) -> dict[str, Any]:
    """Return the position in a token, whatever it was made for."""
    place: dict[str, Any] = _facts_in(text)["at"]
    return place


def entity_place(entity_id: str) -> dict[str, str]:
    """Return an entity id as tokens carry it: a long one as a prefix and a hash.

    >>> entity_place("ann"), sorted(entity_place("x" * 300))
    ({'id': 'ann'}, ['digest', 'prefix'])
    """
    raw = entity_id.encode()
    if len(raw) <= _EXACT:
        return {"id": entity_id}
    prefix = raw[:_PREFIX].decode(errors="ignore")
    return {"prefix": prefix, "digest": sha256(raw).hexdigest()}


def names_entity(place: Mapping[str, str], entity_id: str) -> bool:
    """Return whether an entity id is the one that a token carries."""
    return entity_place(entity_id).items() <= place.items()


def _facts(binding: Binding) -> dict[str, str]:
    facts = {
        "graph": binding.graph,
        "genesis": binding.genesis,
        "branch": binding.branch,
        "incarnation": binding.incarnation,
        "filter": binding.filter,
    }
    return {name: value for name, value in facts.items() if value}


def _facts_in(text: str) -> dict[str, Any]:
    """Parse the JSON of a token, and verify that not a single character was changed."""
    if not isinstance(text, str) or not text or len(text) > LONGEST:
        raise ChangeCursorRejected(reason=f"expected a text of 1 to {LONGEST} characters")
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        body, checksum = raw[:-_SUM], raw[-_SUM:]
        sound = _text(raw) == text and sha256(body).digest() == checksum
        facts = json.loads(body) if sound else None
        if isinstance(facts, dict) and isinstance(facts.get("at"), dict) and _plain(facts) == body:
            return facts
    except (Base64Error, RecursionError, ValueError):
        pass  # rejected below, like any other text that is not a token
    raise ChangeCursorRejected(reason="it is truncated or altered")


def _plain(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
