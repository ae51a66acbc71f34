"""Authenticate requests, and decide at startup whether a server may run without tokens."""

from collections.abc import Mapping

from omnigraph.errors import ConfigError, Unauthenticated
from omnigraph.server.settings import ServerSettings

from .oidc import OidcSettings, OidcVerifier, make_verifier
from .permissions import ANONYMOUS, Principal, parse_permission
from .tokens import SINGLE_VARIABLE, TokenTable, load_token_table, read_bearer_token


class Authenticator:
    """Determines the caller of a request. On an open server, every caller is anonymous."""

    def __init__(self, tokens: TokenTable, verifier: OidcVerifier | None = None) -> None:
        self._tokens = tokens
        self._verifier = verifier
        self.is_open = not len(tokens) and verifier is None

    async def authenticate(self, authorization: str | None) -> Principal:
        """Return the caller; raise `Unauthenticated` for a missing or unknown token."""
        if self.is_open:
            return ANONYMOUS
        token = read_bearer_token(authorization)
        principal = self._tokens.find(token)
        if principal is not None:
            return principal
        if self._verifier is not None and token.count(".") == 2:
            return await self._verifier.verify(token)
        raise Unauthenticated("invalid bearer token")


def load_authenticator(settings: ServerSettings, environment: Mapping[str, str]) -> Authenticator:
    """Read the token sources; raise `ConfigError` if there are none and `--unauthenticated` is not set."""
    tokens = load_token_table(environment, permission=settings.token_permission)
    authenticator = Authenticator(tokens, _load_verifier(settings))
    if authenticator.is_open and not settings.unauthenticated:
        raise ConfigError(
            reason=f"no tokens are configured: set {SINGLE_VARIABLE} or a token file, or pass --unauthenticated"
        )
    return authenticator


def _load_verifier(settings: ServerSettings) -> OidcVerifier | None:
    if settings.oidc_issuer is None:
        return None
    if settings.oidc_audience is None:
        raise ConfigError(reason="an identity provider requires an audience: pass --oidc-audience")
    return make_verifier(
        OidcSettings(
            settings.oidc_issuer,
            settings.oidc_audience,
            settings.oidc_jwks_url,
            default_permission=parse_permission(settings.token_permission),
            refresh_seconds=settings.oidc_refresh_seconds,
        )
    )
