"""Verify JSON web tokens from an identity provider (OpenID Connect) with the keys that the provider publishes.

The signature, the issuer, the audience and the expiry are checked. `provider_keys.py` decides which keys are trusted.
This module requires the `oidc` extra.
"""

from collections import OrderedDict
from typing import Any

from omnigraph.api.actors import reject_reserved_actor
from omnigraph.errors import ConfigError, OmnigraphError, Unauthenticated
from omnigraph.records.frozen import record
from omnigraph.server.settings import DEFAULT_REFRESH_SECONDS
from omnigraph.values import clock_and_ids

from .permissions import Permission, Principal, parse_permission
from .provider_keys import ProviderKeys
from .tokens import hash_token

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_LEEWAY_SECONDS = 30
_MAX_VERDICTS = 10_000


@record
class OidcSettings:
    """The provider, the required audience of its tokens, and the claims that identify the caller.

    The claim `permission_claim` contains the permission. A token without this claim gets `default_permission`. The keys
    of the provider are refreshed after `refresh_seconds`, and never used if they are older than `max_age_seconds`.
    """

    issuer: str
    audience: str
    jwks_url: str | None = None
    actor_claim: str = "sub"
    permission_claim: str = "omnigraph_permission"
    default_permission: Permission = "read"
    refresh_seconds: float = DEFAULT_REFRESH_SECONDS
    max_age_seconds: float = 86_400.0


class OidcVerifier:
    """Verifies the tokens of one provider, and caches the result until the token expires or the keys change."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._keys = ProviderKeys(settings)
        self._generation = 0
        self._verdicts: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    async def verify(self, token: str) -> Principal:
        """Return the caller that a token identifies; raise `Unauthenticated` for a token that cannot be trusted."""
        await self._keys.refresh_if_due()
        self._drop_outdated_verdicts()
        digest = hash_token(token)
        verdict = self._verdicts.get(digest)
        if verdict is not None and verdict[0] > _epoch_seconds():
            self._verdicts.move_to_end(digest)
            return verdict[1]
        claims = await self._read_claims(token)
        principal = self._principal_of(claims)
        self._drop_outdated_verdicts()
        self._verdicts[digest] = (float(claims["exp"]), principal)
        while len(self._verdicts) > _MAX_VERDICTS:
            self._verdicts.popitem(last=False)
        return principal

    def _drop_outdated_verdicts(self) -> None:
        """Drop all cached results if the keys have changed, because the key of a token may have been revoked."""
        if self._generation != self._keys.generation:
            self._generation = self._keys.generation
            self._verdicts.clear()

    async def _read_claims(self, token: str) -> dict[str, Any]:
        import jwt

        try:
            key_id = str(jwt.get_unverified_header(token).get("kid", ""))
            key = await self._keys.find(key_id)
            if key is None:
                raise Unauthenticated("invalid bearer token")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["iss", "aud", "exp"]},
            )
        except (jwt.PyJWTError, OverflowError, TypeError, RecursionError):
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


def _epoch_seconds() -> float:
    return clock_and_ids.now_micros() / 1_000_000


def make_verifier(settings: OidcSettings) -> OidcVerifier:
    """Return a verifier; raise `ConfigError` if the `oidc` extra is not installed."""
    from importlib.util import find_spec

    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise ConfigError(reason="tokens from an identity provider require the 'oidc' extra")
    return OidcVerifier(settings)
