"""Control objects on an S3-compatible store.

The only module that imports obstore. Owns the mapping of our settings and of obstore's exceptions.
Never reports an object as absent unless the store said so.
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

# Lance's names of storage options, which a root holds, and obstore's names for the same options.
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
    # obstore raises this one type for everything else, from a refused connection to a wrong region.
    refused.BaseError: "unknown",
}
# Creating a client sends no request: a failure then is always caused by the settings.
_SETTINGS: Kinds = {refused.BaseError: "configuration", ValueError: "configuration"}
# obstore raises Python's built-in exception where one exists.
_ABSENT = (FileNotFoundError, refused.NotFoundError)
# Control objects are small: a request that takes longer means that the store does not respond.
_REQUEST = timedelta(seconds=10)
_TRYING = timedelta(seconds=10)
# For a block of a data file over a slow connection.
_TRANSFER = timedelta(seconds=120)
_PAGE = 1000  # names per page of a listing


@dataclass(frozen=True, slots=True)
class S3Backend:
    """The objects below a prefix of a bucket. Creation is a conditional PUT: first wins."""

    store: S3Store
    bulk: S3Store  # the same bucket, for requests that carry data and may take longer

    @classmethod
    def connect(cls, root: Root) -> "S3Backend":
        """Create the clients for a root; sends no request."""
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
        """Return the bytes of an object; None only if the store says that it does not exist."""
        with reported("none", _KINDS):
            try:
                return bytes(obstore.get(self.store, name).bytes())
            except _ABSENT:
                return None

    def create(self, name: str, body: bytes) -> bool:
        """Create an object; False if the name is taken, perhaps by our own lost attempt."""
        with reported("unknown", _KINDS):
            try:
                obstore.put(self.store, name, body, mode="create", use_multipart=False)
            except refused.AlreadyExistsError:
                return False
            return True

    def replace(self, name: str, body: bytes) -> None:
        """Overwrite an object."""
        with reported("unknown", _KINDS):
            obstore.put(self.store, name, body, use_multipart=False)

    def blocks(self, name: str) -> Iterator[bytes] | None:
        """Return the blocks of an object; None only if the store says that it does not exist."""
        with reported("none", _KINDS):
            try:
                return _pieces(obstore.get(self.bulk, name))
            except _ABSENT:
                return None

    def fill(self, name: str, blocks: Iterator[bytes]) -> None:
        """Write an object block by block."""
        with reported("unknown", _KINDS):
            obstore.put(self.bulk, name, _elsewhere(blocks), chunk_size=BLOCK)

    def send(self, name: str, body: bytes) -> None:
        """Write a data file in one request."""
        with reported("unknown", _KINDS):
            obstore.put(self.bulk, name, body, use_multipart=False)

    def remove(self, name: str) -> None:
        """Remove an object; it is no error if it does not exist."""
        with reported("unknown", _KINDS):
            try:
                obstore.delete(self.store, name)
            except _ABSENT:
                return

    def list(self, prefix: str) -> Iterator[Found]:
        """Yield the objects below `prefix/`, page by page; unfinished ones are omitted."""
        with reported("none", _KINDS):
            for page in obstore.list(self.store, prefix or None, chunk_size=_PAGE):
                yield from _shown(page)

    def level(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """Return one level of names, by a listing with a delimiter."""
        with reported("none", _KINDS):
            found = obstore.list_with_delimiter(self.store, prefix)
            places = [one.rstrip("/") for one in found["common_prefixes"]]
            return places, list(_shown(found["objects"]))

    def unfinished(self, prefix: str) -> Iterator[Found]:
        """Return nothing: an object becomes visible only when it is complete."""
        del prefix
        return iter(())

    def stillness(self, prefix: str) -> object | None:
        """Return None: only a request could tell."""
        return None

    def glance(self, name: str) -> Found | None:
        """Return None: this takes a request."""
        return None

    def first(self, prefix: str, count: int) -> Sequence[Found]:
        """Return the start of the first page of a listing: a store lists names in order."""
        with reported("none", _KINDS):
            page = next(iter(obstore.list(self.store, prefix, chunk_size=_PAGE)), ())
            return list(_shown(page))[:count]


def _shown(page: Iterable[Any]) -> Iterator[Found]:
    for one in page:
        # A root that was copied from a disk may contain unfinished files of a crashed writer.
        if "#" not in one["path"].rpartition("/")[2]:
            yield Found(one["path"], one["size"], one["last_modified"], one["e_tag"] or "")


def _elsewhere(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same blocks, fetched in another thread: a client must not read while it sends."""
    with ThreadPoolExecutor(1, "fetch") as fetching:
        while (piece := fetching.submit(next, blocks, None).result()) is not None:
            yield piece


def _pieces(found: Any) -> Iterator[bytes]:
    with reported("none", _KINDS):
        for piece in found.stream(min_chunk_size=BLOCK):
            yield bytes(piece)


def _check_endpoint(options: Mapping[str, str]) -> None:
    """Refuse endpoints that make the client panic or that it reports as failed requests."""
    endpoint = options.get("aws_endpoint", "https://s3")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        reason = "AWS_ENDPOINT_URL is not an http or https address"
        raise _misconfigured(reason, "give a full address")
    if parts.scheme == "http" and options.get("allow_http") != "true":
        reason = "AWS_ENDPOINT_URL is not encrypted (http), which is not allowed"
        raise _misconfigured(reason, "use https, or set AWS_ALLOW_HTTP=true")


def _misconfigured(reason: str, hint: str) -> StorageError:
    return StorageError(kind="configuration", reason=reason, effect="none", hint=hint)


def _config(options: Mapping[str, str]) -> Any:
    found: dict[str, Any] = {
        name: options[ours] for ours, name in _CONFIG.items() if options.get(ours)
    }
    # One DELETE per object: not every store supports bulk deletion.
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
