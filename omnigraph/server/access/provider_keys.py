"""The signing keys of an identity provider, as its key document (JWKS) lists them.

The keys are fetched before first use, for an unknown key id, and when they are old, with at most one fetch at a time. A
key that the document no longer lists is dropped. While the provider is unreachable, the keys stay valid up to a maximum
age.
"""

import asyncio
import http.client
import json
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from omnigraph.errors import ConfigError
from omnigraph.server.log_output import LOGGER
from omnigraph.values import clock_and_ids

if TYPE_CHECKING:
    from .oidc import OidcSettings

_RETRY_SECONDS = 10.0  # limits how often unknown key ids can cause a fetch
_FETCH_SECONDS = 5.0
_MAX_DOCUMENT_BYTES = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
KeyDocuments = dict[str, dict[str, Any]]


class ProviderKeys:
    """The keys of one provider, used only on the event loop. `generation` increases whenever the keys change."""

    def __init__(self, settings: "OidcSettings") -> None:
        require_secure(settings.issuer)
        self.generation = 0
        self._settings = settings
        self._retry_seconds = min(_RETRY_SECONDS, settings.refresh_seconds)
        self._documents: KeyDocuments = {}
        self._keys: dict[str, Any] = {}
        self._fetched_at = self._attempted_at = float("-inf")
        self._refresh: asyncio.Task[None] | None = None

    async def refresh_if_due(self) -> None:
        """Start a refresh if the keys are old.

        If they are too old to use, wait for the refresh, and drop the keys if it fails.
        """
        settings = self._settings
        if self._age >= settings.refresh_seconds:
            refresh = self._start_refresh()
            if refresh is not None and self._age >= settings.max_age_seconds:
                await asyncio.shield(refresh)
        if self._age > settings.max_age_seconds:
            self._replace_keys({})

    async def find(self, key_id: str) -> Any:
        """Return a key by its id, or None; fetch the provider's keys if the id is unknown."""
        if key_id not in self._keys:
            refresh = self._start_refresh()
            if refresh is not None:
                await asyncio.shield(refresh)
        return self._keys.get(key_id)

    @property
    def _age(self) -> float:
        return clock_and_ids.monotonic() - self._fetched_at

    def _start_refresh(self) -> "asyncio.Task[None] | None":
        """Return the running refresh, or start a new one. Return None if the last refresh began too recently."""
        if self._refresh is not None and not self._refresh.done():
            return self._refresh
        now = clock_and_ids.monotonic()
        if now < self._attempted_at + self._retry_seconds:
            return None
        self._attempted_at = now
        self._refresh = asyncio.ensure_future(self._fetch())
        return self._refresh

    async def _fetch(self) -> None:
        documents = await asyncio.to_thread(fetch_key_documents, self._settings)
        if documents is not None:
            self._fetched_at = clock_and_ids.monotonic()
            self._replace_keys(documents)

    def _replace_keys(self, documents: KeyDocuments) -> None:
        if documents != self._documents:
            keys = {key_id: read_key(document) for key_id, document in documents.items()}
            self._keys = {key_id: key for key_id, key in keys.items() if key is not None}
            self._documents = documents
            self.generation += 1


def fetch_key_documents(settings: "OidcSettings") -> KeyDocuments | None:
    """Return the entries of the provider's key document by key id, or None if there is no valid document."""
    try:
        url = settings.jwks_url or _read_json(_configuration_url(settings))["jwks_uri"]
        require_secure(url)
        documents = _read_json(url)["keys"]
        if not isinstance(documents, list):
            raise TypeError
    except (
        *(OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError),
        *(RecursionError, ConfigError),
    ) as error:
        LOGGER.warning("the identity provider's keys cannot be read: %s", type(error).__name__)
        return None
    return {str(document.get("kid", "")): document for document in documents if isinstance(document, dict)}


def read_key(document: dict[str, Any]) -> Any:
    """Return the key that a document describes, or None if it is malformed, unsupported or not for signatures."""
    import jwt

    if document.get("use", "sig") != "sig":
        return None
    try:
        return jwt.PyJWK(document)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _configuration_url(settings: "OidcSettings") -> str:
    return f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"


def _read_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as response:  # noqa: S310 - the scheme has been checked
        return json.loads(response.read(_MAX_DOCUMENT_BYTES))


def require_secure(url: str) -> None:
    """Raise `ConfigError` for a URL that does not use HTTPS, unless its host is the local machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ConfigError(reason="an identity provider URL must begin with https://")
