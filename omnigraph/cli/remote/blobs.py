"""Blobs of a graph on a server: read them in ranges, save them to files, and replace them."""

from collections.abc import Iterator, Mapping
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from omnigraph.client.exchange import Exchange
from omnigraph.client.replies import CHUNK_BYTES
from omnigraph.errors import (
    BlobPreconditionFailed,
    EntityNotFound,
    InputError,
    NotFound,
    OmnigraphError,
    RangeNotSatisfiable,
)

if TYPE_CHECKING:
    from .graph import CommandGraph

BlobName = tuple[str, str, str]  # type, key and property
_BYTES = "application/octet-stream"
_COMMIT_HEADER, _MEDIA_TYPE_HEADER = "Omnigraph-Snapshot-Id", "Omnigraph-Blob-Media-Type"


class ServedBlob:
    """A blob, pinned to the commit at which its headers were read."""

    def __init__(self, exchange: Exchange, parameters: Mapping[str, Any], headers: HTTPMessage) -> None:
        self._exchange, self._parameters = exchange, parameters
        self.kind, self.type_name = parameters["entity"], parameters["type"]
        self.property_name = parameters["property"]
        self.size, self.etag = int(headers["Content-Length"]), headers["ETag"]
        self.media_type, self.commit_id = headers[_MEDIA_TYPE_HEADER], headers[_COMMIT_HEADER]

    @property
    def entity_id(self) -> str:
        """The id of the entity, which is requested from the server."""
        name = (self.kind, self.type_name, self._parameters["id"])
        return self._exchange.get("entities", *name, snapshot=self.commit_id)["id"]  # type: ignore[no-any-return]

    def require_match(self, etag: str) -> None:
        """Raise `BlobPreconditionFailed` unless the blob has this ETag. `*` matches any blob."""
        if etag != "*" and etag.strip('"') != self.etag.strip('"'):
            raise BlobPreconditionFailed(etag=self.etag)

    def iter_chunks(self, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of the blob, or of a range."""
        first, last = self._clip_range(start, stop)
        if first == last:
            return
        parameters = {name: value for name, value in self._parameters.items() if name != "branch"}
        reply = self._exchange.stream(
            "GET",
            ("blob",),
            parameters | {"snapshot": self.commit_id},
            headers={"Accept": _BYTES, "Range": f"bytes={first}-{last - 1}"},
        )
        yield from reply.chunks()

    def save(self, path: Path, *, start: int, stop: int | None, progress: Any) -> int:
        """Write the blob, or a range of it, to a file atomically. Return the number of bytes written."""
        from omnigraph.api.blob_files import write_atomically

        first, last = self._clip_range(start, stop)
        return write_atomically(
            path, _report_progress(self.iter_chunks(start=first, stop=last), last - first, progress)
        )

    def _clip_range(self, start: int, stop: int | None) -> tuple[int, int]:
        size, last = self.size, self.size if stop is None else stop
        is_empty_blob = size == 0 and start == 0 and last >= 0
        if not is_empty_blob and not 0 <= start < min(last, size):
            raise RangeNotSatisfiable(start=start, end=max(start, size) if stop is None else stop, length=size)
        return start, min(last, size)


def open_blob(graph: "CommandGraph", name: BlobName, kind: str | None) -> ServedBlob:
    """Read the headers of a blob. If no kind is given, look for a node type first, and then for an edge type."""
    parameters = {"type": name[0], "id": name[1], "property": name[2], **graph.position}
    try:
        return _read_headers(graph.exchange, {"entity": kind or "node", **parameters})
    except EntityNotFound:
        raise
    except NotFound:
        if kind is not None:
            raise
        return _read_headers(graph.exchange, {"entity": "edge", **parameters})


def _read_headers(exchange: Exchange, parameters: Mapping[str, Any]) -> ServedBlob:
    headers = {"Accept": _BYTES}
    try:
        reply = exchange.stream("HEAD", ("blob",), parameters, headers=headers)
    except OmnigraphError:
        # The response to HEAD has no body that describes the error, so the same request is sent as GET.
        reply = exchange.stream("GET", ("blob",), parameters, headers=headers | {"Range": "bytes=0-0"})
    reply.read()
    return ServedBlob(exchange, parameters, reply.headers)


def put_blob(graph: "CommandGraph", name: BlobName, content: Any, options: Mapping[str, Any]) -> Any:
    """Replace the blob of a node and return the response."""
    from .graph import key_headers

    headers = {"Content-Type": _BYTES, **key_headers(options["idempotency_key"])}
    if options["if_match"] is not None:
        headers["If-Match"] = _quote_etag(options["if_match"])
    parameters = {
        "type": name[0],
        "id": name[1],
        "property": name[2],
        "branch": graph.branch_name,
        "media_type": options["media_type"],
        "message": options["message"],
    }
    try:
        file: IO[bytes] = content.open("rb") if isinstance(content, Path) else content
    except OSError as error:
        raise InputError(f"cannot read {content}: {error.strerror}", reason="unreadable") from None
    with file:
        return graph.exchange.call(
            "PUT",
            ("blob",),
            parameters,
            body=_report_progress(iter(lambda: file.read(CHUNK_BYTES), b""), None, options["progress"]),
            headers=headers,
            condition=options["if_commit"],
        )


def _quote_etag(etag: str) -> str:
    return etag if etag == "*" or etag.startswith('"') else f'"{etag}"'


def _report_progress(chunks: Iterator[bytes], total_bytes: int | None, report: Any) -> Iterator[bytes]:
    byte_count = 0
    for chunk in chunks:
        yield chunk
        byte_count += len(chunk)
        report(byte_count, total_bytes or byte_count)
