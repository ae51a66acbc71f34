"""Queries, streams, plans, and node and edge sets.

Each function takes one snapshot from a handle, compiles the query text (or reuses a compiled query), and passes the
snapshot and the compiled query to the engine. No function opens a table itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.api.builders.prepared_queries import (
    COMPILED_QUERIES,
    Prepared,
    QuerySource,
    read_query,
    require_query_kind,
    select_query,
)
from omnigraph.api.builders.prepared_reads import PREPARED_READS
from omnigraph.api.error_boundary import guarded
from omnigraph.api.handle import Handle
from omnigraph.api.log_events import OperationEvent, log_operation
from omnigraph.api.results.result import Result, ResultStream
from omnigraph.engine.query_limits import QueryLimits
from omnigraph.errors import EntityNotFound, InputError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.history.missing_files import explain_missing_batches, explain_missing_files
from omnigraph.history.revisions import Revision
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.values.naive_times import naive_times_as_utc
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet
    from omnigraph.api.graph import Graph
    from omnigraph.api.results.node import Node

Params = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class QueryCall:
    """Query text, the name of a query in it, and the arguments for one call."""

    source: QuerySource
    name: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    assume_utc: bool = False

    @property
    def limits(self) -> QueryLimits | None:
        """The limits for the engine, or None to use the defaults."""
        return None if self.timeout is None else replace(QueryLimits.default(), timeout=self.timeout)


def combine_arguments(params: Params, values: Mapping[str, Any]) -> dict[str, Any]:
    """Combine a query's arguments from `params` and from keyword arguments.

    >>> combine_arguments({"name": "ada"}, {"limit": 3})
    {'name': 'ada', 'limit': 3}
    """
    if params and values:
        repeated = [name for name in params if name in values]
        if repeated:
            raise InputError(f"parameter ${repeated[0]} is specified twice", reason="duplicate parameter")
    return {**(params or {}), **values}


def stream(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    source: QuerySource,
    /,
    *,
    name: str | None = None,
    params: Params = None,
    branch: str | None = None,
    at: Revision | None = None,
    timeout: float | None = None,
    assume_utc: bool = False,
    **values: Any,
) -> ResultStream:
    """Run a query on one snapshot and read its rows one batch at a time, in bounded memory.

    If the query has no `order`, the order of the rows is unspecified. If `assume_utc` is true, parameter values without
    a time zone are assumed to be in UTC.
    """
    call = QueryCall(source, name, combine_arguments(params, values), timeout, assume_utc)
    return stream_query(handle.for_read(branch, at), call)


def explain(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    source: QuerySource,
    /,
    *,
    name: str | None = None,
    params: Params = None,
    branch: str | None = None,
    at: Revision | None = None,
    analyze: bool = False,
    **values: Any,
) -> Any:
    """Return a query's plan with estimated row counts. If `analyze` is true, also run the query and measure it.

    `branch` and `at` select the commit, as in `graph.query`.
    """
    from omnigraph.engine.explain import explain as explain_plan

    arguments = combine_arguments(params, values)
    snapshot, query = _compile(handle.for_read(branch, at), QueryCall(source, name, arguments))
    return explain_plan(snapshot, query, arguments, analyze=analyze)


def nodes(handle: Handle, type_name: str, /) -> "NodeSet":
    """Return the nodes of a given type or interface, as a set that can be filtered, traversed and read."""
    from omnigraph.api.builders.entity_sets import node_set

    catalog = handle.latest_snapshot().schema.ir.catalog
    return node_set(partial(_run_text, handle), catalog, type_name)


def edges(handle: Handle, type_name: str, /) -> "EdgeSet":
    """Return the edges of a given type, with their ids, endpoints and properties."""
    from omnigraph.api.builders.entity_sets import edge_set

    catalog = handle.latest_snapshot().schema.ir.catalog
    return edge_set(partial(_run_text, handle), catalog, type_name)


def node(handle: Handle, type_name: str, key: Any, /) -> "Node | None":
    """Return a node by key, or by id if the type has no key. Return None if there is no such node.

    Pass a composite key as a mapping, or as a tuple in the order of the `@key(...)` in the schema.
    """
    from omnigraph.api.builders.mutation_text import resolve_node_id
    from omnigraph.api.results.node import Node

    candidates = nodes(handle, type_name)
    key_id = resolve_node_id(handle.latest_snapshot().schema.ir, type_name, key)
    row = candidates.where(id=key_id).result().one_or_none()
    if row is None:
        return None
    values = dict(row)
    return Node(values.pop("id"), type_name, values)


def table(handle: Handle, name: str, *, kind: str | None = None) -> Any:
    """Return a type's pinned Lance dataset. A node type takes precedence over an edge type with the same name."""
    from omnigraph.lang.schema.type_names import resolve_type

    handle.require_open()
    snapshot = handle.snapshot
    entity_type = resolve_type(snapshot.schema.ir.catalog, name, kind)
    return snapshot.table(TableKey.of(entity_type.kind, name)).dataset


def run_query(handle: Handle, call: QueryCall) -> Result:
    """Run a query and return all of its rows."""
    from omnigraph.engine.run_query import run_prepared

    with log_operation("query", handle.branch_name) as event:
        event.start_phase("state")
        snapshot = handle.latest_snapshot()
        event.start_phase("compile")
        prepared = PREPARED_READS.get_or_prepare(snapshot, call.source, call.name, call.arguments)
        event.start_phase("run")
        run = naive_times_as_utc(True)(run_prepared) if call.assume_utc else run_prepared
        try:
            answer = run(snapshot, prepared, call.arguments, call.limits)
        except BaseException:
            with explain_missing_files(snapshot):
                raise
        event.rows = answer.rows.num_rows
        handle.record_read(snapshot, prepared.table_keys)
    return Result(
        answer.rows,
        query_name=prepared.query.name,
        params=dict(call.arguments),
        target=handle.result_target(),
        commit_id=snapshot.commit_id,
        elapsed=event.elapsed_seconds(),
        stats=answer.stats.to_dict(),
        warnings=tuple(warning.message for warning in prepared.warnings),
        diagnostics=prepared.warnings,
    )


def stream_query(handle: Handle, call: QueryCall) -> ResultStream:
    """Run a query and return its rows as a stream of batches."""
    from omnigraph.engine.run_query import stream_read, tables_read
    from omnigraph.publish.read_lease import protect_slow_read

    with log_operation("stream", handle.branch_name) as event:
        snapshot, query = _compile_read(handle, call, event)
        with explain_missing_files(snapshot), naive_times_as_utc(call.assume_utc):
            schema, batches = stream_read(snapshot, query, call.arguments, limits=call.limits, mode="python")
        handle.record_read(snapshot, tables_read(query))
    return ResultStream(
        schema,
        protect_slow_read(handle.branch_state, snapshot, explain_missing_batches(snapshot, batches)),
        query_name=query.name,
        target=handle.result_target(),
        commit_id=snapshot.commit_id,
    )


def prepare_query(graph: "Graph", handle: Handle, source: QuerySource, name: str | None) -> Prepared:
    """Check a query now, and return a `Prepared` object that runs it on the graph."""
    _, query = _compile(handle, QueryCall(source, name))
    query_text = read_query(source, {})
    text, query_name = SourceText(query_text.source_name, query_text.text), query.name

    def call(params: Mapping[str, Any]) -> Any:
        if query.kind == "read":
            return graph.query(text, name=query_name, params=params)
        return graph.mutate(text, name=query_name, params=params)

    def explain(params: Mapping[str, Any], analyze: bool) -> Any:
        return graph.explain(text, name=query_name, params=params, analyze=analyze)

    types = {parameter.name: parameter.type.display() for parameter in query.parameters}
    return Prepared(query_name, query.kind, types, query.description, call, explain)


def require_node(handle: Handle, type_name: str, key: Any) -> "Node":
    """Return a node by key. Raise `EntityNotFound`, which is a `KeyError`, if there is no such node."""
    existing = node(handle, type_name, key)
    if existing is None:
        raise EntityNotFound(f"no {type_name} '{key}' found")
    return existing


@guarded
def _run_text(handle: Handle, text: str, arguments: Mapping[str, Any]) -> Result:
    return run_query(handle, QueryCall(text, None, arguments))


def _compile_read(handle: Handle, call: QueryCall, event: OperationEvent) -> tuple[Snapshot, CompiledQuery]:
    """Return the snapshot to read and the compiled query. Raise an error if the query is a mutation."""
    event.start_phase("state")
    snapshot = handle.latest_snapshot()
    event.start_phase("compile")
    query = require_query_kind(_compile_for(snapshot, call), "read")
    event.start_phase("run")
    return snapshot, query


def _compile(handle: Handle, call: QueryCall) -> tuple[Snapshot, CompiledQuery]:
    snapshot = handle.latest_snapshot()
    return snapshot, _compile_for(snapshot, call)


def _compile_for(snapshot: Snapshot, call: QueryCall) -> CompiledQuery:
    text = read_query(call.source, call.arguments)
    schema_hash = snapshot.schema_row.hash
    queries = COMPILED_QUERIES.get_or_compile(text, schema_hash, lambda: snapshot.schema.ir.catalog, call.name)
    return select_query(queries, call.name)
