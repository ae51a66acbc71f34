"""Read blobs, optionally with ranges and conditions, and replace blobs."""

from collections.abc import Iterator

from omnigraph.api.blobs import Blob
from omnigraph.api.entity_keys import parse_entity_key
from omnigraph.api.graph import Graph
from omnigraph.errors import BlobIntegrityError, BlobPreconditionFailed, RangeNotSatisfiable
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import ChangeOutput
from omnigraph.server.route_model import BYTES
from omnigraph.server.wire.answer import Answer, AnyAnswer, StreamAnswer, json_answer
from omnigraph.server.wire.byte_ranges import keeps_range, matches_strongly, select_range
from omnigraph.server.wire.conditions import matches_etag

from .documents import receipt_commit
from .reads import SNAPSHOT_HEADER
from .writes import REPLAY_HEADER

_CHUNK_BYTES = 4 << 20


def get_blob(call: ServerCall) -> AnyAnswer:
    """Return a blob or a range of its bytes."""
    opened = _open_blob(call)
    headers = _blob_headers(opened)
    refusal = _check_conditions(call, opened, headers)
    if refusal is not None:
        return refusal
    selected = None
    if keeps_range(call.headers.get("if-range"), opened.etag):
        selected = _select_range(call, opened)
    if selected is None:
        length = {"Content-Length": str(opened.size)}
        return StreamAnswer(_iter_chunks(opened, 0, opened.size), BYTES, headers={**headers, **length})
    start, stop = selected
    content_range = {"Content-Range": f"bytes {start}-{stop - 1}/{opened.size}", "Content-Length": str(stop - start)}
    return StreamAnswer(_iter_chunks(opened, start, stop), BYTES, 206, {**headers, **content_range})


def head_blob(call: ServerCall) -> Answer:
    """Return the headers of a blob. Ranges are ignored."""
    opened = _open_blob(call)
    headers = _blob_headers(opened)
    refusal = _check_conditions(call, opened, headers)
    return refusal or Answer(b"", BYTES, headers={**headers, "Content-Length": str(opened.size)})


def _select_range(call: ServerCall, opened: Blob) -> tuple[int, int] | None:
    try:
        return select_range(call.headers.getlist("range"), opened.size)
    except RangeNotSatisfiable as error:
        error.details["content_range"] = f"bytes */{opened.size}"
        raise


def _open_blob(call: ServerCall) -> Blob:
    values = call.query_values
    graph = call.graph_for_read(values.get("branch"), values.get("snapshot")).refresh()
    key = parse_entity_key(graph.schema.ir.catalog, values["type"], values["entity"], values["id"])
    return _open_readable(graph, values["type"], key, values["property"], values["entity"])


def _open_readable(graph: Graph, type_name: str, key: object, property_name: str, kind: str) -> Blob:
    opened = graph.blob(type_name, key, property_name, kind=kind)
    try:
        _ = opened.etag
    except BlobIntegrityError as error:
        raise BlobIntegrityError("the blob cannot be read") from error
    return opened


def _blob_headers(opened: Blob) -> dict[str, str]:
    return {
        "Accept-Ranges": "bytes",
        "ETag": opened.etag,
        SNAPSHOT_HEADER: opened.commit_id,
        "Omnigraph-Blob-Media-Type": opened.media_type,
        "Repr-Digest": _repr_digest(opened),
    }


def _repr_digest(opened: Blob) -> str:
    from base64 import b64encode

    return f"sha-256=:{b64encode(bytes.fromhex(opened.content_hash.removeprefix('sha256:'))).decode()}:"


def _check_conditions(call: ServerCall, opened: Blob, headers: dict[str, str]) -> Answer | None:
    """Return a response without the bytes if a condition makes them unnecessary; raise an error if `If-Match` fails."""
    if_match = call.headers.get("if-match")
    if if_match is not None and not matches_strongly(if_match, opened.etag):
        raise BlobPreconditionFailed(etag=opened.etag)
    if matches_etag(call.headers.get("if-none-match"), opened.etag):
        return Answer(b"", BYTES, 304, {**headers, "Content-Length": str(opened.size)})
    return None


def _iter_chunks(opened: Blob, start: int, stop: int) -> Iterator[bytes]:
    if start < stop:
        yield from opened.iter_chunks(_CHUNK_BYTES, start=start, stop=stop)


def put_blob(call: ServerCall) -> Answer:
    """Replace the blob of a node."""
    values = call.query_values
    graph = call.graph_for_write(values.get("branch"))
    key = parse_entity_key(graph.schema.ir.catalog, values["type"], "node", values["id"])
    with call.body as file:
        receipt = graph.put_blob(
            values["type"],
            key,
            values["property"],
            file.read(),
            media_type=values.get("media_type"),
            if_match=call.headers.get("if-match"),
            message=values.get("message"),
            if_commit=call.condition,
            idempotency_key=call.idempotency_key,
        )
    document = ChangeOutput(
        branch=receipt.branch,
        query_name=receipt.query_name,
        affected_nodes=receipt.affected_nodes,
        affected_edges=receipt.affected_edges,
        actor_id=call.actor,
        commit=receipt_commit(receipt, call),
        nodes=dict(receipt.nodes),
        edges=dict(receipt.edges),
    )
    return json_answer(document, headers={REPLAY_HEADER: "true"} if receipt.replayed else {})
