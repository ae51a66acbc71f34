"""`with graph.branch(..)`: work on a branch for the duration of a block.

This module creates or opens the branch before the block runs, and decides whether to delete it afterwards. A branch is
never deleted if it has unmerged commits or if the block raised an exception.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from omnigraph.api.branches import fork_branch, open_or_fork_branch
from omnigraph.api.handle import Handle
from omnigraph.errors import BranchNotFound
from omnigraph.history import branches
from omnigraph.history.merge_bases import find_merge_bases
from omnigraph.history.refs import find_ref
from omnigraph.history.revisions import Revision
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.publish.branch_lifecycle import delete_branch


@contextmanager
def branch_block(
    handle: Handle, name: str, *, from_: Revision | None, exist_ok: bool, delete: bool
) -> Iterator[Handle]:
    """Yield a handle on a branch. If `delete` is true, the branch is deleted after the block if it has been merged."""
    branch_handle = open_or_fork_branch(handle, name, from_) if exist_ok else fork_branch(handle, name, from_)
    yield branch_handle
    if delete:
        with suppress(BranchNotFound):  # a merge inside the block may have deleted it
            _delete_if_merged(handle, branch_handle)


def _delete_if_merged(handle: Handle, branch_handle: Handle) -> None:
    """Delete a branch if its parent or the outer handle's branch contains its head."""
    parent_name = find_ref(handle.store, branch_handle.branch_name).parent
    target_names = dict.fromkeys(filter(None, (handle.branch_name, parent_name)))
    branch_head = branch_handle.latest_snapshot()
    if any(_contains_commit(_head_of(handle, target_name), branch_head) for target_name in target_names):
        name, head_id = branch_handle.branch_name, branch_head.commit_id
        delete_branch(handle.store, name, current_branch=handle.branch_name, expected_head=head_id)


def _head_of(handle: Handle, branch_name: str) -> Snapshot | None:
    try:
        branch_state = branches.open_branch(handle.store, branch_name)
    except BranchNotFound:
        return None
    return manifest_snapshot(handle.store, branch_state, branch_state.refresh())


def _contains_commit(head: Snapshot | None, branch_head: Snapshot) -> bool:
    """Return whether a branch with this head contains all commits on the other branch."""
    if head is None:
        return False
    base_ids, _ = find_merge_bases(head, branch_head)
    return base_ids == (branch_head.commit_id,)
