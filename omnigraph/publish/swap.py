"""Swap a branch's manifest and verify the outcome.

A store may apply a swap and lose the response, so the response to a swap is never trusted. Before a write is
acknowledged or reported as not written, its commit is looked up in the newest log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from omnigraph.errors import HistoryReclaimed, ReadSetConflict, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import LoadedManifest, is_from_replaced_graph, is_newest, swap_state, sync_manifest
from omnigraph.history.state import GraphState
from omnigraph.publish.requirements import Requirement
from omnigraph.publish.unresolved_swaps import UnresolvedSwap, local_disk_error
from omnigraph.publish.write_plan import CommitMetadata, PreparePlan
from omnigraph.storage.failures import AbsentError, failures_with_effect, to_storage_error
from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown
from omnigraph.storage.store import Store

MAX_SWAP_ATTEMPTS = 5  # maximum number of swaps per plan, each on a newer base, before the plan is prepared again


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The parts of a write that stay the same across all attempts."""

    branch_state: BranchState
    prepare: PreparePlan
    metadata: CommitMetadata
    conditions: Sequence[Requirement]
    unresolved_swap: UnresolvedSwap

    @property
    def store(self) -> Store:
        """The store that contains the branch."""
        return self.branch_state.store


def swap_and_verify(
    request: WriteRequest, base_manifest: LoadedManifest, next_state: GraphState, commit: Commit
) -> bool:
    """Swap the manifest and verify the outcome; return whether the commit is in the log.

    The response to the swap does not prove the outcome. A client library may repeat a request whose response was lost,
    and the repeated request then loses to the first one, so even a conflict can mean success.
    """
    try:
        published_manifest = swap_state(request.store, base_manifest, next_state)
    except SwapConflict:
        with failures_with_effect("unknown"):
            return verify_commit_landed(request, base_manifest.state, commit)
    except SwapOutcomeUnknown as unknown_outcome:
        return _resolve_unknown_swap(request, base_manifest, commit, unknown_outcome)
    # If an interrupt arrives before the verification ends, the reported outcome is "unknown", not "failed".
    request.unresolved_swap.mark_unanswered(base_manifest)
    with failures_with_effect("unknown"):
        still_newest = is_newest(published_manifest)
        request.unresolved_swap.mark_resolved()
        if not still_newest:
            return verify_commit_landed(request, base_manifest.state, commit)
    # Update the cache last: a state that is cached before it is verified could become visible and then disappear.
    request.branch_state.advance(published_manifest)
    return True


def verify_commit_landed(request: WriteRequest, base_state: GraphState, commit: Commit) -> bool:
    """Read the newest state and return whether this commit is in its log."""
    branch_state = request.branch_state
    for _ in range(MAX_SWAP_ATTEMPTS):
        newest_manifest = branch_state.reload()
        try:
            logged_commit = _find_in_newer_log(branch_state, base_state, newest_manifest.state, commit.id)
        except HistoryReclaimed:
            # Log chunks were merged and removed after the manifest was read. On a deleted branch, removed chunks cannot
            # reappear, so a retry would be pointless.
            require_open_branch(branch_state, newest_manifest.state)
            continue
        if logged_commit is None:
            # A newer version without the commit has taken the swap's version number, so the swap can no longer be
            # applied. Only now is it certain that the commit was not written.
            request.unresolved_swap.observe_version(newest_manifest)
            require_open_branch(branch_state, newest_manifest.state)
            return False
        try:
            sync_manifest(newest_manifest)  # another process may have swapped the manifest and crashed before the sync
        except AbsentError:
            continue  # the version was superseded and cleaned up; the next version also contains the commit
        request.unresolved_swap.mark_resolved()
        return _require_own_commit(logged_commit, commit)
    raise StorageError(f"the log for branch {branch_state.name} cannot be read", kind="permanent")


def _require_own_commit(logged_commit: Commit, own_commit: Commit) -> bool:
    """Return True if the logged commit is this write's own, or raise an error if it is a refusal under the same id.

    Recovery in another process may have abandoned the operation and recorded a refusal.
    """
    if logged_commit.operation != own_commit.operation:
        raise ReadSetConflict(
            f"another process has already recorded the {own_commit.operation} as {logged_commit.operation}",
            member="tables",
        )
    return True


def _find_in_newer_log(
    branch_state: BranchState, base_state: GraphState, newest_state: GraphState, commit_id: str
) -> Commit | None:
    """Find a commit in the newest log, skipping the chunks that the base's log already contains."""
    base_chunks = {chunk.name for chunk in base_state.chunks}
    newer_state = replace(
        newest_state, chunks=tuple(chunk for chunk in newest_state.chunks if chunk.name not in base_chunks)
    )
    return HistoryLog(branch_state.store, newer_state).find(commit_id)


def require_open_branch(branch_state: BranchState, state: GraphState) -> None:
    """Raise an error if the branch was deleted."""
    if state.head.closed:
        raise ReadSetConflict(f"branch {branch_state.name} was deleted", member="branch", expected=branch_state.ulid)


def _resolve_unknown_swap(
    request: WriteRequest, base_manifest: LoadedManifest, commit: Commit, unknown_outcome: SwapOutcomeUnknown
) -> bool:
    """Determine the outcome of a swap that got no response.

    Retrying with the same commit id is safe, so this function usually just returns whether the swap was applied. An
    interrupt is raised again because it must not be suppressed, and a local disk error is raised because it would recur
    on a retry.
    """
    cause, disk_refusal = (unknown_outcome.__cause__, local_disk_error(request.store, unknown_outcome))
    if disk_refusal is None:  # after a local disk error, no swap is in flight
        request.unresolved_swap.mark_unanswered(base_manifest)
    with failures_with_effect("unknown"):
        if is_from_replaced_graph(base_manifest):
            # The root was removed and recreated, so the new root's log contains no evidence about this swap.
            message = f"a different graph was created at {request.store.root.uri}"
            raise StorageError(message, kind="permanent")
        is_published = verify_commit_landed(request, base_manifest.state, commit)
    if cause is not None and not isinstance(cause, Exception):
        if is_published:
            cause.add_note(f"commit {commit.id} was written")
        raise cause
    if disk_refusal is not None and not is_published:
        raise to_storage_error(disk_refusal, effect="none") from disk_refusal
    return is_published
