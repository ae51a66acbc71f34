"""Control objects on an S3-compatible store.

The only module that imports obstore. Owns the mapping of our settings and of obstore's exceptions;
it never says that an object is absent unless the store said so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore import exceptions as refused
from obstore.store import S3Store

from omnigraph.errors import StorageError

from .failures import Kinds, reported
from .objects import BLOCK, Found
from .root import Root

# Names of Lance's storage options, which a root holds, and obstore's names for the same things.
_CONFIG = {
    "aws_region": "region",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "aws_endpoint": "endpoint",
}
_KINDS: Kinds = {
    refused.AlreadyExistsError: "precondition",
    refused.PreconditionError: "precondition",
    refused.NotModifiedError: "precondition",
    refused.NotFoundError: "not_found",
    refused.PermissionDeniedError: "configuration",
    refused.UnauthenticatedError: "configuration",
    refused.NotSupportedError: "configuration",
    refused.InvalidPathError: "permanent",
    refused.UnknownConfigurationKeyError: "configuration",
    # Everything else, from a refused connection to a wrong region, has this one type.
    refused.BaseError: "unknown",
}
# Making a client asks nothing of a store: whatever fails then is a matter of its settings.
_SETTINGS: Kinds = {refused.BaseError: "configuration", ValueError: "configuration"}
# obstore raises the built-in exception for the type that it has itself.
_ABSENT = (FileNotFoundError, refused.NotFoundError)
# A control object is small: who waits longer than this waits for a store that is not there.
_REQUEST = timedelta(seconds=10)
_TRYING = timedelta(seconds=10)
# A block of a data file, on a slow line.
_TRANSFER = timedelta(seconds=120)
_PAGE = 1000  # names that a store gives at once


@dataclass(frozen=True, slots=True)
class S3Backend:
    """The objects below a prefix of a bucket. Creation is a conditional PUT: first wins."""

    store: S3Store
    bulk: S3Store  # the same bucket, for requests that carry data and may take long

    @classmethod
    def connect(cls, root: Root) -> "S3Backend":
        """A client for a root. Nothing is asked of the store yet."""
        bucket, _, prefix = root.path.partition("/")
        _check_endpoint(root.options)
        with reported("none", _SETTINGS):
            store, bulk = (
                S3Store(
                    bucket,
                    prefix=prefix,
                    config=_config(root.options),
                    client_options=_client(root.options, timeout),
                    retry_config=_retries(root.options, trying),
                )
                for timeout, trying in ((_REQUEST, _TRYING), (_TRANSFER, _TRANSFER))
            )
        return cls(store, bulk)

    def read(self, name: str) -> bytes | None:
        """The bytes of an object; None only when the store says that there is none."""
        with reported("none", _KINDS):
            try:
                return bytes(obstore.get(self.store, name).bytes())
            except _ABSENT:
                return None

    def create(self, name: str, body: bytes) -> bool:
        """Create an object; False when the name is taken, perhaps by our own lost attempt."""
        with reported("unknown", _KINDS):
            try:
                obstore.put(self.store, name, body, mode="create", use_multipart=False)
            except refused.AlreadyExistsError:
                return False
            return True

    def replace(self, name: str, body: bytes) -> None:
        """Write an object over an old one."""
        with reported("unknown", _KINDS):
            obstore.put(self.store, name, body, use_multipart=False)

    def blocks(self, name: str) -> Iterator[bytes] | None:
        """The bytes of an object piece by piece; None only when the store says there is none."""
        with reported("none", _KINDS):
            try:
                return _pieces(obstore.get(self.bulk, name))
            except _ABSENT:
                return None

    def fill(self, name: str, blocks: Iterator[bytes]) -> None:
        """Write an object piece by piece."""
        with reported("unknown", _KINDS):
            obstore.put(self.bulk, name, _elsewhere(blocks), chunk_size=BLOCK)

    def send(self, name: str, body: bytes) -> None:
        """Write a data file in one request."""
        with reported("unknown", _KINDS):
            obstore.put(self.bulk, name, body, use_multipart=False)

    def remove(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""
        with reported("unknown", _KINDS):
            try:
                obstore.delete(self.store, name)
            except _ABSENT:
                return

    def list(self, prefix: str) -> Iterator[Found]:
        """The objects below `prefix/`, page by page; unfinished ones are not shown."""
        with reported("none", _KINDS):
            for page in obstore.list(self.store, prefix or None, chunk_size=_PAGE):
                yield from _shown(page)

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """One level of names: a listing with a delimiter."""
        with reported("none", _KINDS):
            found = obstore.list_with_delimiter(self.store, prefix)
            places = [one.rstrip("/") for one in found["common_prefixes"]]
            return places, list(_shown(found["objects"]))

    def unfinished(self, prefix: str) -> Iterator[Found]:
        """Nothing: an object is there when it is whole."""
        del prefix
        return iter(())

    def stillness(self, prefix: str) -> object | None:
        """Nothing tells but a request."""
        return None

    def glance(self, name: str) -> Found | None:
        """Nothing: that takes a request."""
        return None

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """The first page of a listing: a store gives names in order."""
        with reported("none", _KINDS):
            page = next(iter(obstore.list(self.store, prefix, chunk_size=_PAGE)), ())
            return list(_shown(page))[:count]


def _shown(page: Iterable[Any]) -> Iterator[Found]:
    for one in page:
        # A root that was copied from a disk may hold leftovers of a crash.
        if "#" not in one["path"].rpartition("/")[2]:
            yield Found(one["path"], one["size"], one["last_modified"], one["e_tag"] or "")


def _elsewhere(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, fetched by another thread: a client that sends must not also ask."""
    with ThreadPoolExecutor(1, "fetch") as fetching:
        while (piece := fetching.submit(next, blocks, None).result()) is not None:
            yield piece


def _pieces(found: Any) -> Iterator[bytes]:
    with reported("none", _KINDS):
        for piece in found.stream(min_chunk_size=BLOCK):
            yield bytes(piece)


def _check_endpoint(options: Mapping[str, str]) -> None:
    """Refuse what the client would panic about, or report as a request that failed."""
    endpoint = options.get("aws_endpoint", "https://s3")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _misconfigured("AWS_ENDPOINT_URL is no http or https address", "give a full address")
    if parts.scheme == "http" and options.get("allow_http") != "true":
        reason = "AWS_ENDPOINT_URL is not encrypted (http), which is not allowed"
        raise _misconfigured(reason, "use https, or set AWS_ALLOW_HTTP=true")


def _misconfigured(reason: str, hint: str) -> StorageError:
    return StorageError(kind="configuration", reason=reason, effect="none", hint=hint)


def _config(options: Mapping[str, str]) -> Any:
    found: dict[str, Any] = {
        name: options[ours] for ours, name in _CONFIG.items() if options.get(ours)
    }
    # One DELETE for one object: not every store knows the bulk form.
    found["disable_bulk_delete"] = True
    virtual = options.get("aws_virtual_hosted_style_request")
    if virtual is not None:
        found["virtual_hosted_style_request"] = virtual == "true"
    return found


def _client(options: Mapping[str, str], timeout: timedelta) -> Any:
    return {
        "allow_http": options.get("allow_http") == "true",
        "connect_timeout": options.get("connect_timeout", "5s"),
        "timeout": timeout,
    }


def _retries(options: Mapping[str, str], trying: timedelta) -> Any:
    return {
        "max_retries": int(options.get("client_max_retries", "3")),
        "retry_timeout": trying,
        "backoff": {"max_backoff": timedelta(seconds=2)},
    }
