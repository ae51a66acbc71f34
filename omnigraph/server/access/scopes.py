"""Determine which branches a request affects, for authorization."""

from omnigraph.server.call import ServerCall
from omnigraph.server.models.requests import BranchCreateRequest, BranchMergeRequest
from omnigraph.storage.layout import MAIN

from .permissions import BranchScope


def branch_scope(call: ServerCall) -> BranchScope:
    """Return the branches that a request's path, query string or body names. The default is `main`.

    A request for a snapshot has no branch.
    """
    body = call.body
    if isinstance(body, BranchMergeRequest):
        return BranchScope(body.source, body.target or MAIN)
    if isinstance(body, BranchCreateRequest):
        return BranchScope(body.from_ or MAIN, body.name)
    if "branch" in call.path_values:
        return BranchScope(target_branch=call.path_values["branch"])
    if call.query_values.get("snapshot") or getattr(body, "snapshot", None):
        return BranchScope()
    return BranchScope(call.query_values.get("branch") or getattr(body, "branch", None) or MAIN)
