"""The base class for the facets of a graph on a server."""

from typing import TYPE_CHECKING

from .handle import RemoteHandle

if TYPE_CHECKING:
    from .graph import RemoteGraph


class RemoteFacet:
    """A group of methods of a graph on a server, such as `graph.branches`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: RemoteHandle) -> None:
        handle.require_open()
        self._handle = handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle.describe()}>"

    def _graph_on(self, handle: RemoteHandle) -> "RemoteGraph":
        from .graph import RemoteGraph

        return RemoteGraph(handle)
