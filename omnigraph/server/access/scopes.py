"""The branches that a request concerns, for authorization."""

from omnigraph.server.call import ServerCall
from omnigraph.server.models.requests import BranchCreateRequest, BranchMergeRequest
from omnigraph.storage.layout import MAIN

from .permissions import BranchScope


def branch_scope(call: ServerCall) -> BranchScope:
    """Return the branch of a request: of its path, its query string or its body, by default `main`.

    A request for a snapshot concerns no branch by name.
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
