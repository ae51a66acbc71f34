"""Holds that outlive a call: a program on another machine begins, renews and ends a hold in separate calls.

`graph.maintenance.hold` is a hold that the same process begins and ends. Both kinds of hold protect a commit from
cleanup.
"""

from dataclasses import dataclass

from omnigraph.api.graph import Graph
from omnigraph.publish import read_lease
from omnigraph.publish.intent import LEASE_DURATION


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold, with its id, its commit, and the number of seconds after which it ends if it is not renewed."""

    id: str
    commit_id: str
    seconds: float = LEASE_DURATION.total_seconds()


def begin_hold(graph: Graph) -> Hold:
    """Protect the commit that a graph reads from: the newest commit of its branch, or the pinned commit."""
    handle = graph._handle
    handle.require_open()
    snapshot = handle.latest_snapshot()
    intent = read_lease.begin_read_lease(handle.store, handle.branch_state, snapshot, handle.actor)
    return Hold(intent.id, snapshot.commit_id)


def renew_hold(graph: Graph, hold_id: str) -> None:
    """Extend a hold; raise `NotFound` if it has ended."""
    read_lease.renew_read_lease(graph._handle.store, hold_id)


def end_hold(graph: Graph, hold_id: str) -> None:
    """End a hold; raise `NotFound` if it has already ended."""
    read_lease.end_read_lease(graph._handle.store, hold_id)
