"""Revert and cherry-pick commits, and rename and reset branches."""

from omnigraph.server.call import ServerCall
from omnigraph.server.models.history import BranchRenameOutput
from omnigraph.server.models.requests import BranchRenameRequest, BranchResetRequest, ReplayRequest
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.storage.layout import MAIN

from .merges import make_strategy, merge_answer, merge_output


def revert(call: ServerCall) -> Answer:
    """Undo a commit or a range of commits by creating a new commit."""
    body = call.body_as(ReplayRequest)
    branch = body.branch or MAIN
    result = call.graph_for_write(branch).revisions.revert(
        body.commit,
        mainline=body.mainline,
        message=body.message,
        if_commit=call.condition,
        strategy=make_strategy(body.strategy, body.resolutions),
        granularity=body.granularity,
        dry_run=body.dry_run,
        idempotency_key=call.idempotency_key,
    )
    return merge_answer(result, merge_output(call, result, body.commit, branch, with_changes=body.changes))


def cherry_pick(call: ServerCall) -> Answer:
    """Apply the changes in one commit to a branch."""
    body = call.body_as(ReplayRequest)
    branch = body.branch or MAIN
    result = call.graph_for_write(branch).revisions.cherry_pick(
        body.commit,
        branch,
        mainline=body.mainline,
        message=body.message,
        if_commit=call.condition,
        strategy=make_strategy(body.strategy, body.resolutions),
        granularity=body.granularity,
        dry_run=body.dry_run,
        idempotency_key=call.idempotency_key,
    )
    return merge_answer(result, merge_output(call, result, body.commit, branch, with_changes=body.changes))


def reset_branch(call: ServerCall) -> Answer:
    """Restore the state of a revision on a branch, with a new commit."""
    body, branch = call.body_as(BranchResetRequest), call.path_values["branch"]
    result = call.graph_for_write(branch).branches.reset(
        branch,
        to=body.to,
        message=body.message,
        if_commit=call.condition,
        dry_run=body.dry_run,
        idempotency_key=call.idempotency_key,
    )
    return merge_answer(result, merge_output(call, result, body.to, branch, with_changes=body.changes))


def rename_branch(call: ServerCall) -> Answer:
    """Rename a branch."""
    body, name = call.body_as(BranchRenameRequest), call.path_values["branch"]
    renamed = call.graph_for_write().branches.rename(name, body.name)
    return json_answer(
        BranchRenameOutput(uri=call.graph.uri, from_=name.strip(), name=renamed.branch_name, actor_id=call.actor)
    )
