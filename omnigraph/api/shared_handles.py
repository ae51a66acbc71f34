"""Reuse open graphs in programs that open the same graph repeatedly, such as the command-line shell.

Inside `share_handles`, `omnigraph.open` derives a new handle from the first one with the same options, so the store
with its connections and caches is opened only once. Each call still returns its own handle on the newest commit.
Outside `share_handles`, nothing is shared.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from omnigraph.api.handle import Handle

_handles: ContextVar[dict[Hashable, Handle] | None] = ContextVar("shared_handles", default=None)


@contextmanager
def share_handles() -> Iterator[None]:
    """Share stores between graphs that are opened in this context.

    >>> from omnigraph import open, testing
    >>> with testing.graph("node Person { name: String @key }") as graph, share_handles():
    ...     open(graph.uri)._handle.store is open(graph.uri)._handle.store
    True
    """
    token = _handles.set({})
    try:
        yield
    finally:
        _handles.reset(token)


def reuse_handle(options: Hashable, branch: str, open_new: Callable[[], Handle]) -> Handle:
    """Return a new handle on a branch. Inside `share_handles`, reuse an earlier handle's store if possible."""
    shared = _handles.get()
    if shared is None:
        return open_new()
    if options not in shared:
        shared[options] = open_new()
    handle = shared[options].checkout(branch)
    handle.warnings = []  # each caller reports warnings about its own writes
    return handle
