"""List, create, show and delete branches."""

from omnigraph.server.call import ServerCall
from omnigraph.server.models.history import (
    BranchCreateOutput,
    BranchDeleteOutput,
    BranchListOutput,
    BranchOutput,
)
from omnigraph.server.models.requests import BranchCreateRequest
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.storage.layout import MAIN

from .documents import commit_output


def list_branches(call: ServerCall) -> Answer:
    """List the names of all branches."""
    return json_answer(BranchListOutput(branches=call.graph_for_read().branches.names()))


def get_branch(call: ServerCall) -> Answer:
    """Return the head and the origin of a branch."""
    info = call.graph_for_read().branches[call.path_values["branch"]]
    return json_answer(
        BranchOutput(
            name=info.name,
            head=commit_output(info.head, call),
            parent=info.parent,
            fork_commit_id=info.fork_commit,
            ahead=info.ahead,
            behind=info.behind,
            created_at=None if info.created is None else int(info.created.timestamp() * 1_000_000),
        )
    )


def create_branch(call: ServerCall) -> Answer:
    """Create a branch."""
    body = call.body_as(BranchCreateRequest)
    origin = body.from_ or MAIN
    created = call.graph_for_write().branches.create(
        body.name, from_=origin, commit=body.commit, exist_ok=body.exist_ok
    )
    return json_answer(
        BranchCreateOutput(
            uri=call.graph.uri,
            from_=origin,
            name=created.branch_name,
            actor_id=call.actor,
            graph_commit_id=created.head.id,
        )
    )


def delete_branch(call: ServerCall) -> Answer:
    """Delete a branch. Without `force`, other branches or tags must contain all of its commits."""
    name = call.path_values["branch"]
    call.graph_for_write().branches.delete(name, force=bool(call.query_values.get("force")))
    return json_answer(BranchDeleteOutput(uri=call.graph.uri, name=name.strip(), actor_id=call.actor))
