"""Control objects in an S3-compatible store.

This is the only module that imports obstore. It converts the settings of a root to those of obstore, and obstore
exceptions to those of this package. An object is reported as missing only if the store confirms that it does not exist.
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

from .failures import ExceptionKinds, as_storage_errors
from .object_backend import TRANSFER_BLOCK_BYTES, ListedObject
from .root import GraphRoot

# The names that Lance uses for storage options, as in a root, and the names that obstore uses for the same options.
_OBSTORE_NAMES = {
    "aws_region": "region",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "aws_endpoint": "endpoint",
}
_REQUEST_KINDS: ExceptionKinds = {
    refused.AlreadyExistsError: "precondition",
    refused.PreconditionError: "precondition",
    refused.NotModifiedError: "precondition",
    refused.NotFoundError: "not_found",
    refused.PermissionDeniedError: "configuration",
    refused.UnauthenticatedError: "configuration",
    refused.NotSupportedError: "configuration",
    refused.InvalidPathError: "permanent",
    refused.UnknownConfigurationKeyError: "configuration",
    # obstore raises this exception for all other failures, such as a refused connection or a wrong region.
    refused.BaseError: "unknown",
}
# Creating a client sends no request, so a failure must be caused by the settings.
_SETTINGS_KINDS: ExceptionKinds = {refused.BaseError: "configuration", ValueError: "configuration"}
# Where Python has a built-in exception for a failure, obstore raises that exception.
_ABSENT_ERRORS = (FileNotFoundError, refused.NotFoundError)
# Control objects are small, so if a request takes longer than this, the store is not responding.
_REQUEST_TIMEOUT = timedelta(seconds=10)
_RETRY_TIMEOUT = timedelta(seconds=10)
# The timeout for data transfers, which allows one block of a data file to be sent over a slow connection.
_TRANSFER_TIMEOUT = timedelta(seconds=120)
_PAGE_SIZE = 1000  # names per page of a listing


@dataclass(frozen=True, slots=True)
class S3Backend:
    """The objects below a prefix in a bucket, created with conditional PUTs so that the first creator wins."""

    client: S3Store
    bulk_client: S3Store  # a second client for the same bucket, for data transfers, which may take longer

    @classmethod
    def connect(cls, root: GraphRoot) -> "S3Backend":
        """Create the clients for a root without sending a request."""
        bucket, _, prefix = root.path.partition("/")
        _check_endpoint(root.options)
        with as_storage_errors("none", _SETTINGS_KINDS):
            client, bulk_client = (
                S3Store(
                    bucket,
                    prefix=prefix,
                    config=_client_config(root.options),
                    client_options=_client_options(root.options, timeout),
                    retry_config=_retry_config(root.options, retry_timeout),
                )
                for timeout, retry_timeout in (
                    (_REQUEST_TIMEOUT, _RETRY_TIMEOUT),
                    (_TRANSFER_TIMEOUT, _TRANSFER_TIMEOUT),
                )
            )
        return cls(client, bulk_client)

    def read(self, object_name: str) -> bytes | None:
        """Return an object's bytes, or None only if the store confirms that the object does not exist."""
        with as_storage_errors("none", _REQUEST_KINDS):
            try:
                return bytes(obstore.get(self.client, object_name).bytes())
            except _ABSENT_ERRORS:
                return None

    def exists(self, object_name: str) -> bool:
        """Return whether the store has an object."""
        with as_storage_errors("none", _REQUEST_KINDS):
            try:
                obstore.head(self.client, object_name)
            except _ABSENT_ERRORS:
                return False
            return True

    def create(self, object_name: str, object_bytes: bytes) -> bool:
        """Create an object; return False if the name is taken, possibly by an earlier attempt with a lost response."""
        with as_storage_errors("unknown", _REQUEST_KINDS):
            try:
                obstore.put(self.client, object_name, object_bytes, mode="create", use_multipart=False)
            except refused.AlreadyExistsError:
                return False
            return True

    def replace(self, object_name: str, object_bytes: bytes) -> None:
        """Write or overwrite an object."""
        with as_storage_errors("unknown", _REQUEST_KINDS):
            obstore.put(self.client, object_name, object_bytes, use_multipart=False)

    def read_blocks(self, object_name: str) -> Iterator[bytes] | None:
        """Return an object's blocks, or None only if the store confirms that the object does not exist."""
        with as_storage_errors("none", _REQUEST_KINDS):
            try:
                return _stream_blocks(obstore.get(self.bulk_client, object_name))
            except _ABSENT_ERRORS:
                return None

    def write_blocks(self, object_name: str, blocks: Iterator[bytes]) -> None:
        """Write an object block by block."""
        with as_storage_errors("unknown", _REQUEST_KINDS):
            obstore.put(self.bulk_client, object_name, _fetch_in_thread(blocks), chunk_size=TRANSFER_BLOCK_BYTES)

    def write_data_file(self, object_name: str, object_bytes: bytes) -> None:
        """Write a data file in one request."""
        with as_storage_errors("unknown", _REQUEST_KINDS):
            obstore.put(self.bulk_client, object_name, object_bytes, use_multipart=False)

    def remove(self, object_name: str) -> None:
        """Remove an object, or do nothing if it does not exist."""
        with as_storage_errors("unknown", _REQUEST_KINDS):
            try:
                obstore.delete(self.client, object_name)
            except _ABSENT_ERRORS:
                return

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below `prefix/` page by page, except unfinished objects."""
        with as_storage_errors("none", _REQUEST_KINDS):
            for page in obstore.list(self.client, prefix or None, chunk_size=_PAGE_SIZE):
                yield from _finished_objects(page)

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the directories and objects directly below a prefix, using a listing with a delimiter."""
        with as_storage_errors("none", _REQUEST_KINDS):
            listing = obstore.list_with_delimiter(self.client, prefix)
            subdirectories = [common_prefix.rstrip("/") for common_prefix in listing["common_prefixes"]]
            return subdirectories, list(_finished_objects(listing["objects"]))

    def list_unfinished(self, prefix: str) -> Iterator[ListedObject]:
        """Return no files, because an object becomes visible only when it is complete."""
        del prefix
        return iter(())

    def change_token(self, prefix: str) -> object | None:
        """Return None, because S3 cannot report changes without a request."""
        return None

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return None, because S3 cannot return an object's metadata without a request."""
        return None

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first objects in name order, which are on the first page of a listing."""
        with as_storage_errors("none", _REQUEST_KINDS):
            page = next(iter(obstore.list(self.client, prefix, chunk_size=_PAGE_SIZE)), ())
            return list(_finished_objects(page))[:max_objects]


def _finished_objects(page: Iterable[Any]) -> Iterator[ListedObject]:
    for entry in page:
        # A root that was copied from a local disk may contain unfinished files from a crashed writer.
        if "#" not in entry["path"].rpartition("/")[2]:
            yield ListedObject(entry["path"], entry["size"], entry["last_modified"], entry["e_tag"] or "")


def _fetch_in_thread(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks that another thread fetches, because a client must not read in the thread in which it is sending."""
    with ThreadPoolExecutor(1, "fetch") as fetch_pool:
        while (block := fetch_pool.submit(next, blocks, None).result()) is not None:
            yield block


def _stream_blocks(response: Any) -> Iterator[bytes]:
    with as_storage_errors("none", _REQUEST_KINDS):
        received_bytes = 0
        for chunk in response.stream(min_chunk_size=TRANSFER_BLOCK_BYTES):
            received_bytes += len(chunk)
            yield bytes(chunk)
        expected_bytes = response.meta["size"]
        if received_bytes != expected_bytes:
            reason = f"the store sent {received_bytes} of {expected_bytes} bytes"
            raise StorageError(kind="transient", reason=reason, effect="none")


def _check_endpoint(options: Mapping[str, str]) -> None:
    """Reject endpoint settings that would make the client panic or cause every request to fail."""
    endpoint = options.get("aws_endpoint", "https://s3")
    endpoint_parts = urlsplit(endpoint)
    if endpoint_parts.scheme not in ("http", "https") or not endpoint_parts.hostname:
        reason = "AWS_ENDPOINT_URL is not an http or https address"
        raise _configuration_error(reason, "specify a full address")
    if endpoint_parts.scheme == "http" and options.get("allow_http") != "true":
        reason = "AWS_ENDPOINT_URL uses plain http, which is not allowed by default"
        raise _configuration_error(reason, "use https, or set AWS_ALLOW_HTTP=true")


def _configuration_error(reason: str, hint: str) -> StorageError:
    return StorageError(kind="configuration", reason=reason, effect="none", hint=hint)


def _client_config(options: Mapping[str, str]) -> Any:
    client_config: dict[str, Any] = {
        obstore_name: options[lance_name]
        for lance_name, obstore_name in _OBSTORE_NAMES.items()
        if options.get(lance_name)
    }
    # Send one DELETE per object, because not every store supports bulk deletion.
    client_config["disable_bulk_delete"] = True
    virtual_hosted = options.get("aws_virtual_hosted_style_request")
    if virtual_hosted is not None:
        client_config["virtual_hosted_style_request"] = virtual_hosted == "true"
    return client_config


def _client_options(options: Mapping[str, str], timeout: timedelta) -> Any:
    return {
        "allow_http": options.get("allow_http") == "true",
        "connect_timeout": options.get("connect_timeout", "5s"),
        "timeout": timeout,
    }


def _retry_config(options: Mapping[str, str], retry_timeout: timedelta) -> Any:
    return {
        "max_retries": int(options.get("client_max_retries", "3")),
        "retry_timeout": retry_timeout,
        "backoff": {"max_backoff": timedelta(seconds=2)},
    }
