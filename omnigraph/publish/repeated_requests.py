"""Run a request at most once: recover the outcome of an earlier run instead of running the request again.

Merges, replays and schema changes are planned before `publish` looks up their idempotency key. An earlier run may have
invalidated the plan: the branch has moved, the source has been deleted, or there is nothing left to do. This module
therefore looks up the key before the request is planned, and again if the plan fails or has no effect.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from omnigraph.errors import ClientError, ReadSetConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.manifest import sync_manifest
from omnigraph.publish.write_plan import CommitMetadata

from .idempotency import find_replayed_commit


class Outcome(Protocol):
    """The outcome of a request. `commit` is None if the request had no effect."""

    @property
    def commit(self) -> Commit | None:
        """The commit that the request published."""
        ...


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def publish_once(
    branch_state: BranchState,
    metadata: CommitMetadata,
    run: Callable[[], AnyOutcome],
    recover: Callable[[Commit], AnyOutcome],
) -> AnyOutcome:
    """Run a request, or return what `recover` derives from the commit that the same request has already published.

    A request without an idempotency key always runs. Raises `InputError` if the key was used for a different request.
    """
    commit = find_published_commit(branch_state, metadata)
    if commit is not None:
        return recover(commit)
    try:
        outcome = run()
    except ClientError:  # another process may have published the same request while this one ran
        commit = find_published_commit(branch_state, metadata)
        if commit is None:
            raise
        return recover(commit)
    if outcome.commit is None:
        commit = find_published_commit(branch_state, metadata)
    return outcome if commit is None else recover(commit)


def find_published_commit(branch_state: BranchState, metadata: CommitMetadata) -> Commit | None:
    """Return the commit that this request has already published, or None if it has published nothing.

    Crashed operations are recovered first, because one of them may be an earlier run of the request.
    """
    if metadata.idempotency_key is None:
        return None
    branch_state.recover_if_needed()
    manifest = branch_state.refresh()
    commit = find_replayed_commit(branch_state.store, manifest.state, metadata)
    if commit is not None:
        sync_manifest(manifest)  # the commit's writer may have crashed before syncing the version
    return commit


def require_own_commit(commit: Commit, own_id: str | None, base_commit_id: str) -> Commit:
    """Return a commit that this run has published. If an earlier run published the commit, raise `ReadSetConflict`.

    The report of this run's plan does not describe the commit of an earlier run.
    """
    if commit.id != own_id:
        raise ReadSetConflict(member="graph_head", expected=base_commit_id, actual=commit.id)
    return commit
