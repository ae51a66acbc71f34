"""Verify JSON web tokens from an identity provider (OpenID Connect) with the keys that the provider publishes.

The signature, the issuer, the audience and the expiry are checked. Keys are fetched at most every ten seconds, by one
request at a time. While the provider is unreachable, earlier keys stay valid. This module requires the `oidc` extra.
"""

import asyncio
import json
import urllib.request
from collections import OrderedDict
from typing import Any
from urllib.parse import urlsplit

from omnigraph.api.actors import reject_reserved_actor
from omnigraph.errors import ConfigError, OmnigraphError, Unauthenticated
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .permissions import Permission, Principal, parse_permission
from .tokens import hash_token

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_REFRESH_SECONDS = 10.0
_FETCH_SECONDS = 5.0
_LEEWAY_SECONDS = 30
_MAX_VERDICTS = 10_000
_MAX_DOCUMENT_BYTES = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@record
class OidcSettings:
    """The provider, the required audience of its tokens, and the claims that identify the caller.

    The claim `permission_claim` contains the permission. A token without this claim gets `default_permission`.
    """

    issuer: str
    audience: str
    jwks_url: str | None = None
    actor_claim: str = "sub"
    permission_claim: str = "omnigraph_permission"
    default_permission: Permission = "read"


class OidcVerifier:
    """Verifies the tokens of one provider, and caches the result until the token expires."""

    def __init__(self, settings: OidcSettings) -> None:
        _require_secure(settings.issuer)
        self._settings = settings
        self._keys: dict[str, Any] = {}
        self._next_fetch = 0.0
        self._fetch_lock = asyncio.Lock()
        self._verdicts: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    async def verify(self, token: str) -> Principal:
        """Return the caller that a token identifies; raise `Unauthenticated` for a token that cannot be trusted."""
        digest = hash_token(token)
        verdict = self._verdicts.get(digest)
        if verdict is not None and verdict[0] > _epoch_seconds():
            self._verdicts.move_to_end(digest)
            return verdict[1]
        claims = await self._read_claims(token)
        principal = self._principal_of(claims)
        self._verdicts[digest] = (float(claims["exp"]), principal)
        while len(self._verdicts) > _MAX_VERDICTS:
            self._verdicts.popitem(last=False)
        return principal

    async def _read_claims(self, token: str) -> dict[str, Any]:
        import jwt

        try:
            key_id = str(jwt.get_unverified_header(token).get("kid", ""))
            key = await self._find_key(key_id)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["iss", "aud", "exp"]},
            )
        except jwt.PyJWTError:
            raise Unauthenticated("invalid bearer token") from None
        return claims

    def _principal_of(self, claims: dict[str, Any]) -> Principal:
        settings = self._settings
        actor = claims.get(settings.actor_claim)
        if not isinstance(actor, str) or not actor.strip():
            raise Unauthenticated("the token does not specify an actor")
        try:
            reject_reserved_actor(actor.strip())
            permission = parse_permission(str(claims.get(settings.permission_claim, settings.default_permission)))
        except OmnigraphError:
            raise Unauthenticated(
                "the token specifies an actor or a permission that this server does not accept"
            ) from None
        return Principal(actor.strip(), permission, "oidc")

    async def _find_key(self, key_id: str) -> Any:
        """Return a key by its id; fetch the provider's keys if the id is unknown."""
        if key_id not in self._keys:
            async with self._fetch_lock:
                if key_id not in self._keys and clock_and_ids.monotonic() >= self._next_fetch:
                    self._next_fetch = clock_and_ids.monotonic() + _REFRESH_SECONDS
                    self._keys |= await asyncio.to_thread(_fetch_keys, self._settings)
        key = self._keys.get(key_id)
        if key is None:
            raise Unauthenticated("invalid bearer token")
        return key


def _fetch_keys(settings: OidcSettings) -> dict[str, Any]:
    """Fetch a provider's keys. Return no keys if the provider is unreachable."""
    import jwt

    try:
        url = (
            settings.jwks_url
            or _read_json(f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration")["jwks_uri"]
        )
        _require_secure(url)
        documents = _read_json(url)["keys"]
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        from omnigraph.server.log_output import LOGGER

        LOGGER.warning("the identity provider's keys cannot be read")
        return {}
    keys: dict[str, Any] = {}
    for document in documents:
        try:
            keys[str(document.get("kid", ""))] = jwt.PyJWK(document)
        except jwt.PyJWTError:
            continue  # unsupported key type
    return keys


def _read_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as response:  # noqa: S310 - the scheme has been checked
        return json.loads(response.read(_MAX_DOCUMENT_BYTES))


def _require_secure(url: str) -> None:
    """Raise `ConfigError` for a URL that does not use HTTPS, unless its host is the local machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ConfigError(reason="an identity provider URL must begin with https://")


def _epoch_seconds() -> float:
    return clock_and_ids.now_micros() / 1_000_000


def make_verifier(settings: OidcSettings) -> OidcVerifier:
    """Return a verifier; raise `ConfigError` if the `oidc` extra is not installed."""
    from importlib.util import find_spec

    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise ConfigError(reason="tokens from an identity provider require the 'oidc' extra")
    return OidcVerifier(settings)
