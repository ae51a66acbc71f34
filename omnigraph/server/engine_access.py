"""The seam between the server and the engine: opening graphs, and a graph object for each request.

Every request has its own actor and its own memory of what it has read, on a store that all requests share. A text from
a request is always passed as text, never as a path.
"""

from typing import Any

import pyarrow as pa

from omnigraph.api.graph import Graph
from omnigraph.api.opening import open as open_graph
from omnigraph.errors import InputError
from omnigraph.errors.diagnostics import SourceText

from .settings import GraphLocation


def open_served_graph(location: GraphLocation) -> Graph:
    """Open a graph for serving; interrupted operations are recovered first."""
    return open_graph(location.uri)


def graph_for_request(opened: Graph, actor: str | None, branch: str | None, snapshot: str | None = None) -> Graph:
    """Return a graph for one request, on a branch (by default `main`) or pinned to a revision.

    Raises `InputError` if both a branch and a snapshot are given, and `NotFound` if they do not exist.
    """
    if branch is not None and snapshot is not None:
        raise InputError("branch and snapshot are mutually exclusive", reason="pass only one of them")
    graph = opened.acting(actor)
    if snapshot is not None:
        return graph.refresh().at(snapshot)
    return graph if branch is None or branch == graph.branch_name else graph.checkout(branch)


def graph_for_write(opened: Graph, actor: str | None, branch: str | None) -> Graph:
    """Return a graph for a write, at the newest commit of a branch.

    A request has no memory of earlier reads, so the write depends only on what it reads itself.
    """
    return graph_for_request(opened, actor, branch).refresh()


def query_text(text: str) -> SourceText:
    """Return the text of a request as a source that is never opened as a file."""
    return SourceText("<query>", text)


def schema_text(text: str) -> SourceText:
    """Return the schema of a request as a source that is never opened as a file."""
    return SourceText("<schema>", text)


def encode_rows(table: pa.Table) -> bytes:
    """Return the rows of a table as a JSON array of objects."""
    import orjson

    from omnigraph.api.results.json_encoding import iter_json_rows

    return orjson.dumps(list(iter_json_rows(table)))


def encode_row_lines(batch: Any) -> bytes:
    """Return the rows of a batch as NDJSON."""
    import orjson

    from omnigraph.api.results.json_encoding import iter_json_rows

    table = pa.Table.from_batches([batch])
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in iter_json_rows(table))
