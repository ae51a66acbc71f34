"""The fence: a new manifest version of a branch with the same state and the next collector epoch.

A writer that staged before the fence loses its swap, sees the new epoch and stages again. Files
that it staged earlier are therefore never published after the second mark, which did not see them.
A fence changes nothing that readers see.
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
    """Fence every branch on which a writer may be about to publish something queued.

    Branches are listed after the queue was written: on a branch that is created later, writers
    also stage later. A branch that lost its ref object is fenced, too, because open handles can
    still write to it. Return the number of fenced branches.
    """
    places = {place_of(name) for name in condemned}
    found = [ref for ref in list_refs(store) if ref.place == layout.REFS]
    found += [Ref(branch.label, branch.ulid) for branch in unnamed if branch.kind == "branch"]
    states = {ref.ulid: _state(store, ref) for ref in found}
    named = {one.location for state in states.values() if state for one in state.tables.values()}
    # Log chunks, schemas and tables that no branch references could belong to any branch.
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
    """Return the newest state; None if the branch was deleted meanwhile."""
    try:
        state = line_of(store, ref.name, ref.ulid).refresh().state
    except GraphNotInitialized:
        return None
    return None if state.head.closed else state


def _fence(store: Store, ref: Ref) -> bool:
    """Raise the epoch of a branch; the fence of another collector serves as well."""
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
    """Swap in the next epoch; False means to read again, whatever the outcome was.

    A fence needs no proof of the outcome: the next read shows whether the epoch was raised.
    """
    head = base.state.head
    raised = replace(head, gc_epoch=head.gc_epoch + 1, nonce=ids.nonce())
    try:
        opened = swap_state(store, base, replace(base.state, head=raised))
    except (LostSwap, UnsureSwap):
        return False
    return is_newest(opened)
