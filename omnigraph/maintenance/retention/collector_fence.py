"""The collector's fence: a new manifest version for a branch, with the same state and the next epoch.

The swap of a writer that staged files before the fence fails. The writer then sees the new epoch and stages again. The
files that it staged earlier, which the second mark did not see, can therefore never be published after that mark. A
fence does not change what readers see.
"""

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.errors import ConcurrentCommit, GraphNotInitialized
from omnigraph.history.branch_state import branch_state_of
from omnigraph.history.manifest import LoadedManifest, is_newest, swap_state
from omnigraph.history.refs import Ref
from omnigraph.history.state import GraphState
from omnigraph.publish.unnamed_manifests import UnnamedManifest
from omnigraph.storage import layout
from omnigraph.storage.file_roles import TABLE_ROOTS, owning_directory
from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .mark_live import list_refs

MAX_FENCE_ATTEMPTS = 50


def raise_fences(store: Store, queued_names: Iterable[str], unnamed: Iterable[UnnamedManifest] = ()) -> int:
    """Fence every branch on which a writer may be about to publish a queued file.

    Call this after the queue has been written. A branch that is created later needs no fence, because its writers also
    stage files later. A branch that has lost its ref object is fenced as well, because open handles can still write to
    it. Return the number of fenced branches.
    """
    affected_directories = {owning_directory(queued_name) for queued_name in queued_names}
    branch_refs = [ref for ref in list_refs(store) if ref.directory == layout.REFS]
    branch_refs += [Ref(branch.label, branch.ulid) for branch in unnamed if branch.kind == "branch"]
    states = {ref.ulid: _read_open_state(store, ref) for ref in branch_refs}
    named_locations = {entry.location for state in states.values() if state for entry in state.tables.values()}
    # Unreferenced log chunks, schemas and tables may belong to any branch.
    affects_every_branch = any(
        _may_belong_to_any_branch(directory) and directory not in named_locations for directory in affected_directories
    )
    fenced_count = 0
    for ref in branch_refs:
        state = states[ref.ulid]
        branch_locations = {entry.location for entry in state.tables.values()} if state is not None else set()
        if affects_every_branch or affected_directories & {*branch_locations, layout.manifest_directory(ref.ulid)}:
            fenced_count += _fence_branch(store, ref)
    return fenced_count


def _may_belong_to_any_branch(directory: str) -> bool:
    return directory in (layout.COMMITS, layout.SCHEMAS) or directory.startswith(TABLE_ROOTS)


def _read_open_state(store: Store, ref: Ref) -> GraphState | None:
    """Return the newest state, or None if the branch has been deleted."""
    try:
        state = branch_state_of(store, ref.name, ref.ulid).refresh().state
    except GraphNotInitialized:
        return None
    return None if state.head.closed else state


def _fence_branch(store: Store, ref: Ref) -> bool:
    """Raise a branch's epoch, unless another collector raises it in the meantime."""
    branch_state = branch_state_of(store, ref.name, ref.ulid)
    first_epoch: int | None = None
    for lost_attempts in range(MAX_FENCE_ATTEMPTS):
        with branch_state.writer_slot():
            base_manifest = branch_state.reload()
            head = base_manifest.state.head
            first_epoch = head.gc_epoch if first_epoch is None else first_epoch
            if head.closed:
                return False
            if head.gc_epoch > first_epoch or _swap_next_epoch(store, base_manifest):
                return True
        branch_state.back_off(lost_attempts)
    raise ConcurrentCommit(f"branch {ref.name} could not be fenced because of concurrent writes; nothing was removed")


def _swap_next_epoch(store: Store, base_manifest: LoadedManifest) -> bool:
    """Swap in the next epoch; return False if the branch must be read again.

    If this function returns False, the swap may still have succeeded. The next read shows whether the epoch was raised.
    """
    head = base_manifest.state.head
    next_head = replace(head, gc_epoch=head.gc_epoch + 1, nonce=clock_and_ids.new_nonce())
    try:
        fenced_manifest = swap_state(store, base_manifest, replace(base_manifest.state, head=next_head))
    except (SwapConflict, SwapOutcomeUnknown):
        return False
    return is_newest(fenced_manifest)
