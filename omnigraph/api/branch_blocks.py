"""`with graph.branch(..)`: work on a branch for the duration of a block.

This module creates or opens the branch before the block runs, and decides whether to delete it afterward. A branch is
never deleted if it has unmerged commits or if the block raised an exception.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from omnigraph.api.branches import fork_branch, open_or_fork_branch
from omnigraph.api.handle import Handle
from omnigraph.errors import BranchNotFound
from omnigraph.history.branch_info import contains_commits, find_branch_head
from omnigraph.history.refs import find_ref
from omnigraph.history.revisions import Revision
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
    target_heads = filter(None, (find_branch_head(handle.store, target_name) for target_name in target_names))
    if any(contains_commits(target_head, branch_head) for target_head in target_heads):
        name, head_id = branch_handle.branch_name, branch_head.commit_id
        delete_branch(handle.store, name, current_branch=handle.branch_name, expected_head=head_id)
