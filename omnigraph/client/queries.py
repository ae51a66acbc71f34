"""Queries, streams, plans, node and edge sets, and exports for a graph on a server.

Rows arrive as an Arrow stream and are returned as a `Result`, as on an embedded graph. No function in this module
writes to the graph.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet, edge_set, node_set
from omnigraph.api.builders.mutation_text import resolve_node_id
from omnigraph.api.builders.prepared_queries import COMPILED_QUERIES, Prepared, QuerySource, select_query
from omnigraph.api.queries import QueryCall
from omnigraph.api.results.node import Node
from omnigraph.api.results.result import Result, ResultStream
from omnigraph.engine.execution_context import OperatorStats
from omnigraph.engine.explain import ExplainedPlan, ExplainedStep
from omnigraph.errors.diagnostics import SourceText
from omnigraph.values import clock_and_ids
from omnigraph.values.naive_times import naive_times_as_utc

from .handle import RemoteHandle
from .query_requests import build_query_body, read_source, with_source
from .replies import Reply

ARROW = "application/vnd.apache.arrow.stream"
_COMMIT_HEADER, _NAME_HEADER = "Omnigraph-Snapshot-Id", "Omnigraph-Query-Name"


def run_query(handle: RemoteHandle, call: QueryCall) -> Result:
    """Run a read query and return all of its rows."""
    started = clock_and_ids.monotonic()
    return read_arrow_result(handle, _send_query(handle, call, handle.exchange.fetch), call.arguments, started)


def read_arrow_result(handle: RemoteHandle, reply: Reply, arguments: Mapping[str, Any], started: float) -> Result:
    """Return the rows in a response as a result. `started` is the time when the request was sent."""
    try:
        with pa.ipc.open_stream(pa.BufferReader(reply.read())) as reader:
            table = reader.read_all()
    except (pa.ArrowException, OSError):
        raise reply.malformed("malformed Arrow data") from None
    return Result(
        table,
        query_name=reply.headers.get(_NAME_HEADER, "query"),
        params=dict(arguments),
        target=handle.result_target(),
        commit_id=reply.headers.get(_COMMIT_HEADER),
        elapsed=clock_and_ids.monotonic() - started,
    )


def stream_query(handle: RemoteHandle, call: QueryCall) -> ResultStream:
    """Run a read query and return its rows as a stream of batches."""
    reply = _send_query(handle, call, handle.exchange.stream)
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(_ReplyFile(reply), mode="r"))
    except (pa.ArrowException, OSError):
        raise reply.malformed("malformed Arrow data") from None
    return ResultStream(
        reader.schema,
        _iter_batches(reader, reply),
        query_name=reply.headers.get(_NAME_HEADER, "query"),
        target=handle.result_target(),
        commit_id=reply.headers.get(_COMMIT_HEADER),
    )


def _send_query(handle: RemoteHandle, call: QueryCall, send: Callable[..., Reply]) -> Reply:
    handle.require_open()
    text = read_source(call.source, call.arguments)
    with naive_times_as_utc(call.assume_utc):
        body = build_query_body(text, call.name, call.arguments) | handle.position
    body |= {"timeout": call.timeout, "assume_utc": call.assume_utc or None}
    with with_source(text):
        return send("POST", ("query",), {}, json_body=body, headers={"Accept": ARROW}, is_read=True)


class _ReplyFile(io.RawIOBase):
    """A response body, as a file that Arrow reads sequentially."""

    def __init__(self, reply: Reply) -> None:
        self._chunks, self._rest = reply.chunks(), b""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        parts, missing = [], size if size is not None and size >= 0 else None
        while missing is None or missing > 0:
            chunk = self._rest or next(self._chunks, b"")
            if not chunk:
                break
            part, self._rest = (chunk, b"") if missing is None else (chunk[:missing], chunk[missing:])
            parts.append(part)
            missing = None if missing is None else missing - len(part)
        return b"".join(parts)


def _iter_batches(reader: pa.RecordBatchReader, reply: Reply) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    finally:
        reply.close()


def explain_query(handle: RemoteHandle, call: QueryCall, *, analyze: bool) -> ExplainedPlan:
    """Return a query's plan."""
    handle.require_open()
    text = read_source(call.source, call.arguments)
    body = build_query_body(text, call.name, call.arguments) | handle.position | {"analyze": analyze}
    with with_source(text):
        document = handle.exchange.post("explain", body=body, is_read=True)["details"]
    steps = tuple(map(_read_step, document["plan"]))
    return ExplainedPlan(document["query_name"], steps, document.get("row_count"), document.get("milliseconds"))


def _read_step(document: Mapping[str, Any]) -> ExplainedStep:
    stats = OperatorStats(document["rows"], document["milliseconds"]) if "rows" in document else None
    return ExplainedStep(document["depth"], document["operator"], document["estimated_rows"], stats)


def prepare_query(graph: Any, handle: RemoteHandle, source: QuerySource, name: str | None) -> Prepared:
    """Check a query against the graph's schema, and return a `Prepared` object that runs it."""
    text, ir = read_source(source, {}), handle.schema_ir()
    queries = COMPILED_QUERIES.get_or_compile(text, f"remote:{hash(ir)}", lambda: ir.catalog, name)
    query = select_query(queries, name)
    checked = SourceText(text.source_name, text.text)

    def call(params: Mapping[str, Any]) -> Any:
        run = graph.query if query.kind == "read" else graph.mutate
        return run(checked, name=query.name, params=params)

    def explain(params: Mapping[str, Any], analyze: bool) -> Any:
        return graph.explain(checked, name=query.name, params=params, analyze=analyze)

    types = {parameter.name: parameter.type.display() for parameter in query.parameters}
    return Prepared(query.name, query.kind, types, query.description, call, explain)


def nodes(handle: RemoteHandle, type_name: str) -> NodeSet:
    """Return the nodes of a type or interface, as a set that can be filtered, traversed and read."""
    return node_set(partial(_run_text, handle), handle.schema_ir().catalog, type_name)


def edges(handle: RemoteHandle, type_name: str) -> EdgeSet:
    """Return the edges of a given type, as a set that can be filtered and read."""
    return edge_set(partial(_run_text, handle), handle.schema_ir().catalog, type_name)


def _run_text(handle: RemoteHandle, text: str, arguments: Mapping[str, Any]) -> Result:
    return run_query(handle, QueryCall(text, None, arguments))


def find_node(handle: RemoteHandle, type_name: str, key: Any) -> Node | None:
    """Return a node by key, or None if there is no such node."""
    ir = handle.schema_ir()
    candidates = node_set(partial(_run_text, handle), ir.catalog, type_name)
    row = candidates.where(id=resolve_node_id(ir, type_name, key)).result().one_or_none()
    if row is None:
        return None
    values = dict(row)
    return Node(values.pop("id"), type_name, values)
