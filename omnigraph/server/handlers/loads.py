"""Load NDJSON, Arrow and Parquet. Each load is one commit."""

import io
from collections.abc import Mapping
from hashlib import sha256
from typing import IO, Any, cast

import pyarrow as pa

from omnigraph.api.results.receipt import LoadReport, Receipt
from omnigraph.errors import BranchNotFound, InputError, OmnigraphError
from omnigraph.ingest.load import LoadMode
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import (
    GraphBatchDeclarationOutput,
    GraphBatchLoadOutput,
    IngestOutput,
    LoadTableOutput,
)
from omnigraph.server.models.requests import IngestRequest
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.storage.layout import MAIN

from .documents import receipt_commit
from .writes import REPLAY_HEADER

LoadOptions = Mapping[str, Any]
_DEFAULT_MODE: LoadMode = "merge"
_MAX_ERRORS = 100_000
_DIGEST_CHUNK_BYTES = 1 << 20


def load_ndjson(call: ServerCall) -> Answer:
    """Load a stream of NDJSON."""
    with call.body as file:
        return answer_load(call, _with_digest(call, file), call.query_values)


def load_arrow(call: ServerCall) -> Answer:
    """Load an Arrow IPC stream whose rows all have the same type."""
    with call.body as file:
        return answer_load(call, {call.query_values["type"]: read_arrow(file)}, call.query_values)


def load_parquet(call: ServerCall) -> Answer:
    """Load a Parquet file whose rows all have the same type."""
    with call.body as file:
        return answer_load(call, {call.query_values["type"]: _read_parquet(file)}, call.query_values)


def load_text(call: ServerCall) -> Answer:
    """Load NDJSON text from a member of a JSON body."""
    body = call.body_as(IngestRequest)
    options = {
        "branch": body.branch,
        "from": body.from_ or (MAIN if call.is_flat and call.route.deprecated else None),
        "mode": body.mode,
        "message": body.message,
        "dry_run": body.dry_run,
        "assume_utc": body.assume_utc,
    }
    file = io.BytesIO(body.data.encode("utf-8", "surrogatepass"))
    return answer_load(call, _with_digest(call, file), options, with_uri=True)


class DigestedFile:
    """A file and a digest of its content, which distinguishes a retried load from another load with the same key."""

    name = "<body>"

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.content_digest = digest_file(file)

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes."""
        return self._file.read(size)


def digest_file(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file, and rewind the file."""
    digest = sha256()
    while chunk := file.read(_DIGEST_CHUNK_BYTES):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def _with_digest(call: ServerCall, file: IO[bytes]) -> Any:
    return file if call.idempotency_key is None else DigestedFile(file)


def read_arrow(file: IO[bytes]) -> pa.Table:
    """Return the rows of an Arrow IPC stream."""
    try:
        with pa.ipc.open_stream(file) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError, ValueError):
        raise InputError("the body is not a valid Arrow stream", reason="malformed body") from None


def _read_parquet(file: IO[bytes]) -> pa.Table:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(file)
    except (pa.ArrowException, OSError, ValueError):
        raise InputError("the body is not a valid Parquet file", reason="malformed body") from None


def answer_load(call: ServerCall, data: Any, options: LoadOptions, *, with_uri: bool = False) -> Answer:
    """Load data with the options of a request, and describe the commit."""
    branch, base = options.get("branch") or MAIN, options.get("from")
    if base is not None:
        call.authorize("branch_create", base, branch)
    mode: LoadMode = cast("LoadMode", options.get("mode") or _DEFAULT_MODE)
    receipt = _run_load(call, data, mode, branch, base, options)
    assert isinstance(receipt, Receipt)  # noqa: S101 - problems are raised
    document = _load_output(call, receipt, mode, base)
    if with_uri:
        document = _with_location(call, document)
    return json_answer(document, headers={REPLAY_HEADER: "true"} if receipt.replayed else {})


def _run_load(call: ServerCall, data: Any, mode: LoadMode, branch: str, base: str | None, options: LoadOptions) -> Any:
    graph, max_errors = call.graph_for_write(None), options.get("max_errors")
    if max_errors is not None and not 0 <= max_errors <= _MAX_ERRORS:
        raise InputError(f"max_errors must be between 0 and {_MAX_ERRORS}", reason="invalid value")
    try:
        outcome = graph.load(
            data,
            mode=mode,
            branch=branch,
            from_=base,
            engine="local",
            dry_run=bool(options.get("dry_run")),
            if_commit=call.condition,
            message=options.get("message"),
            idempotency_key=call.idempotency_key,
            assume_utc=bool(options.get("assume_utc")),
            max_row_bytes=_row_limit(call, options.get("max_row_bytes")),
            **({} if max_errors is None else {"on_error": "report", "max_errors": max_errors}),
        )
    except BranchNotFound as error:
        if base is not None:
            raise
        hint = "create the branch first, or pass `from` to specify its origin"
        raise BranchNotFound(branch=error.branch or branch, hint=hint) from None
    if isinstance(outcome, LoadReport):
        raise _with_problems(outcome)
    return outcome


def _row_limit(call: ServerCall, requested_bytes: int | None) -> int | None:
    """Return the maximum row size: the one that the client requests, but at most the maximum size of a load.

    None means unlimited.
    """
    limits = [limit for limit in (call.state.settings.limits.load_bytes, requested_bytes) if limit]
    return min(limits, default=None)


def _with_problems(report: LoadReport) -> OmnigraphError:
    """Return the error for the first problem, with all reported problems in its details."""
    error = report.error or InputError("the input has problems; nothing was written", reason="bad input")
    error.details["problems"] = [
        row | {"code": problem.code} for row, problem in zip(report.to_dicts(), report, strict=True)
    ]
    error.details["problems_left_out"] = report.left_out
    return error


def _load_output(call: ServerCall, receipt: Receipt, mode: LoadMode, base: str | None) -> GraphBatchLoadOutput:
    document = GraphBatchLoadOutput(
        branch=receipt.branch,
        base_branch=base,
        branch_created=receipt.branch_created,
        mode=mode,
        nodes=_count_entities(receipt.nodes),
        edges=_count_entities(receipt.edges),
        total_entities=receipt.total,
        actor_id=call.actor,
        commit=receipt_commit(receipt, call),
    )
    if mode == "delete":
        document.missing = dict(receipt.missing)
    if receipt.nulled:
        document.nulled = {type_name: dict(counts) for type_name, counts in receipt.nulled.items()}
    return document


def _with_location(call: ServerCall, document: GraphBatchLoadOutput) -> IngestOutput:
    """Return the JSON for a load, with the graph's location. Version 0.3 clients also get their own member names."""
    members = {name: getattr(document, name) for name in document.__struct_fields__}
    ingest = IngestOutput(uri=call.graph.uri, **members)
    if call.uses_old_names:
        ingest.base_branch = document.base_branch or MAIN
        rows = [("node", declared) for declared in document.nodes] + [("edge", declared) for declared in document.edges]
        ingest.tables = [
            LoadTableOutput(table_key=f"{kind}:{declared.name}", rows_loaded=declared.entities_loaded)
            for kind, declared in rows
        ]
    return ingest


def _count_entities(counts: Mapping[str, int]) -> list[GraphBatchDeclarationOutput]:
    return [GraphBatchDeclarationOutput(name=name, entities_loaded=counts[name]) for name in sorted(counts)]
