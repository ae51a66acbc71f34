"""Authenticate requests, and decide at boot whether a server may start without tokens."""

from collections.abc import Mapping

from omnigraph.errors import ConfigError, Unauthenticated
from omnigraph.server.settings import ServerSettings

from .permissions import ANONYMOUS, Principal
from .tokens import SINGLE_VARIABLE, TokenTable, load_token_table, read_bearer_token


class Authenticator:
    """Finds the caller of a request; on an open server, every caller is anonymous."""

    def __init__(self, tokens: TokenTable, *, is_open: bool) -> None:
        self._tokens = tokens
        self.is_open = is_open

    async def authenticate(self, authorization: str | None) -> Principal:
        """Return the caller; raise `Unauthenticated` for a missing or unknown token."""
        if self.is_open:
            return ANONYMOUS
        principal = self._tokens.find(read_bearer_token(authorization))
        if principal is None:
            raise Unauthenticated("invalid bearer token")
        return principal


def load_authenticator(settings: ServerSettings, environment: Mapping[str, str]) -> Authenticator:
    """Read the token sources; raise `ConfigError` if there is none and the server is not declared open."""
    tokens = load_token_table(environment, permission=settings.token_permission)
    is_open = not len(tokens)
    if is_open and not settings.unauthenticated:
        raise ConfigError(
            reason=f"no tokens are configured: set {SINGLE_VARIABLE} or a token file, or pass --unauthenticated"
        )
    return Authenticator(tokens, is_open=is_open)
