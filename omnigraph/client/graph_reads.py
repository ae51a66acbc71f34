"""The methods of `RemoteGraph` that search and export. No method in this module changes the graph."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from omnigraph.api.builders.search_text import PropertyNames, SearchTerms, build_search
from omnigraph.api.export_files import ExportFormat
from omnigraph.api.queries import QueryCall
from omnigraph.api.results.result import Result
from omnigraph.history.revisions import Revision

from . import exports, queries
from .handle import RemoteHandle


class RemoteReads:
    """Searches and exports of a graph on a server; `RemoteGraph` adds the other methods."""

    _handle: RemoteHandle

    def search(  # noqa: PLR0913 - all but the first are keywords
        self,
        type_name: str,
        /,
        *,
        text: str | None = None,
        vector: Sequence[float] | None = None,
        k: int = 10,
        properties: PropertyNames = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Return the best matches among the nodes of a type, with their scores; see `Graph.search`."""
        request = SearchTerms(type_name, text, vector, k, properties)
        target = self._handle.for_read(branch, at)
        query_text, arguments = build_search(target.schema_ir().catalog, request)
        return queries.run_query(target, QueryCall(query_text, None, arguments, timeout))

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
