"""List branches, and open them by name at their newest state.

A branch consists of a manifest dataset and a name. Opening a branch for writing cleans up after a crash: a torn newest
version is set aside, and the name of a deleted branch is released. `publish` creates and deletes branches.
"""

from dataclasses import replace

from omnigraph.errors import GraphNotInitialized
from omnigraph.storage.store import Store
from omnigraph.storage.torn_versions import TornVersionError

from . import name_conflicts, refs
from .branch_state import BranchState, GraphReplacedError, branch_state_of
from .commit_log import HistoryLog
from .manifest import LoadedManifest
from .missing_table_files import missing_manifest_error
from .refs import Ref
from .state import GraphState


def list_branches(store: Store) -> list[str]:
    """Return the names of all branches, including `main`. This takes one list request.

    If the deletion of a branch was interrupted, its name is listed until the branch is opened for writing.
    """
    return refs.open_names_with_main(refs.list_highest_numbers(store))


def open_branch(store: Store, branch_name: str) -> BranchState:
    """Open a branch by name at its newest state.

    Releases a name left behind by an interrupted deletion, unless the store is read-only.
    """
    return open_ref(store, refs.find_ref(store, name_conflicts.strip_name(branch_name)))


def open_ref(store: Store, ref: Ref) -> BranchState:
    """Open a ref's branch at its newest state."""
    branch_state = branch_state_of(store, ref.name, ref.ulid)
    try:
        manifest = _load_newest(branch_state)
    except GraphReplacedError:  # the state that this process had cached belonged to a different graph
        branch_state = branch_state_of(store, ref.name, ref.ulid)
        manifest = _load_newest(branch_state)
    except GraphNotInitialized as error:
        raise missing_manifest_error(store, ref) from error
    if manifest.state.head.closed:
        if not store.effects.read_only:
            refs.close_name(store, ref)
        raise refs.name_not_found_error(store, ref.name)
    branch_state.name = ref.name  # the branch may have been renamed after this process cached it
    return branch_state


def _load_newest(branch_state: BranchState) -> LoadedManifest:
    """Load the newest state, after setting aside a torn version that was never acknowledged."""
    try:
        return branch_state.refresh()
    except TornVersionError:
        if branch_state.store.effects.read_only:
            raise
        from .torn_manifests import set_aside_torn_versions

        set_aside_torn_versions(branch_state.store, branch_state.name, branch_state.ulid)
        return branch_state.reload()


def state_at_commit(store: Store, newest_state: GraphState, commit_id: str) -> GraphState:
    """Return the state at a past commit, with the branch's entire log."""
    if newest_state.head.commit_id == commit_id:
        return newest_state
    log = HistoryLog(store, newest_state)
    tables, schema = log.tables_and_schema_at(commit_id)
    streams = log.stream_tokens_at(commit_id, newest_state.streams)
    return replace(newest_state, tables=tables, schema=schema, streams=streams)
