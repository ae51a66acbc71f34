"""`graph.queries` on a server: list the stored queries, and run them by name.

The server has the text of each query, and checks the parameters. The client only converts Python values to JSON.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from omnigraph.api.stored_queries import StoredQueries, StoredQuery
from omnigraph.api.write_options import WriteOptions
from omnigraph.values import clock_and_ids

from .handle import RemoteHandle
from .property_values import PropertyTypes, encode_properties
from .queries import ARROW, read_arrow_result
from .stored_query_types import property_type, write_kind
from .writes import send_write


def stored_queries(handle: RemoteHandle) -> StoredQueries:
    """Return the stored queries of a graph; they run on the handle's branch or commit."""
    return StoredQueries(partial(_read_queries, handle), handle.describe())


def _read_queries(handle: RemoteHandle) -> dict[str, StoredQuery]:
    handle.require_open()
    return {entry["name"]: _read_query(handle, entry) for entry in handle.exchange.get("queries")["queries"]}


def _read_query(handle: RemoteHandle, entry: Mapping[str, Any]) -> StoredQuery:
    known_types = {parameter["name"]: property_type(parameter) for parameter in entry["params"]}
    types = {name: known for name, known in known_types.items() if known is not None}

    def run(query: StoredQuery, arguments: Mapping[str, Any]) -> Any:
        return _run_query(handle, query, types, arguments)

    return StoredQuery(
        entry["name"],
        "mutation" if entry["mutation"] else "read",
        {parameter["name"]: write_kind(parameter) for parameter in entry["params"]},
        run,
        description=entry.get("description"),
        instruction=entry.get("instruction"),
    )


def _run_query(handle: RemoteHandle, query: StoredQuery, types: PropertyTypes, arguments: Mapping[str, Any]) -> Any:
    handle.require_open()
    is_mutation = query.kind == "mutation"
    segments = ("queries", query.name)
    body = {"params": encode_properties(lambda: types, arguments) or None, "expect_mutation": is_mutation}
    if is_mutation:
        return send_write(handle, segments, body, None, WriteOptions(), action="running a mutation")
    started = clock_and_ids.monotonic()
    reply = handle.exchange.fetch(
        "POST", segments, {}, json_body=body | handle.position, headers={"Accept": ARROW}, is_read=True
    )
    return read_arrow_result(handle, reply, arguments, started)
