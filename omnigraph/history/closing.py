"""The closing version of a branch or tag: its last one, which nothing is ever published on.

It is never removed, so a delayed swap fails on it. Owns the attempts to publish it beside other
writers, and what is reported when the store did not answer.
"""

from omnigraph import ids
from omnigraph.errors import BranchBusy, ConcurrentCommit
from omnigraph.storage.cell import LostSwap, UnsureSwap
from omnigraph.storage.failures import reported, storage_failure, undecided
from omnigraph.storage.store import Store

from .doubt import Doubt, refusal
from .line import Line
from .manifest import Opened, is_newest, secure, swap_state
from .state import State

_ATTEMPTS = 50


def close(store: Store, line: Line, head: str | None = None) -> bool:
    """Publish the closing version; return True if another process had already done so."""
    nonce = ids.nonce()
    doubt = Doubt(f"the deletion of branch '{line.name}'")
    with doubt.told(), line.turn(), reported("none"):
        for _ in range(_ATTEMPTS):
            base = line.reload()
            if base.state.head.closed:
                secure(base)
                return base.state.head.nonce != nonce
            doubt.seen(base)
            if head is not None and base.state.head.commit_id != head:
                raise BranchBusy(branch=line.name, reason=f"it has moved on from commit {head}")
            if _swap_closed(line, base, base.state.closing(nonce), doubt):
                return False
        raise ConcurrentCommit(f"branch '{line.name}' was too busy to be deleted")


def _swap_closed(line: Line, base: Opened, state: State, doubt: Doubt) -> bool:
    """Swap, and verify before reporting; False means that the caller must look and try again."""
    try:
        closed = swap_state(line.store, base, state)
    except LostSwap:
        doubt.add(base)  # perhaps lost to itself: the client of the store retries on its own
        return False
    except UnsureSwap as unsure:
        return _ask(line, base, unsure, doubt)
    doubt.add(base)
    if not is_newest(closed):
        return False
    line.advance(closed)
    return True


def _ask(line: Line, base: Opened, unsure: UnsureSwap, doubt: Doubt) -> bool:
    """After an unanswered swap: raise an interrupt or a disk error if the branch is not closed.

    Whether it is closed, and by whom, is determined by the next attempt.
    """
    cause, refused = unsure.__cause__, refusal(line.store, unsure)
    if refused is None:
        doubt.add(base)
    with undecided():
        newest = line.reload()
    if newest.state.head.closed:
        return False
    doubt.seen(newest)
    if cause is not None and not isinstance(cause, Exception):
        raise cause
    if refused is not None:
        raise storage_failure(refused, effect="none") from refused
    return False
