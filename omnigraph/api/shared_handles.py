"""Reuse of open graphs by programs that open the same graph again and again, such as the shell of the command line.

Inside `share_handles`, `omnigraph.open` derives a new handle from the first one with the same options, so the store
with its connections and caches is opened once. Each call still returns its own handle on the newest commit. Outside,
nothing is shared.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from omnigraph.api.handle import Handle

_handles: ContextVar[dict[Hashable, Handle] | None] = ContextVar("shared_handles", default=None)


@contextmanager
def share_handles() -> Iterator[None]:
    """Share the stores of graphs that are opened in this context.

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
    """Return a new handle on a branch; inside `share_handles`, it uses the store of an earlier handle if possible."""
    shared = _handles.get()
    if shared is None:
        return open_new()
    if options not in shared:
        shared[options] = open_new()
    handle = shared[options].checkout(branch)
    handle.warnings = []  # each caller reports the warnings of its own writes
    return handle
