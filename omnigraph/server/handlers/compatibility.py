"""Operations of version 0.3 that have no current equivalent."""

from omnigraph.errors import NotFound
from omnigraph.server.call import ServerCall
from omnigraph.server.models.entities import RunListOutput
from omnigraph.server.models.requests import QueryRequest, ReadRequest
from omnigraph.server.wire.answer import Answer, json_answer

from .reads import rows_answer


def read(call: ServerCall) -> Answer:
    """Run a read query. As in version 0.3, the response does not contain a commit."""
    old = call.body_as(ReadRequest)
    body = QueryRequest(
        query=old.query_source, name=old.query_name, params=old.params, branch=old.branch, snapshot=old.snapshot
    )
    return rows_answer(call, call.graph_for_read(body.branch, body.snapshot), body, with_commit=False)


async def list_runs(_: ServerCall) -> Answer:
    """Return an empty list of runs, because writes are published directly as commits."""
    return json_answer(RunListOutput(runs=[]))


async def missing_run(_: ServerCall) -> Answer:
    """Report that the run does not exist."""
    raise NotFound(what="run")
