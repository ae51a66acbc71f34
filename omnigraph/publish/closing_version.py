"""The closing version of a branch or tag: its final version, after which nothing is published.

The closing version is never removed, so a swap that arrives later always fails. This module publishes the closing
version even if other writers are publishing at the same time, and raises an error if the store does not respond.
"""

from omnigraph.errors import BranchBusy, ConcurrentCommit
from omnigraph.history.branch_state import BranchState
from omnigraph.history.manifest import LoadedManifest, is_newest, swap_state, sync_manifest
from omnigraph.history.state import GraphState
from omnigraph.storage.failures import as_storage_errors, failures_with_effect, to_storage_error
from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .unresolved_swaps import UnresolvedSwap, local_disk_error

_MAX_ATTEMPTS = 50


def publish_closing_version(store: Store, branch_state: BranchState, expected_head: str | None = None) -> bool:
    """Publish the closing version; return True if another process has already published it."""
    closing_nonce = clock_and_ids.new_nonce()
    unresolved_swap = UnresolvedSwap(f"the deletion of branch '{branch_state.name}'")
    with unresolved_swap.report_unknown_outcome(), branch_state.writer_slot(), as_storage_errors("none"):
        for _ in range(_MAX_ATTEMPTS):
            base = branch_state.reload()
            if base.state.head.closed:
                sync_manifest(base)
                return base.state.head.nonce != closing_nonce
            unresolved_swap.observe_version(base)
            if expected_head is not None and base.state.head.commit_id != expected_head:
                raise BranchBusy(branch=branch_state.name, reason=f"its head is no longer commit {expected_head}")
            if _swap_closing_state(branch_state, base, base.state.as_closed(closing_nonce), unresolved_swap):
                return False
        raise ConcurrentCommit(f"branch '{branch_state.name}' could not be deleted because of concurrent writes")


def _swap_closing_state(
    branch_state: BranchState, base: LoadedManifest, closing_state: GraphState, unresolved_swap: UnresolvedSwap
) -> bool:
    """Swap in the closing state and verify the result; return False if the caller must reload the branch and retry."""
    try:
        closed_manifest = swap_state(branch_state.store, base, closing_state)
    except SwapConflict:
        # The swap may conflict with itself, because store clients repeat requests on their own.
        unresolved_swap.mark_unanswered(base)
        return False
    except SwapOutcomeUnknown as unsure:
        return _check_unanswered_swap(branch_state, base, unsure, unresolved_swap)
    unresolved_swap.mark_unanswered(base)
    if not is_newest(closed_manifest):
        return False
    branch_state.advance(closed_manifest)
    return True


def _check_unanswered_swap(
    branch_state: BranchState, base: LoadedManifest, swap_error: SwapOutcomeUnknown, unresolved_swap: UnresolvedSwap
) -> bool:
    """After a swap without a response, raise the interrupt or disk error unless the branch is closed.

    The next attempt determines whether the branch is closed and which process closed it.
    """
    cause, disk_error = swap_error.__cause__, local_disk_error(branch_state.store, swap_error)
    if disk_error is None:
        unresolved_swap.mark_unanswered(base)
    with failures_with_effect("unknown"):
        newest = branch_state.reload()
    if newest.state.head.closed:
        return False
    unresolved_swap.observe_version(newest)
    if cause is not None and not isinstance(cause, Exception):
        raise cause
    if disk_error is not None:
        raise to_storage_error(disk_error, effect="none") from disk_error
    return False
