"""Write records of one type, and run several writes and reads as one commit.

A transaction is a single request, because the server keeps no state between requests. To read in the middle of a
transaction, a client sends its steps so far with `rollback`. It later sends all steps, with digests of what it read.
"""

import hashlib
import io
from base64 import b64encode
from typing import Any

import msgspec
from msgspec import UNSET

from omnigraph.api.graph import Graph
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.transactions import Transaction, generated_ids, reuse_ids
from omnigraph.errors import EntityNotFound, InputError, ReadSetConflict
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import ChangeOutput, TransactionBlob, TransactionOutput, TransactionResult
from omnigraph.server.models.requests import RecordsRequest, TransactionOperation, TransactionRequest
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.server.wire.row_formats import arrow_chunks

from .documents import receipt_commit
from .writes import REPLAY_HEADER


class _RollbackError(Exception):
    """Ends a transaction that must not be published."""


def write_records(call: ServerCall) -> Answer:
    """Write records of one type as one commit."""
    body = call.body_as(RecordsRequest)
    graph = call.graph_for_write(body.branch)
    options: dict[str, Any] = {
        "if_commit": call.condition,
        "message": body.message,
        "idempotency_key": call.idempotency_key,
        "assume_utc": body.assume_utc,
    }
    if body.verb == "connect":
        receipt = graph.connect_nodes(body.type_, _endpoint_tuples(body.records), **options)
    else:
        write = {"insert": graph.insert, "upsert": graph.upsert, "patch": graph.patch}[body.verb]
        receipt = write(body.type_, body.records, **options)
    return _receipt_answer(call, receipt)


def _receipt_answer(call: ServerCall, receipt: Receipt) -> Answer:
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
    document.ids = _ids_by_type(receipt) or UNSET
    return json_answer(document, headers={REPLAY_HEADER: "true"} if receipt.replayed else {})


def _endpoint_tuples(records: list[Any] | None) -> list[tuple[Any, ...]]:
    if records is None or not all(isinstance(record, list) and len(record) in (2, 3) for record in records):
        raise InputError("each record to connect must be [from, to] or [from, to, properties]", reason="invalid body")
    return [tuple(record) for record in records]


def run_transaction(call: ServerCall) -> Answer:
    """Run the steps of a transaction, and publish them as one commit unless `rollback` is set."""
    body = call.body_as(TransactionRequest)
    graph = call.graph_for_write(body.branch)
    base_commit_id = graph.head.id
    results: list[TransactionResult] = []
    transaction = graph.transaction(
        if_commit=call.condition, message=body.message, idempotency_key=call.idempotency_key
    )
    reuse_ids(transaction, body.generated_ids or ())
    try:
        with transaction as running:
            for operation in body.operations:
                if operation.op == "blob":
                    results.append(_read_blob(running, graph.at(base_commit_id), operation))
                else:
                    _run_operation(running, operation, results, with_arrow=body.arrow)
            if body.rollback:
                raise _RollbackError
    except _RollbackError:
        receipt = Receipt(None, branch=graph.branch_name)
    else:
        receipt = transaction.receipt or Receipt(None, branch=graph.branch_name)
    document = TransactionOutput(
        branch=receipt.branch,
        affected_nodes=receipt.affected_nodes,
        affected_edges=receipt.affected_edges,
        actor_id=call.actor,
        commit=receipt_commit(receipt, call),
        results=results,
        base_commit_id=base_commit_id,
        nodes=dict(receipt.nodes),
        edges=dict(receipt.edges),
        ids=_ids_by_type(receipt) or UNSET,
        generated_ids=list(generated_ids(transaction)) or UNSET,
    )
    return json_answer(document, headers={REPLAY_HEADER: "true"} if receipt.replayed else {})


def _ids_by_type(receipt: Receipt) -> dict[str, list[str]]:
    return {type_name: list(ids) for type_name, ids in receipt.ids.items()}


def _run_operation(
    running: Transaction, operation: TransactionOperation, results: list[TransactionResult], *, with_arrow: bool
) -> None:
    if operation.op == "query":
        results.append(_run_query(running, operation, with_arrow=with_arrow))
    elif operation.op == "mutate":
        source = engine_access.query_text(_require_member(operation, "query"))
        running.mutate(source, name=operation.name, params=operation.params)
    elif operation.op in ("update", "delete"):
        _run_predicate_write(running, operation)
    elif operation.op == "load" and operation.data is not None:
        lines = io.BytesIO(operation.data.encode("utf-8", "surrogatepass"))
        running.load(lines, mode=operation.mode or "append")
    else:
        _run_record_write(running, operation)


def _run_predicate_write(running: Transaction, operation: TransactionOperation) -> None:
    type_name, where = _require_member(operation, "type_"), _require_member(operation, "where")
    if operation.op == "delete":
        running.delete(type_name, where=where, params=operation.params)
    else:
        running.update(type_name, where=where, set=_require_member(operation, "set"), params=operation.params)


def _run_record_write(running: Transaction, operation: TransactionOperation) -> None:
    type_name, records = _require_member(operation, "type_"), _require_member(operation, "records")
    if operation.op == "connect":
        running.connect_nodes(type_name, _endpoint_tuples(records))
    elif operation.op == "load":
        running.load({type_name: records}, mode=operation.mode or "append")
    else:
        write = {"insert": running.insert, "upsert": running.upsert, "patch": running.patch}[operation.op]
        write(type_name, records)


def _require_member(operation: TransactionOperation, member: str) -> Any:
    value = getattr(operation, member)
    if value is None:
        raise InputError(f"the operation `{operation.op}` requires `{member.rstrip('_')}`", reason="invalid body")
    return value


def _read_blob(running: Transaction, base: Graph, operation: TransactionOperation) -> TransactionResult:
    """Open a blob in a transaction; raise `ReadSetConflict` if the client previously saw a different blob."""
    type_name, key = _require_member(operation, "type_"), _require_member(operation, "key")
    name = (type_name, tuple(key) if isinstance(key, list) else key, _require_member(operation, "property"))
    opened = running.blob(*name, kind=operation.kind)
    if operation.digest is not None and operation.digest != opened.content_hash:
        raise ReadSetConflict(member="blob")
    document = TransactionBlob(
        kind="edge" if opened.kind == "edge" else "node",
        id=opened.entity_id,
        size=opened.size,
        media_type=opened.media_type,
        graph_commit_id=base.head.id,
    )
    if _read_hash(base, name, operation.kind) != opened.content_hash:
        document.content = b64encode(opened.read()).decode()
    return TransactionResult(columns=[], rows=[], digest=opened.content_hash, blob=document)


def _read_hash(base: Graph, name: tuple[Any, ...], kind: Any) -> str | None:
    """Return the hash of a blob before the transaction, or None if there was no blob."""
    try:
        return base.blob(*name, kind=kind).content_hash
    except EntityNotFound:
        return None


def _run_query(running: Transaction, operation: TransactionOperation, *, with_arrow: bool) -> TransactionResult:
    """Run a query in a transaction; raise `ReadSetConflict` if the client previously saw a different result."""
    source = engine_access.query_text(_require_member(operation, "query"))
    result = running.query(source, name=operation.name, params=operation.params)
    rows = engine_access.encode_rows(result)
    digest = hashlib.sha256(rows).hexdigest()
    if operation.digest is not None and operation.digest != digest:
        raise ReadSetConflict(member="query")
    columns = list(result.columns)
    if not with_arrow:
        return TransactionResult(columns=columns, rows=msgspec.Raw(rows), digest=digest)
    stream = b"".join(arrow_chunks(result.schema, iter(result.to_batches()), None))
    return TransactionResult(columns=columns, rows=[], digest=digest, arrow=b64encode(stream).decode())
