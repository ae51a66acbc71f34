"""The fence: one more version of a branch, with the same state and the next epoch.

A writer that staged before it loses its swap, sees the epoch and stages again, so that nothing it
staged is named after the second look. It changes nothing that a reader sees.
"""

from collections.abc import Iterable
from dataclasses import replace

from omnigraph import ids
from omnigraph.errors import ConcurrentCommit, GraphNotInitialized
from omnigraph.history.line import line_of
from omnigraph.history.manifest import Opened, is_newest, swap_state
from omnigraph.history.refs import Ref
from omnigraph.history.state import State
from omnigraph.history.unnamed import Unnamed
from omnigraph.storage import layout
from omnigraph.storage.cell import LostSwap, UnsureSwap
from omnigraph.storage.store import Store

from .roots import list_refs
from .survey import TABLES, place_of

ATTEMPTS = 50


def raise_fences(store: Store, condemned: Iterable[str], unnamed: Iterable[Unnamed] = ()) -> int:
    """Fence every branch on which a writer could be about to name something of the list.

    Branches are listed now that the list is written: on a branch that is made later, writers stage
    later. A handle may go on writing to a branch that lost its ref object. Returns how many were
    fenced.
    """
    places = {place_of(name) for name in condemned}
    found = [ref for ref in list_refs(store) if ref.place == layout.REFS]
    found += [Ref(one.label, one.ulid) for one in unnamed if one.kind == "branch"]
    states = {ref.ulid: _state(store, ref) for ref in found}
    named = {one.location for state in states.values() if state for one in state.tables.values()}
    # Pieces of the log, schemas and tables that no branch names may be of any branch.
    anyone = any(_is_shared(place) and place not in named for place in places)
    fenced = 0
    for ref in found:
        state = states[ref.ulid]
        own = {one.location for one in state.tables.values()} if state is not None else set()
        if anyone or places & {*own, layout.manifest_directory(ref.ulid)}:
            fenced += _fence(store, ref)
    return fenced


def _is_shared(place: str) -> bool:
    return place in (layout.COMMITS, layout.SCHEMAS) or place.startswith(TABLES)


def _state(store: Store, ref: Ref) -> State | None:
    """The newest state; None when the branch was deleted meanwhile."""
    try:
        state = line_of(store, ref.name, ref.ulid).refresh().state
    except GraphNotInitialized:
        return None
    return None if state.head.closed else state


def _fence(store: Store, ref: Ref) -> bool:
    """Raise the epoch of a branch; another collector's fence serves, too."""
    line = line_of(store, ref.name, ref.ulid)
    first: int | None = None
    for lost in range(ATTEMPTS):
        with line.turn():
            base = line.reload()
            head = base.state.head
            first = head.gc_epoch if first is None else first
            if head.closed:
                return False
            if head.gc_epoch > first or _raised(store, base):
                return True
        line.pause(lost)
    raise ConcurrentCommit(f"branch {ref.name} was too busy to be fenced; nothing was removed")


def _raised(store: Store, base: Opened) -> bool:
    """Swap in the next epoch; False means to look again, whatever became of it."""
    head = base.state.head
    raised = replace(head, gc_epoch=head.gc_epoch + 1, nonce=ids.nonce())
    try:
        opened = swap_state(store, base, replace(base.state, head=raised))
    except (LostSwap, UnsureSwap):
        return False
    return is_newest(opened)
