"""Issue the warnings in a server's response as the Python warnings that an embedded graph issues."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.errors import AmbiguousRevision, IndexUnreadable
from omnigraph.errors.caller_warning import warn_caller

if TYPE_CHECKING:
    from omnigraph.maintenance.health_thresholds import LimitWarning

WARNINGS_HEADER = "Omnigraph-Warnings"
_LIMIT = "LimitWarning"
_CATEGORIES: dict[str, type[Warning]] = {
    category.__name__: category for category in (AmbiguousRevision, IndexUnreadable)
}


def issue_warnings(header: str, graph_path: str, graph_url: str) -> Iterator["LimitWarning"]:
    """Issue the warnings in a header, and yield those about exceeded limits, which `graph.warnings` lists.

    A warning about a limit contains a command that names the graph by its path on the server. The graph's URL replaces
    this path.
    """
    for document in _read_documents(header):
        code, message = document.get("code"), document.get("message")
        if code == _LIMIT:
            limit = _read_limit(document.get("details"), graph_path, graph_url)
            if limit is not None:
                yield limit
        elif isinstance(message, str):
            warn_caller(message, _CATEGORIES.get(str(code), UserWarning))


def _read_documents(header: str) -> list[dict[str, Any]]:
    try:
        documents = json.loads(header)
    except (ValueError, RecursionError):  # a proxy has changed the header
        return []
    return [document for document in documents if isinstance(document, dict)] if isinstance(documents, list) else []


def _read_limit(details: Any, graph_path: str, graph_url: str) -> "LimitWarning | None":
    from omnigraph.maintenance.health_thresholds import LimitWarning
    from omnigraph.values.table_key import TableKey

    try:
        type_key = details["type_key"]
        return LimitWarning(
            what=str(details["what"]),
            found=int(details["found"]),
            limit=int(details["limit"]),
            command=str(details["command"]).replace(f" {graph_path}", f" {graph_url}"),
            type_key=None if type_key is None else TableKey(type_key),
        )
    except (KeyError, TypeError, ValueError):
        return None
