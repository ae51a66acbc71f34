"""`with graph.branch(..)`: work on a branch for the duration of a block.

This module creates or opens the branch before the block runs, and merges, deletes or keeps it afterward. A branch is
never deleted if the block raised an exception, and unmerged commits are discarded only if the caller requests this.
"""

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from omnigraph.api.block_guards import BlockGuard
from omnigraph.api.branch_exits import BranchExit, check_branch_exit
from omnigraph.api.branches import fork_branch, open_or_fork_branch
from omnigraph.api.handle import Handle
from omnigraph.api.merges import merge
from omnigraph.errors import BranchNotFound
from omnigraph.history.branch_info import contains_commits, find_branch_head
from omnigraph.history.refs import find_ref
from omnigraph.history.revisions import Revision
from omnigraph.publish.branch_lifecycle import delete_branch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from omnigraph.api.graph import Graph


def branch(
    handle: Handle,
    name: str,
    *,
    from_: Revision | None = None,
    exist_ok: bool = False,
    delete: bool = False,
    on_exit: BranchExit = "keep",
) -> "AbstractContextManager[Graph]":
    """Yield a graph on a new branch for the duration of a `with` block.

    The branch is created as in `graph.branches.create`. If `exist_ok` is true, an existing branch with that name is
    opened instead. `on_exit` determines what happens to the branch after the block: `"merge"` merges the branch into
    this graph's branch and then deletes it, `"drop"` deletes it together with its unmerged commits, and `"keep"` keeps
    it. With `"keep"` and `delete=True`, the branch is deleted if all of its commits have been merged into this graph's
    branch or into the branch's parent. After an exception, the branch is always kept, so that you can inspect its
    state. If the merge has conflicts, `MergeConflict` is raised, and the branch is also kept.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     with graph.branch("import", on_exit="merge") as work:
    ...         _ = work.insert("Person", {"name": "ada"})
    ...     graph.refresh().nodes("Person").ids(), list(graph.branches)
    (['ada'], ['main'])
    """
    check_branch_exit(on_exit)
    return BlockGuard(name, _run_block(handle, name, from_, on_exit, exist_ok=exist_ok, delete=delete))


@contextmanager
def _run_block(
    handle: Handle, name: str, from_: Revision | None, on_exit: BranchExit, *, exist_ok: bool, delete: bool
) -> "Iterator[Graph]":
    from omnigraph.api.graph import Graph

    branch_handle = open_or_fork_branch(handle, name, from_) if exist_ok else fork_branch(handle, name, from_)
    yield Graph(branch_handle)
    with suppress(BranchNotFound):  # a merge inside the block may have deleted it
        _finish_block(handle, branch_handle, on_exit, delete=delete)


def _finish_block(handle: Handle, branch_handle: Handle, on_exit: BranchExit, *, delete: bool) -> None:
    match on_exit:
        case "merge":
            find_ref(handle.store, branch_handle.branch_name)  # raises `BranchNotFound`
            merge(handle, branch_handle.branch_name, delete_branch=True)
        case "drop":
            delete_branch(handle.store, branch_handle.branch_name, current_branch=handle.branch_name)
        case "keep" if delete:
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
