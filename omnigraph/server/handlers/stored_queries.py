"""List stored queries, and run them by name.

A caller without permission gets the same response for every name, whether or not a query with that name exists.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, structs

from omnigraph.errors import InputError, PermissionDenied, StoredQueryNotFound
from omnigraph.lang.query.check.parameters import CheckedParameter
from omnigraph.lang.query.describe_query import describe_value_kind
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import ParamDescriptor, QueriesCatalogOutput, QueryCatalogEntry
from omnigraph.server.models.requests import ChangeRequest, InvokeStoredQueryRequest, QueryRequest
from omnigraph.server.route_model import JSON
from omnigraph.server.stored_queries import ServedQuery
from omnigraph.server.wire.answer import Answer, AnyAnswer, json_answer
from omnigraph.server.wire.conditions import make_etag, matches_etag
from omnigraph.storage.layout import MAIN

from .reads import rows_answer, stream_answer
from .writes import run_mutation

_TARGET_PARAMETERS = ("branch", "snapshot")


def list_queries(call: ServerCall) -> Answer:
    """List the stored queries of a graph."""
    return json_answer(QueriesCatalogOutput(queries=[_catalog_entry(query) for query in call.graph.queries]))


def _catalog_entry(query: ServedQuery) -> QueryCatalogEntry:
    compiled = query.compiled
    return QueryCatalogEntry(
        name=query.name,
        tool_name=query.name,
        mutation=query.is_mutation,
        params=[_describe_parameter(parameter) for parameter in compiled.parameters],
        description=compiled.description or UNSET,
        instruction=compiled.instruction or UNSET,
    )


def _describe_parameter(parameter: CheckedParameter) -> ParamDescriptor:
    members = describe_value_kind(parameter.name, parameter.type).to_json()
    return msgspec.convert(members, ParamDescriptor)


def require_invocation(call: ServerCall) -> None:
    """Check the permission and the name before the body is read. Both checks fail with the same response."""
    try:
        call.authorize("invoke_query")
    except PermissionDenied:
        raise StoredQueryNotFound() from None
    call.only_reads = not call.graph.queries.find(call.path_values["name"]).is_mutation


def invoke(call: ServerCall) -> AnyAnswer:
    """Run a stored query."""
    query = call.graph.queries.find(call.path_values["name"])
    body = call.body if isinstance(call.body, InvokeStoredQueryRequest) else InvokeStoredQueryRequest()
    target = _read_target(call, body)
    if body.expect_mutation is not None and body.expect_mutation != query.is_mutation:
        found, expected = ("mutation", "read query") if query.is_mutation else ("read query", "mutation")
        message = f"the stored query '{query.name}' is a {found}, but the request expects a {expected}"
        raise InputError(message, reason="unexpected kind")
    if query.is_mutation:
        return _run_mutation(call, query, structs.replace(body, **target))
    if call.condition is not None:
        raise InputError(
            f"the stored query '{query.name}' does not change the graph and cannot have a precondition",
            reason="no write",
            hint="call the query without a precondition",
        )
    return _run_read(call, query, structs.replace(body, **target))


def read(call: ServerCall) -> AnyAnswer:
    """Run a stored read query with parameters from the URL. If the result is unchanged, the status is 304."""
    query = call.graph.queries.find(call.path_values["name"])
    if query.is_mutation:
        raise InputError(
            f"the stored query '{query.name}' is a mutation, which a GET request cannot run",
            reason="not a read",
            hint="send a POST request",
        )
    values = dict(call.query_values)
    target = {name: values.pop(name, None) for name in _TARGET_PARAMETERS}
    body = InvokeStoredQueryRequest(params=_parse_params(query, values), **target)
    graph = call.graph_for_read(body.branch, body.snapshot).refresh()
    etag = make_etag(graph.head.id, query.text, query.name, body.params, call.media_type)
    if matches_etag(call.headers.get("if-none-match"), etag):
        return Answer(b"", status=304, headers={"ETag": etag})
    answer = _run_read(call, query, body)
    return (
        Answer(answer.body, answer.media_type, answer.status, {"ETag": etag}) if isinstance(answer, Answer) else answer
    )


def _read_target(call: ServerCall, body: InvokeStoredQueryRequest) -> dict[str, str | None]:
    """Return the branch and snapshot from the body or the query string, which must not contradict each other."""
    target: dict[str, str | None] = {}
    for name in _TARGET_PARAMETERS:
        in_body, in_query = getattr(body, name), call.query_values.get(name)
        if in_body is not None and in_query is not None and in_body != in_query:
            raise InputError(f"`{name}` has different values in the body and the query string", reason="contradiction")
        target[name] = in_body if in_body is not None else in_query
    return target


def _run_mutation(call: ServerCall, query: ServedQuery, body: InvokeStoredQueryRequest) -> Answer:
    if body.snapshot is not None:
        raise InputError("a stored mutation cannot run on a snapshot", reason="read-only state")
    call.authorize("change", body.branch or MAIN)
    change = ChangeRequest(query=query.text, name=query.name, params=body.params, branch=body.branch)
    return run_mutation(call, query.text, query.name, change)


def _run_read(call: ServerCall, query: ServedQuery, body: InvokeStoredQueryRequest) -> AnyAnswer:
    call.authorize("read", body.branch or MAIN)
    request = QueryRequest(
        query=query.text, name=query.name, params=body.params, branch=body.branch, snapshot=body.snapshot
    )
    graph = call.graph_for_read(body.branch, body.snapshot)
    if call.media_type == JSON:
        return rows_answer(call, graph, request)
    return stream_answer(call, graph, request)


def _parse_params(query: ServedQuery, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters from a URL. Strings, dates and times are plain text, and other values are JSON."""
    kinds = {parameter.name: parameter.type for parameter in query.compiled.parameters}
    unknown = next((name for name in values if name not in kinds), None)
    if unknown is not None:
        raise InputError(
            "unknown query parameter", reason="unknown parameter", hint=f"available parameters: {', '.join(kinds)}"
        )
    params: dict[str, Any] = {}
    for name, text in values.items():
        is_text = kinds[name].scalar.value in ("String", "Date", "DateTime") and not kinds[name].is_list
        params[name] = text if is_text else _parse_json(name, text)
    return params


def _parse_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InputError(f"the query parameter '{name}' is not valid JSON", reason="invalid value") from None
