"""Mutations and record writes for a graph on a server. Each call is one request, and makes one commit or has no effect.

Every write has an idempotency key, so that it can be sent again if the response is lost. If all attempts fail, the
error's `effect` indicates whether the write may have been applied.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from omnigraph.api.builders.mutation_text import (
    build_delete,
    build_update,
    name_assignments,
    normalize_records,
    suggest_upsert,
)
from omnigraph.api.queries import QueryCall
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import ResourceLimitExceeded, UsageError
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values import clock_and_ids
from omnigraph.values.naive_times import naive_times_as_utc
from omnigraph.values.name_rules import require_text, strip_name
from omnigraph.values.option_text import check_option_text

from .answers import Document, read_receipt
from .edge_tuples import encode_edges
from .handle import RemoteHandle
from .load_limits import REQUEST_RESOURCE
from .property_values import (
    PropertyTypes,
    encode_typed_records,
    record_types,
)
from .query_requests import build_query_body, read_source, with_source

_LOAD_MODES = {"insert": "append", "connect": "append", "patch": "patch"}
_RECORD_OPTIONS = ("branch", "if_commit", "message", "actor", "idempotency_key", "assume_utc")


def run_mutation(handle: RemoteHandle, call: QueryCall, branch: str | None, options: WriteOptions) -> Receipt:
    """Run a mutation in one commit."""
    text = read_source(call.source, call.arguments)
    with naive_times_as_utc(call.assume_utc):
        body = build_query_body(text, call.name, call.arguments) | {"assume_utc": call.assume_utc}
    with with_source(text):
        return send_write(handle, ("mutate",), body, branch, options, action="running a mutation")


def update_entities(  # noqa: PLR0913, PLR0917 - the options of one public method
    handle: RemoteHandle,
    type_name: str,
    where: str,
    new_values: Mapping[str, Any],
    call: QueryCall,
    branch: str | None,
    options: WriteOptions,
) -> Receipt:
    """Set properties on the entities that match a predicate."""
    catalog = handle.for_read(branch, None).schema_ir().catalog
    text, parameters = build_update(catalog, type_name, where, new_values, call.arguments)
    with name_assignments(new_values):
        return run_mutation(handle, QueryCall(text, None, parameters, assume_utc=call.assume_utc), branch, options)


def delete_entities(
    handle: RemoteHandle, type_name: str, where: str, call: QueryCall, branch: str | None, options: WriteOptions
) -> Receipt:
    """Delete the entities that match a predicate."""
    catalog = handle.for_read(branch, None).schema_ir().catalog
    text, parameters = build_delete(catalog, type_name, where, call.arguments)
    return run_mutation(handle, QueryCall(text, None, parameters, assume_utc=call.assume_utc), branch, options)


def write_records(
    handle: RemoteHandle, verb: str, type_name: str, records: tuple[Any, ...], options: Mapping[str, Any]
) -> Receipt:
    """Insert, upsert or patch records of one type."""

    @cache
    def find_types() -> PropertyTypes:
        catalog = _read_ir(handle, options).catalog
        return record_types(catalog.node(type_name) or catalog.edge(type_name))

    require_text(type_name, "type")
    with suggest_upsert(), naive_times_as_utc(options.get("assume_utc", False)):
        encoded = encode_typed_records(find_types, normalize_records(records))
        return _send_records(handle, verb, type_name, encoded, options)


def connect_nodes(
    handle: RemoteHandle, edge_type: str, ends: Iterable[tuple[Any, ...]], options: Mapping[str, Any]
) -> Receipt:
    """Insert edges between nodes."""
    require_text(edge_type, "type")
    with naive_times_as_utc(options.get("assume_utc", False)):
        edges = encode_edges(lambda: _read_ir(handle, options), edge_type, ends)
        return _send_records(handle, "connect", edge_type, edges, options)


def _read_ir(handle: RemoteHandle, options: Mapping[str, Any]) -> SchemaIR:
    return handle.for_read(options.get("branch"), None).schema_ir()


def _send_records(
    handle: RemoteHandle, verb: str, type_name: str, records: list[Any], options: Mapping[str, Any]
) -> Receipt:
    unknown = next((name for name in options if name not in _RECORD_OPTIONS), None)
    if unknown is not None:
        raise UsageError(reason=f"unknown option; expected one of {', '.join(_RECORD_OPTIONS)}")
    body = {
        "verb": verb,
        "type": require_text(type_name, "type"),
        "records": records,
        "assume_utc": options.get("assume_utc", False),
    }
    write_options = WriteOptions(*(options.get(name) for name in _RECORD_OPTIONS[1:5]))
    with _suggest_load(verb, type_name):
        return send_write(handle, ("records",), body, options.get("branch"), write_options, action="loading data")


@contextmanager
def _suggest_load(verb: str, type_name: str) -> Iterator[None]:
    """Add a hint to the error if the records exceed the limit for a request.

    For an upsert, the hint does not suggest a load, because no load mode has the same effect.
    """
    try:
        yield
    except ResourceLimitExceeded as error:
        if error.resource == REQUEST_RESOURCE:
            mode = _LOAD_MODES.get(verb)
            call = f'graph.load({{"{type_name}": …}}, mode="{mode}")'
            load = "" if mode is None else f", or use {call}, which sends large input in parts"
            error.hint = f"write fewer records at once{load}"
        raise


def send_write(
    handle: RemoteHandle,
    segments: tuple[str, ...],
    body: Document,
    branch: str | None,
    options: WriteOptions,
    *,
    action: str,
) -> Receipt:
    """Send a write with an idempotency key, and return its receipt."""
    started = clock_and_ids.monotonic()
    document, is_replay = post_write(handle, segments, body, branch, options, action=action)
    return read_receipt(document, elapsed=clock_and_ids.monotonic() - started, replayed=is_replay)


def post_write(
    handle: RemoteHandle,
    segments: tuple[str, ...],
    body: Document,
    branch: str | None,
    options: WriteOptions,
    *,
    action: str,
) -> tuple[Document, bool]:
    """Send a write. Return the response, and whether the caller's own key belongs to an earlier write."""
    handle.require_writable(action)
    check_write_options(handle, options)
    members = {**body, "branch": write_branch(handle, branch), "message": options.message}
    headers = {"Idempotency-Key": options.idempotency_key or clock_and_ids.new_ulid()}
    reply = handle.exchange.fetch("POST", segments, {}, json_body=members, headers=headers, condition=options.if_commit)
    document: Document = reply.json()
    return document, "Idempotent-Replay" in reply.headers and options.idempotency_key is not None


def write_branch(handle: RemoteHandle, branch: str | None) -> str:
    """Return the name of the branch that a write changes."""
    return handle.branch_name if branch is None else strip_name(branch)


def check_write_options(handle: RemoteHandle, options: WriteOptions) -> None:
    """Raise an error for options that cannot be sent."""
    for option_name in ("if_commit", "message", "idempotency_key"):
        check_option_text(getattr(options, option_name), option_name)
    handle.reject_actor(options.actor)
