"""The server's interface to the engine: open graphs, and create a graph object for each request.

Every request has its own actor and its own read set. All requests share one store. Source text from a request is never
interpreted as a path.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.api.change_feed.baseline import Baseline
from omnigraph.api.error_boundary import guarded
from omnigraph.api.graph import Graph
from omnigraph.api.opening import open as open_graph
from omnigraph.api.results.json_encoding import iter_json_rows
from omnigraph.api.results.result import Result
from omnigraph.errors import InputError, OmnigraphError
from omnigraph.errors.diagnostics import SourceText

from .settings import GraphLocation

_MAX_SAFE_INTEGER = 2**53 - 1


def open_served_graph(location: GraphLocation) -> Graph:
    """Recover interrupted operations, and open a graph for serving."""
    return open_graph(location.uri)


def graph_for_request(opened: Graph, actor: str | None, branch: str | None, snapshot: str | None = None) -> Graph:
    """Return a graph for one request, on a branch (the default is `main`) or pinned to a revision.

    Raises `InputError` if both a branch and a snapshot are given, and `NotFound` if the branch or revision does not
    exist.
    """
    if branch is not None and snapshot is not None:
        raise InputError("`branch` and `snapshot` are mutually exclusive", reason="pass only one of them")
    graph = opened.acting(actor)
    if snapshot is not None:
        return graph.refresh().at(snapshot)
    return graph if branch is None or branch == graph.branch_name else graph.checkout(branch)


def graph_for_write(opened: Graph, actor: str | None, branch: str | None) -> Graph:
    """Return a graph for a write, at the newest commit of a branch.

    The graph has no earlier reads, so the write depends only on what it reads itself.
    """
    return graph_for_request(opened, actor, branch).refresh()


def query_text(text: str) -> SourceText:
    """Return the text of a request as a source that is never opened as a file."""
    return SourceText("<query>", text)


def schema_text(text: str) -> SourceText:
    """Return the schema of a request as a source that is never opened as a file."""
    return SourceText("<schema>", text)


def encode_rows(result: Result, *, integers_as_text: bool = False) -> bytes:
    """Return the rows of a result as a JSON array of objects."""
    rows = list(iter_json_rows(result._rows))  # `result.table` would build a table first
    return orjson.dumps([_with_text_integers(row) for row in rows] if integers_as_text else rows)


def encode_row_lines(batch: pa.RecordBatch, *, integers_as_text: bool = False) -> bytes:
    """Return the rows of a batch as NDJSON."""
    rows = iter_json_rows(pa.Table.from_batches([batch]))
    return b"".join(
        orjson.dumps(_with_text_integers(row) if integers_as_text else row, option=orjson.OPT_APPEND_NEWLINE)
        for row in rows
    )


def _with_text_integers(value: Any) -> Any:
    """Return the value with integers beyond JavaScript's safe range converted to decimal strings.

    >>> _with_text_integers({"a": [2**53, 1, True]})
    {'a': ['9007199254740992', 1, True]}
    """
    if isinstance(value, dict):
        return {name: _with_text_integers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_text_integers(item) for item in value]
    is_large = isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER
    return str(value) if is_large else value


@guarded
def export_parts(
    graph: Graph, type_names: Sequence[str] | None, *, iso_dates: bool, since: str | None
) -> Iterator[bytes]:
    """Yield an export. To limit memory use, a line that contains large blobs is split into several parts."""
    from omnigraph.api import exports

    yield from exports.export_parts(graph._handle, type_names, iso_dates=iso_dates, since=since)


@guarded
def baseline_parts(baseline: Baseline) -> Iterator[bytes]:
    """Yield a baseline. To limit memory use, a line that contains large blobs is split into several parts."""
    yield from baseline._parts_with_cursor()


def warm_up(graph: Graph) -> None:
    """Load the parts of the engine that every query needs, so that the first request does not wait for them."""
    node_types = graph.schema.node_types
    if not node_types:
        return
    with suppress(OmnigraphError):  # a damaged table must not prevent the graph from being served
        text = f"match {{ $n: {node_types[0]} }} return {{ $n.id }} limit 1"
        encode_rows(graph.query(query_text(text)))
