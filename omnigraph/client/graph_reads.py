"""The methods of `RemoteGraph` that export entities. No method in this module changes the graph."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from omnigraph.api.export_files import ExportFormat
from omnigraph.history.revisions import Revision

from . import exports
from .handle import RemoteHandle


class RemoteReads:
    """Exports from a graph on a server; `RemoteGraph` adds the other methods."""

    _handle: RemoteHandle

    def export(  # noqa: PLR0913 - all but the first are keywords
        self,
        path: str | PathLike[str] | None = None,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Revision | None = None,
        iso_dates: bool = False,
        since: Revision | None = None,
        format: ExportFormat | None = None,
    ) -> Any:
        """Export one snapshot as NDJSON that can be loaded again, or one type in another format; see `Graph.export`."""
        handle = self._handle.for_read(branch, at)
        return exports.export(handle, path, types, iso_dates=iso_dates, since=since, format=format)
