"""Run read queries, and return their rows as JSON, NDJSON, Arrow or CSV."""

from collections.abc import Generator, Iterator
from contextlib import closing

import msgspec
import pyarrow as pa

from omnigraph.api.graph import Graph
from omnigraph.api.results.result import Result
from omnigraph.errors import InputError, ResourceLimitExceeded
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import ExplainOutput, ReadRowsOutput, ReadTargetOutput
from omnigraph.server.models.requests import ExplainRequest, QueryRequest
from omnigraph.server.route_model import ARROW, CSV, JSON, NDJSON
from omnigraph.server.wire.answer import Answer, AnyAnswer, StreamAnswer, json_answer
from omnigraph.server.wire.conditions import make_etag
from omnigraph.server.wire.row_formats import arrow_chunks, arrow_codec, csv_chunks, ndjson_chunks

SNAPSHOT_HEADER = "Omnigraph-Snapshot-Id"
QUERY_NAME_HEADER = "Omnigraph-Query-Name"


def query(call: ServerCall) -> AnyAnswer:
    """Run a read query and return its rows."""
    body = call.body_as(QueryRequest)
    graph = call.graph_for_read(body.branch, body.snapshot)
    if call.media_type == JSON:
        return rows_answer(call, graph, body)
    return stream_answer(call, graph, body)


def rows_answer(call: ServerCall, graph: Graph, body: QueryRequest, *, with_commit: bool = True) -> Answer:
    """Run a query and return all rows as one JSON document."""
    result = graph.query(
        engine_access.query_text(body.query),
        name=body.name,
        params=body.params,
        timeout=query_timeout(call, body.timeout),
        assume_utc=body.assume_utc,
    )
    _check_row_count(call, body, result.num_rows)
    with call.timing.measure("encode"):
        rows = engine_access.encode_rows(result, integers_as_text=_wants_text_integers(call, body))
        document = _read_output(result, rows)
        if with_commit:
            document.graph_commit_id = result.commit_id
    _check_size(call, len(rows))
    etag = make_etag(str(result.commit_id), body.query, body.name, body.params)
    return json_answer(document, headers={"ETag": etag} if with_commit else {})


def _read_output(result: Result, encoded_rows: bytes) -> ReadRowsOutput:
    return ReadRowsOutput(
        query_name=result.query_name,
        target=ReadTargetOutput(branch=result.target["branch"], snapshot=result.target["snapshot"]),
        row_count=result.num_rows,
        columns=list(result.columns),
        rows=msgspec.Raw(encoded_rows),
    )


def stream_answer(call: ServerCall, graph: Graph, body: QueryRequest) -> StreamAnswer:
    """Run a query and return its rows batch by batch."""
    stream = graph.stream(
        engine_access.query_text(body.query),
        name=body.name,
        params=body.params,
        timeout=query_timeout(call, body.timeout),
        assume_utc=body.assume_utc,
    )
    batches = _limit_batches(call, body, stream)
    headers = {SNAPSHOT_HEADER: str(stream.commit_id), QUERY_NAME_HEADER: stream.query_name}
    media_type = call.media_type
    if media_type == ARROW:
        chunks = arrow_chunks(stream.schema, batches, arrow_codec(call.headers))
        return StreamAnswer(_limit_chunks(call, chunks), ARROW, headers=headers)
    if media_type == CSV:
        chunks = csv_chunks(stream.schema, batches)
        return StreamAnswer(_limit_chunks(call, chunks), f"{CSV}; charset=utf-8", headers=headers)
    chunks = ndjson_chunks(batches, integers_as_text=_wants_text_integers(call, body))
    return StreamAnswer(_limit_chunks(call, chunks), f"{NDJSON}; charset=utf-8", headers=headers)


def _wants_text_integers(call: ServerCall, body: QueryRequest) -> bool:
    """Return whether integers that JavaScript would round are sent as strings."""
    wish = body.integers or call.headers.get("omnigraph-integers", "number")
    if wish not in ("number", "string"):
        raise InputError("Omnigraph-Integers must be `number` or `string`", reason="malformed header")
    return wish == "string"


def _limit_batches(call: ServerCall, body: QueryRequest, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    row_count = 0
    try:
        for batch in batches:
            row_count += batch.num_rows
            _check_row_count(call, body, row_count)
            yield batch
    finally:
        batches.close()  # type: ignore[attr-defined]


def _check_row_count(call: ServerCall, body: QueryRequest, row_count: int) -> None:
    limits = [limit for limit in (body.limit_rows, call.state.settings.limits.result_rows) if limit]
    if limits and row_count > min(limits):
        hint = "add a limit to the query, or read the rows as a stream of Arrow batches"
        raise ResourceLimitExceeded(resource="result_rows", limit=min(limits), actual=row_count, hint=hint)


def _limit_chunks(call: ServerCall, chunks: Generator[bytes, None, None]) -> Iterator[bytes]:
    """Yield the chunks of a stream. If the result is too large, raise an error, which aborts the stream."""
    size = 0
    with closing(chunks):
        for chunk in chunks:
            size += len(chunk)
            _check_size(call, size)
            yield chunk


def _check_size(call: ServerCall, size: int) -> None:
    limit = call.state.settings.limits.result_bytes
    if limit and size > limit:
        hint = "add a limit to the query, or return fewer properties"
        raise ResourceLimitExceeded(resource="result_bytes", limit=limit, actual=size, hint=hint)


def query_timeout(call: ServerCall, requested: float | None) -> float | None:
    """Return the time limit of a query in seconds: the smaller of the request's limit and the server's limit."""
    server_limit = call.state.settings.limits.query_seconds or None
    limits = [limit for limit in (requested, server_limit) if limit is not None]
    return min(limits) if limits else None


def explain(call: ServerCall) -> Answer:
    """Return the plan of a query."""
    body = call.body_as(ExplainRequest)
    graph = call.graph_for_read(body.branch, body.snapshot)
    source = engine_access.query_text(body.query)
    plan = graph.explain(source, name=body.name, params=body.params, analyze=body.analyze)
    query_name = body.name or graph.prepare(source, name=body.name).name
    document = ExplainOutput(query_name=query_name, plan=str(plan), graph_commit_id=graph.head.id)
    document.details = plan.to_json()
    return json_answer(document)
