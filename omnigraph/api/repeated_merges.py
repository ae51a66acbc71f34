"""Recognize repeated merges, reverts, cherry-picks and resets by their idempotency keys, and recover their results.

A request is described by what the caller wrote, such as `HEAD~1`, not by the commit that this text refers to now. The
branch is part of the request. The result of a repeated request describes the commit that the first request published.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from omnigraph.api.handle import Handle
from omnigraph.api.merge_sessions import MergeResult, build_merge_result
from omnigraph.errors import ClientError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision
from omnigraph.merging.merge import MergeRequest
from omnigraph.merging.recorded_merge import rebuild_report, recorded_inputs
from omnigraph.merging.strategy import Strategy


def describe_merge_request(verb: str, branch: str, source: object, request: MergeRequest) -> object:
    """Return the data that identifies a merge, a revert or a cherry-pick.

    `source` describes what is merged, reverted or picked, and `branch` is the branch to which the commit is added.

    >>> describe_merge_request("merge", "main", "dev", MergeRequest(strategy={"Person": "ours", "*": "theirs"}))
    ('merge', 'main', 'dev', [('*', 'theirs'), ('Person', 'ours')], 'property', False)
    """
    options = request.options
    return verb, branch, source, _describe_strategy(request.strategy), options.granularity, options.collapse_edges


def describe_revision(revision: Revision) -> str:
    """Return a revision as the caller wrote it.

    >>> describe_revision(" HEAD~1 "), describe_revision(timedelta(hours=2))
    ('HEAD~1', '7200.0 seconds ago')
    """
    if isinstance(revision, timedelta):
        return f"{abs(revision).total_seconds()} seconds ago"
    return revision.isoformat() if isinstance(revision, datetime) else str(revision).strip()


def _describe_strategy(strategy: Strategy) -> object:
    """Return the data that identifies a strategy. All functions without a `content_digest` count as equal."""
    if callable(strategy):
        return "function", getattr(strategy, "content_digest", "")
    if isinstance(strategy, Mapping):
        return sorted((str(name), str(side)) for name, side in strategy.items())
    return strategy


def recover_result(handle: Handle, branch: BranchState, commit: Commit, request: MergeRequest) -> MergeResult:
    """Return the result of the request that published a commit. Refresh the handle if it is on the branch."""
    try:
        result = build_merge_result(rebuild_report(branch, commit, request))
        _ = result.stats  # reads the rows, which may have been removed
    except ClientError:
        result = _result_without_rows(branch, commit)
    if branch.ulid == handle.branch_state.ulid:
        handle.refresh()
    return replace(result, replayed=True)


def _result_without_rows(branch: BranchState, commit: Commit) -> MergeResult:
    """Return the part of a result that the log contains, for an operation whose rows a cleanup has removed."""
    if commit.operation != "merge":
        return MergeResult("merged", commit, source=commit.details["commit"], target=commit.parents[0])
    inputs = recorded_inputs(branch, commit)
    target, source = commit.parents
    return MergeResult(inputs.outcome, commit, base=inputs.base_snapshot.commit_id, source=source, target=target)
