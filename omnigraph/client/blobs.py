"""Blobs of a graph on a server: read them in ranges, save them to files, and replace them."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from email.message import Message
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from omnigraph.api.blob_files import write_atomically
from omnigraph.api.blobs import CHUNK_BYTES
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import (
    BlobPreconditionFailed,
    EntityNotFound,
    InputError,
    NotFound,
    OmnigraphError,
    RangeNotSatisfiable,
    StorageError,
)
from omnigraph.values import clock_and_ids
from omnigraph.values.describe_value import describe

from .answers import read_receipt
from .handle import RemoteHandle
from .revisions import write_key
from .writes import check_write_options, write_branch

BlobName = tuple[str, Any, str]  # type, key and property
_BYTES = "application/octet-stream"


class RemoteBlob:
    """A blob of a node or edge on a server, pinned to the commit at which its headers were read."""

    def __init__(self, handle: RemoteHandle, parameters: Mapping[str, Any], headers: Message) -> None:
        self._handle, self._parameters = handle, parameters
        self.kind, self.type_name, self.property_name = (parameters[name] for name in ("entity", "type", "property"))
        self.size, self.etag = int(headers["Content-Length"]), headers["ETag"]
        self.media_type, self.commit_id = headers["Omnigraph-Blob-Media-Type"], headers["Omnigraph-Snapshot-Id"]

    def __repr__(self) -> str:
        return f"Blob({self.type_name!r}, {self._parameters['id']!r}, {self.property_name!r}, size={self.size})"

    @cached_property
    def entity_id(self) -> str:
        """The entity's id."""
        names = (self.kind, self.type_name, self._parameters["id"])
        return str(self._handle.exchange.get("entities", *names, snapshot=self.commit_id)["id"])

    @property
    def content_hash(self) -> str:
        """The SHA-256 hash of the bytes, as `sha256:<hex>`."""
        return self.etag.strip('"')

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes, or a range of them."""
        return b"".join(self.iter_chunks(start=start, stop=stop))

    def iter_chunks(
        self, chunk_bytes: int = CHUNK_BYTES, *, start: int = 0, stop: int | None = None
    ) -> Iterator[bytes]:
        """Yield the bytes of the blob, or of a range."""
        first, last = self._clip_range(start, stop)
        if first == last:
            return
        headers = {"Accept": _BYTES, "Range": f"bytes={first}-{last - 1}"}
        parameters = {**self._parameters, "branch": None, "snapshot": self.commit_id}
        reply = self._handle.exchange.stream("GET", ("blob",), parameters, headers=headers)
        yield from _cut_chunks(reply.chunks(), chunk_bytes)

    def open(self) -> io.BufferedReader:
        """Return the blob as a file that is read into memory."""
        return io.BufferedReader(io.BytesIO(self.read()))

    def save(self, path: str | PathLike[str], *, start: int = 0, stop: int | None = None, progress: Any = None) -> int:
        """Write the blob, or a range of it, to a file atomically. Return the number of bytes written."""
        first, last = self._clip_range(start, stop)
        chunks = self.iter_chunks(start=first, stop=last)
        return write_atomically(Path(fspath(path)), _report_progress(chunks, last - first, progress))

    def require_match(self, etag: str) -> None:
        """Raise `BlobPreconditionFailed` unless the blob has this ETag. `*` matches any blob."""
        if etag != "*" and etag.strip('"') != self.etag.strip('"'):
            raise BlobPreconditionFailed(etag=self.etag)

    def verify(self) -> None:
        """Read the whole blob, and raise `StorageError` if the bytes do not match the ETag."""
        digest = hashlib.sha256()
        for chunk in self.iter_chunks():
            digest.update(chunk)
        if f"sha256:{digest.hexdigest()}" != self.content_hash:
            raise StorageError(f"the bytes of {self!r} do not match their checksum")

    def _clip_range(self, start: int, stop: int | None) -> tuple[int, int]:
        size, last = self.size, self.size if stop is None else stop
        is_empty_blob = size == 0 and start == 0 and last >= 0
        if not is_empty_blob and not 0 <= start < min(last, size):
            raise RangeNotSatisfiable(start=start, end=max(start, size) if stop is None else stop, length=size)
        return start, min(last, size)


def _cut_chunks(chunks: Iterator[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """Yield the same bytes in chunks of one size; the last one may be smaller."""
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        while len(pending) >= chunk_bytes:
            yield bytes(pending[:chunk_bytes])
            del pending[:chunk_bytes]
    if pending:
        yield bytes(pending)


def _report_progress(chunks: Iterator[bytes], total_bytes: int, report: Any) -> Iterator[bytes]:
    byte_count = 0
    for chunk in chunks:
        yield chunk
        byte_count += len(chunk)
        if callable(report):
            report(byte_count, total_bytes)


def open_blob(handle: RemoteHandle, name: BlobName, kind: str | None, if_match: str | None) -> RemoteBlob:
    """Read the headers of a blob. Without a kind, an edge type is tried if there is no such node type."""
    handle.require_open()
    type_name, key, property_name = name
    parameters = {"type": type_name, "id": write_key(key), "property": property_name, **handle.position}
    try:
        blob = _read_headers(handle, {"entity": kind or "node", **parameters})
    except EntityNotFound:
        raise
    except NotFound:
        if kind is not None:
            raise
        blob = _read_headers(handle, {"entity": "edge", **parameters})
    if if_match is not None:
        blob.require_match(if_match)
    return blob


def _read_headers(handle: RemoteHandle, parameters: Mapping[str, Any]) -> RemoteBlob:
    headers = {"Accept": _BYTES}
    try:
        reply = handle.exchange.stream("HEAD", ("blob",), parameters, headers=headers)
    except OmnigraphError:
        # The response to HEAD has no body that describes the error, so the same request is sent as GET.
        reply = handle.exchange.stream("GET", ("blob",), parameters, headers=headers | {"Range": "bytes=0-0"})
    reply.read()
    return RemoteBlob(handle, parameters, reply.headers)


def put_blob(  # noqa: PLR0913, PLR0917 - the parts of one request
    handle: RemoteHandle,
    name: BlobName,
    content: Any,
    media_type: str | None,
    if_match: str | None,
    branch: str | None,
    options: WriteOptions,
) -> Receipt:
    """Replace the blob of a node as one commit. Bytes can be sent again, but files and streams only once."""
    handle.require_writable("replacing a blob")
    check_write_options(handle, options)
    started = clock_and_ids.monotonic()
    headers = {"Content-Type": _BYTES, "Idempotency-Key": options.idempotency_key or clock_and_ids.new_ulid()}
    if if_match is not None:
        headers["If-Match"] = if_match if if_match == "*" or if_match.startswith('"') else f'"{if_match}"'
    parameters = {
        "type": name[0],
        "id": write_key(name[1]),
        "property": name[2],
        "branch": write_branch(handle, branch),
        "media_type": media_type,
        "message": options.message,
    }
    reply = handle.exchange.fetch(
        "PUT", ("blob",), parameters, body=_read_content(content), headers=headers, condition=options.if_commit
    )
    is_replay = "Idempotent-Replay" in reply.headers and options.idempotency_key is not None
    return read_receipt(reply.json(), elapsed=clock_and_ids.monotonic() - started, replayed=is_replay)


def _read_content(content: Any) -> bytes | Iterator[bytes]:
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    if isinstance(content, PathLike):
        return _iter_file(Path(content))
    if hasattr(content, "read"):
        return iter(lambda: content.read(CHUNK_BYTES), b"")
    raise InputError(f"a blob must be bytes, a path or a file, got {describe(content)}", reason="not a blob")


def _iter_file(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from None
