"""Mutations."""

from omnigraph.errors import InputError
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import ChangeOutput
from omnigraph.server.models.requests import ChangeRequest
from omnigraph.server.wire.answer import Answer, json_answer

from .documents import receipt_commit

REPLAY_HEADER = "Idempotent-Replay"


def mutate(call: ServerCall) -> Answer:
    """Run a mutation as one commit."""
    body = call.body_as(ChangeRequest)
    text, name = body.query if body.query is not None else body.query_source, body.name or body.query_name
    if text is None:
        raise InputError("invalid request body: `query` is required", reason="invalid body")
    return run_mutation(call, text, name, body)


def run_mutation(call: ServerCall, text: str, name: str | None, body: ChangeRequest) -> Answer:
    """Run a mutation with the request's options."""
    receipt = call.graph_for_write(body.branch).mutate(
        engine_access.query_text(text),
        name=name,
        params=body.params,
        if_commit=call.condition,
        message=body.message,
        idempotency_key=call.idempotency_key,
        assume_utc=body.assume_utc,
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
    if receipt.ids:
        document.ids = {type_name: list(ids) for type_name, ids in receipt.ids.items()}
    return json_answer(document, headers={REPLAY_HEADER: "true"} if receipt.replayed else {})
