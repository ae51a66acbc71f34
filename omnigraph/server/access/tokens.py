"""Bearer tokens: their sources, their hashes, and the actors that they identify.

Only SHA-256 hashes are kept in memory. A source may also contain hashes, written as `sha256:<hex>`. Error messages name
actors and variables, never tokens.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from omnigraph.api.actors import reject_reserved_actor
from omnigraph.errors import ConfigError, Unauthenticated
from omnigraph.records.frozen import record

from .permissions import Permission, Principal, parse_permission

FILE_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
JSON_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
SINGLE_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKEN"
AWS_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
HASH_PREFIX = "sha256:"
SINGLE_ACTOR = "default"
_HASH_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
# Up to this size, every entry is compared, so that the time does not depend on which entry matches. In a larger
# table, a lookup by hash is also safe, because an attacker cannot choose hashes.
_MAX_COMPARED = 256


@record
class TokenEntry:
    """The hash of a token, and the caller that the token identifies."""

    digest: bytes
    principal: Principal


class TokenTable:
    """All accepted tokens of a server."""

    def __init__(self, entries: tuple[TokenEntry, ...] = ()) -> None:
        self._entries = entries
        self._principals = {entry.digest: entry.principal for entry in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, token: str) -> Principal | None:
        """Return the caller that a token identifies, or None if the token is unknown."""
        digest = hash_token(token)
        if len(self._entries) > _MAX_COMPARED:
            return self._principals.get(digest)
        matching_principal = None
        for entry in self._entries:
            if hmac.compare_digest(digest, entry.digest):
                matching_principal = entry.principal
        return matching_principal


def hash_token(token: str) -> bytes:
    """Return the SHA-256 hash of a token without surrounding whitespace."""
    return hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()


def format_hash(token: str) -> str:
    """Return the hash of a token in the format of a token file.

    >>> format_hash("secret")[:20]
    'sha256:2bb80d537b1da'
    """
    return HASH_PREFIX + hash_token(token).hex()


def read_bearer_token(authorization: str | None) -> str:
    """Return the token in an `Authorization` header; raise `Unauthenticated` if there is none."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("missing bearer token")
    return token.strip()


def load_token_table(environment: Mapping[str, str] = os.environ, *, permission: str = "read") -> TokenTable:
    """Read all token sources. Entries without a permission get `permission`.

    A token file replaces the inline source. A single token is added to either source.

    >>> table = load_token_table({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ann": "s3cret"}'})
    >>> table.find("s3cret").actor, table.find("other")
    ('ann', None)
    """
    if environment.get(AWS_VARIABLE):
        raise ConfigError(reason=f"{AWS_VARIABLE} is set, but this server does not support AWS Secrets Manager")
    default_permission = parse_permission(permission)
    entries = [_parse_entry(actor, value, default_permission) for actor, value in _read_entries(environment)]
    if environment.get(SINGLE_VARIABLE):
        entries.append(_parse_entry(SINGLE_ACTOR, environment[SINGLE_VARIABLE], default_permission))
    _require_unique(entries)
    return TokenTable(tuple(entries))


def _read_entries(environment: Mapping[str, str]) -> list[tuple[str, Any]]:
    path = environment.get(FILE_VARIABLE)
    if path:
        return _parse_document(_read_file(Path(path)), FILE_VARIABLE)
    inline = environment.get(JSON_VARIABLE)
    return _parse_document(inline.encode(), JSON_VARIABLE) if inline else []


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(reason=f"cannot read the token file: {error.strerror}", path=str(path)) from None


def _parse_document(data: bytes, source: str) -> list[tuple[str, Any]]:
    """Return the members of a token document. Unlike a plain JSON parser, reject repeated actors."""
    import json

    def keep_pairs(pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return pairs

    try:
        orjson.loads(data)  # rejects values such as NaN, which the standard library accepts
        members = json.loads(data, object_pairs_hook=keep_pairs)
    except ValueError:
        raise ConfigError(reason=f"{source} is not valid JSON") from None
    if not isinstance(members, list) or not all(isinstance(member, tuple) for member in members):
        raise ConfigError(reason=f"{source} must be a JSON object that maps actors to tokens")
    return members


def _parse_entry(actor: str, value: Any, default_permission: Permission) -> TokenEntry:
    """Parse a token, or an object with `token` and `permission`."""
    permission: Permission = default_permission
    if isinstance(value, list):
        members = dict(value)
        value, permission = members.get("token"), parse_permission(str(members.get("permission", permission)))
    if not actor.strip() or not isinstance(value, str) or not value.strip():
        raise ConfigError(reason="a token entry has a blank actor or a blank token")
    reject_reserved_actor(actor.strip())  # rejects names that are reserved for the system
    token = value.strip()
    is_hash = _HASH_PATTERN.fullmatch(token) is not None
    digest = bytes.fromhex(token.removeprefix(HASH_PREFIX)) if is_hash else hash_token(token)
    return TokenEntry(digest, Principal(actor.strip(), permission))


def _require_unique(entries: list[TokenEntry]) -> None:
    actors = [entry.principal.actor for entry in entries]
    repeated = next((actor for actor in actors if actors.count(actor) > 1), None)
    if repeated is not None:
        raise ConfigError(reason=f"the actor '{repeated}' has two tokens")
    digests = {entry.digest: entry.principal.actor for entry in entries}
    if len(digests) < len(entries):
        raise ConfigError(reason="two actors have the same token")
