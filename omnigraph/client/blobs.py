"""Blobs on a server: read them in ranges, save them to files, and replace them."""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from omnigraph.api.blob_files import READ_AHEAD_BYTES, BlobFile, write_atomically
from omnigraph.api.blob_properties import resolve_address
from omnigraph.api.blobs import CHUNK_BYTES, report_progress
from omnigraph.api.data_files import ProgressCallback, ProgressOption, progress_callback
from omnigraph.api.queries import QueryCall
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import (
    BlobPreconditionFailed,
    InputError,
    OmnigraphError,
    RangeNotSatisfiable,
    StorageError,
    UsageError,
)
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids
from omnigraph.values.describe_value import describe
from omnigraph.values.name_rules import strip_name

from .answers import read_receipt
from .entity_keys import write_key
from .handle import RemoteHandle
from .writes import check_write_options, update_entities, write_branch

BlobName = tuple[str, Any, str]  # type, key and property
_BYTES = "application/octet-stream"


ReadRange = Callable[[int, int], Iterator[bytes]]


@record
class BlobFacts:
    """The location, size, hash and media type of a blob, and the commit at which they were read."""

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    size: int
    content_hash: str
    media_type: str
    commit_id: str


class RemoteBlob:
    """A blob of a node or edge on a server, pinned to the commit at which it was opened."""

    def __init__(self, facts: BlobFacts, read_range: ReadRange) -> None:
        self._facts, self._read_range = facts, read_range
        self.kind, self.type_name, self.property_name = facts.kind, facts.type_name, facts.property_name
        self.size, self.media_type, self.commit_id = facts.size, facts.media_type, facts.commit_id

    def __repr__(self) -> str:
        return f"Blob({self.type_name!r}, {self.entity_id!r}, {self.property_name!r}, size={self.size})"

    @property
    def entity_id(self) -> str:
        """The entity's id."""
        return self._facts.entity_id

    @property
    def etag(self) -> str:
        """A strong ETag, which identifies the exact bytes."""
        return f'"{self._facts.content_hash}"'

    @property
    def content_hash(self) -> str:
        """The SHA-256 hash of the bytes, as `sha256:<hex>`."""
        return self._facts.content_hash

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of the blob, or of a range; see `Blob.read`."""
        first, last = self._clip_range(start, stop)
        return b"".join(self._read_range(first, last))

    def iter_chunks(
        self, chunk_bytes: int = CHUNK_BYTES, *, start: int = 0, stop: int | None = None
    ) -> Iterator[bytes]:
        """Yield the blob, or a range of it, in chunks."""
        if chunk_bytes < 1:
            raise UsageError(reason="chunk_bytes must be at least 1")
        first, last = self._clip_range(start, stop)
        return _cut_chunks(self._read_range(first, last), chunk_bytes)

    def open(self) -> io.BufferedReader:
        """Return a seekable binary file object that reads ahead one mebibyte at a time."""
        read_range = lambda first, last: b"".join(self._read_range(first, last))  # noqa: E731
        return io.BufferedReader(BlobFile(self.size, read_range), READ_AHEAD_BYTES)

    def save(
        self,
        path: str | PathLike[str],
        *,
        start: int = 0,
        stop: int | None = None,
        progress: ProgressOption = None,
    ) -> int:
        """Write the blob, or a range of it, to a file atomically. Return the number of bytes written."""
        first, last = self._clip_range(start, stop)
        chunks, report = self.iter_chunks(start=first, stop=last), progress_callback(progress)
        return write_atomically(
            Path(fspath(path)), chunks if report is None else report_progress(chunks, last - first, report)
        )

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
    """Join and split chunks so that all have the same size; only the last one may be smaller."""
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        while len(rest) >= chunk_bytes:
            yield bytes(rest[:chunk_bytes])
            del rest[:chunk_bytes]
    if rest:
        yield bytes(rest)


def open_blob(handle: RemoteHandle, name: BlobName, kind: str | None, if_match: str | None) -> RemoteBlob:
    """Read a blob's headers. If no kind is given, the schema determines whether the type is a node or an edge type."""
    handle.require_open()
    address = resolve_address(handle.schema_ir(), *name, kind)
    names = {"entity": address.kind, "type": address.type_name, "property": address.property_name}
    blob = _open_at_position(handle, {**names, "id": address.entity_id, **handle.position})
    if if_match is not None:
        blob.require_match(if_match)
    return blob


def _open_at_position(handle: RemoteHandle, parameters: Mapping[str, Any]) -> RemoteBlob:
    headers = {"Accept": _BYTES}
    try:
        reply = handle.exchange.stream("HEAD", ("blob",), parameters, headers=headers)
    except OmnigraphError:
        # The response to HEAD has no body that describes the error, so the same request is sent as GET.
        reply = handle.exchange.stream("GET", ("blob",), parameters, headers=headers | {"Range": "bytes=0-0"})
    reply.read()
    facts = BlobFacts(
        parameters["entity"],
        parameters["type"],
        str(parameters["id"]),
        parameters["property"],
        int(reply.headers["Content-Length"]),
        reply.headers["ETag"].strip('"'),
        reply.headers["Omnigraph-Blob-Media-Type"],
        reply.headers["Omnigraph-Snapshot-Id"],
    )
    return stored_blob(handle, facts)


def stored_blob(handle: RemoteHandle, facts: BlobFacts) -> RemoteBlob:
    """Return a blob whose bytes are requested when they are read."""
    parameters = {
        "entity": facts.kind,
        "type": facts.type_name,
        "id": facts.entity_id,
        "property": facts.property_name,
        "snapshot": facts.commit_id,
    }

    def read_range(first: int, last: int) -> Iterator[bytes]:
        if first < last:
            headers = {"Accept": _BYTES, "Range": f"bytes={first}-{last - 1}"}
            yield from handle.exchange.stream("GET", ("blob",), parameters, headers=headers).chunks()

    return RemoteBlob(facts, read_range)


def written_blob(facts: BlobFacts, content: bytes) -> RemoteBlob:
    """Return a blob that is not stored yet and whose bytes are in memory."""
    return RemoteBlob(facts, lambda first, last: iter((content[first:last],) if first < last else ()))


def put_blob(  # noqa: PLR0913, PLR0917 - the parts of one request
    handle: RemoteHandle,
    name: BlobName,
    content: Any,
    media_type: str | None,
    if_match: str | None,
    branch: str | None,
    options: WriteOptions,
    progress: ProgressOption = None,
) -> Receipt:
    """Replace a node's blob in one commit. Bytes can be sent again after a failure, but files and streams cannot."""
    handle.require_writable("replacing a blob")
    check_write_options(handle, options)
    if content is None or isinstance(content, str):
        return _put_value(handle, name, content, media_type, if_match, branch, options)
    started = clock_and_ids.monotonic()
    headers = {"Content-Type": _BYTES, "Idempotency-Key": options.idempotency_key or clock_and_ids.new_ulid()}
    if if_match is not None:
        headers["If-Match"] = if_match if if_match == "*" or if_match.startswith('"') else f'"{if_match}"'
    parameters = {
        "type": name[0],
        "id": _write_key(handle, name, branch),
        "property": name[2],
        "branch": write_branch(handle, branch),
        "media_type": media_type,
        "message": options.message,
    }
    body = _read_content(content, progress_callback(progress))
    reply = handle.exchange.fetch("PUT", ("blob",), parameters, body=body, headers=headers, condition=options.if_commit)
    is_replay = "Idempotent-Replay" in reply.headers and options.idempotency_key is not None
    return read_receipt(reply.json(), elapsed=clock_and_ids.monotonic() - started, replayed=is_replay)


def _write_key(handle: RemoteHandle, name: BlobName, branch: str | None) -> str:
    """Return a node's key as text. The schema is needed only if the key is not text already."""
    if isinstance(name[1], str):
        return name[1]
    ir = (handle if branch is None else handle.on_branch(strip_name(branch))).schema_ir()
    return write_key(ir, resolve_type(ir.catalog, name[0], "node"), name[1])


def _put_value(  # noqa: PLR0913, PLR0917 - the parts of one request
    handle: RemoteHandle,
    name: BlobName,
    value: str | None,
    media_type: str | None,
    if_match: str | None,
    branch: str | None,
    options: WriteOptions,
) -> Receipt:
    """Set a blob to NULL, base64 text or an external URI, by updating its property."""
    from omnigraph.api.blob_writes import media_type_value

    target = handle if branch is None else handle.on_branch(strip_name(branch))
    address = resolve_address(target.schema_ir(), *name, "node")
    if if_match is not None:
        opened = open_blob(target, name, "node", if_match)
        options = replace(options, if_commit=options.if_commit or opened.commit_id)
    new_values = {**media_type_value(address, media_type), address.property_name: value}
    call = QueryCall("", None, {"entity": address.entity_id})
    receipt = update_entities(target, address.type_name, "id = $entity", new_values, call, None, options)
    if not receipt.affected_nodes and not receipt.replayed:
        raise address.not_found_error(row_exists=False)
    return receipt


def _read_content(content: Any, report: ProgressCallback | None) -> bytes | Iterator[bytes]:
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    if isinstance(content, PathLike):
        path = Path(content)
        return _report_read(_iter_file(path), path.stat().st_size if path.is_file() else None, report)
    if hasattr(content, "read"):
        return _report_read(iter(lambda: content.read(READ_AHEAD_BYTES), b""), None, report)
    raise InputError(f"a blob must be bytes, a path or a file, got {describe(content)}", reason="not a blob")


def _report_read(chunks: Iterator[bytes], size: int | None, report: ProgressCallback | None) -> Iterator[bytes]:
    """Yield chunks, and report the number of bytes read so far. The total is known in advance only for disk files."""
    byte_count = 0
    for chunk in chunks:
        byte_count += len(chunk)
        if report is not None:
            report(byte_count, byte_count if size is None else size)
        yield chunk


def _iter_file(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(READ_AHEAD_BYTES):
                yield chunk
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from None
