"""Mutations and record writes. Each call makes one commit or has no effect.

The convenience methods are translated to mutations and loads, so the same rules apply to all writes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from omnigraph.api.builders.mutation_text import (
    build_delete,
    build_edge_load,
    build_update,
    name_assignments,
    normalize_records,
    suggest_upsert,
)
from omnigraph.api.builders.prepared_queries import (
    COMPILED_QUERIES,
    QuerySource,
    read_query,
    require_query_kind,
    select_query,
)
from omnigraph.api.conflict_retries import retry_call
from omnigraph.api.handle import Handle, report_missing_branch
from omnigraph.api.log_events import log_operation
from omnigraph.api.queries import Params, QueryCall
from omnigraph.api.record_writes import write_partial_records
from omnigraph.api.results.receipt import Receipt, build_receipt
from omnigraph.api.write_options import AttemptCounter, WriteOptions, describe_plain_value
from omnigraph.errors import UsageError
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values.naive_times import naive_times_as_utc
from omnigraph.values.name_rules import require_text

if TYPE_CHECKING:
    from omnigraph.api.transactions import Transaction
    from omnigraph.ingest.load import LoadMode

Answer = TypeVar("Answer")


class WriteKeywords(TypedDict, total=False):
    """The options that every write accepts.

    `branch` selects a branch other than the handle's own. If `if_commit` is given, the write succeeds only if the
    branch is at this commit. Repeating an `idempotency_key` returns the first commit again.
    """

    branch: str | None
    if_commit: str | None
    message: str | None
    actor: str | None
    idempotency_key: str | None


class RecordKeywords(WriteKeywords, total=False):
    """The options for writing records. If `assume_utc` is true, times without a time zone are assumed to be in UTC."""

    assume_utc: bool


def mutate(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    source: QuerySource,
    /,
    *,
    name: str | None = None,
    params: Params = None,
    branch: str | None = None,
    if_commit: str | None = None,
    message: str | None = None,
    actor: str | None = None,
    idempotency_key: str | None = None,
    assume_utc: bool = False,
    **values: Any,
) -> Receipt:
    """Run a mutation in one commit. If nothing matches, no commit is made.

    Every write accepts `branch`, `if_commit` (write only if the branch is at this commit), `message`, `actor`, and
    `idempotency_key` (a repeated write returns the first commit again). If `assume_utc` is true, values without a time
    zone are assumed to be in UTC. Updates, upserts, patches and deletes are strict: they fail with a conflict if a
    value that they read or write has changed since the entity was last read through this graph, or if the predicate no
    longer matches the same entities. All other conflicts are retried internally.

    Raises a language error if the query is invalid, and `ConstraintViolation`, `UniqueViolation`, `KeyConflict`,
    `EntityNotFound`, `StatementConflict`, `VersionConflict`, `PreconditionFailed`, `ConcurrentCommit` or
    `ReadOnlyError`.
    """
    call = QueryCall(source, name, {**(params or {}), **values}, assume_utc=assume_utc)
    write_options = WriteOptions(if_commit, message, actor, idempotency_key)
    return run_mutation(handle.for_branch(branch), call, write_options)


def insert(handle: Handle, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt:
    """Add entities from dicts, dataclasses, or a single table or frame. An existing key is an error."""
    with suggest_upsert():
        rows = {require_text(type_name, "type"): normalize_records(records)}
        return write_records(handle, rows, "append", options)


def upsert(handle: Handle, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt:
    """Add entities, or update those with the same key or `id`.

    An existing entity keeps the properties that its record omits, and a property whose value is None becomes null. To
    replace whole entities, use `load(…, mode="merge")`. Like an update, an upsert fails with a conflict if a value that
    it sets has changed since that value was last read through this graph. If an edge type has no `@key`, every record
    without an `id` adds a new edge. To keep a repeated call from duplicating edges, declare `@key(src, dst)` in the
    schema or give the edges ids.
    """
    target = handle.for_branch(options.get("branch"))
    with naive_times_as_utc(options.get("assume_utc", False)):
        return write_partial_records(
            target, type_name, normalize_records(records), "upsert", _write_options_of(options)
        )


def patch(handle: Handle, type_name: str, /, *records: Any, **options: Unpack[RecordKeywords]) -> Receipt:
    """Change existing entities, as in `patch("Person", {"name": "ann", "age": 31})`.

    Each record identifies its entity by its complete key or by `id`, and contains the properties to change. The records
    can have the same forms as in `insert`. Raises `EntityNotFound` if an entity does not exist, and `VersionConflict`
    if a value that the patch sets has changed since that value was last read through this graph.
    """
    target = handle.for_branch(options.get("branch"))
    with naive_times_as_utc(options.get("assume_utc", False)):
        return write_partial_records(target, type_name, normalize_records(records), "patch", _write_options_of(options))


def connect_nodes(
    handle: Handle, edge_type: str, ends: Iterable[tuple[Any, ...]], /, **options: Unpack[RecordKeywords]
) -> Receipt:
    """Add edges, given as tuples such as `("ada", "bob", {"since": "2020-01-01"})`.

    An endpoint is its node's key as a Python value: a string, a number or a date, or a tuple or dict for a composite
    key. A tuple has the order of the `@key(...)` in the schema. A node whose type has no key is identified by its id.
    """
    target = handle.for_branch(options.get("branch"))
    with naive_times_as_utc(options.get("assume_utc", False)):  # a key may contain a time
        edges = build_edge_load(target.latest_snapshot().schema.ir, edge_type, ends)
    return write_records(target, edges, "append", options)


def update(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    type_name: str,
    /,
    *,
    where: str,
    set: Mapping[str, Any],
    params: Params = None,
    branch: str | None = None,
    if_commit: str | None = None,
    message: str | None = None,
    actor: str | None = None,
    idempotency_key: str | None = None,
    assume_utc: bool = False,
    **values: Any,
) -> Receipt:
    """Set properties on nodes or edges, as in `update("Person", where="name = $n", set=…, n=…)`.

    Keys and edge endpoints cannot be changed.
    """
    target = handle.for_branch(branch)
    write_options = WriteOptions(if_commit, message, actor, idempotency_key)
    catalog, arguments = target.latest_snapshot().schema.ir.catalog, {**(params or {}), **values}
    text, parameters = build_update(catalog, type_name, where, set, arguments)
    with name_assignments(set):
        return run_mutation(target, QueryCall(text, None, parameters, assume_utc=assume_utc), write_options)


def delete(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    type_name: str,
    /,
    *,
    where: str,
    params: Params = None,
    branch: str | None = None,
    if_commit: str | None = None,
    message: str | None = None,
    actor: str | None = None,
    idempotency_key: str | None = None,
    assume_utc: bool = False,
    **values: Any,
) -> Receipt:
    """Delete edges, or nodes together with their edges, as in `delete("Person", where="age > 120")`."""
    target = handle.for_branch(branch)
    write_options = WriteOptions(if_commit, message, actor, idempotency_key)
    catalog, arguments = target.latest_snapshot().schema.ir.catalog, {**(params or {}), **values}
    text, parameters = build_delete(catalog, type_name, where, arguments)
    return run_mutation(target, QueryCall(text, None, parameters, assume_utc=assume_utc), write_options)


def transaction(
    handle: Handle,
    *,
    branch: str | None = None,
    if_commit: str | None = None,
    message: str | None = None,
    actor: str | None = None,
    idempotency_key: str | None = None,
) -> "Transaction":
    """Combine several writes into one commit, as in `with graph.transaction() as tx: tx.insert(…)`.

    Reads inside the transaction see its earlier writes. If the block raises an exception, the graph is unchanged. If
    anything that the transaction read, updated or deleted has changed by the time it ends, `ReadSetConflict` is raised.
    Changes to other nodes of the same types do not matter, unless the transaction traversed, searched or ranked these
    types.
    """
    from omnigraph.api.transactions import Transaction

    target = handle.for_branch(branch)
    target.require_writable("starting a transaction")
    write_options = target.with_actor(WriteOptions(if_commit, message, actor, idempotency_key))
    return Transaction(
        target.branch_state, write_options, target.record_write, target.new_pending_blobs(copies_files=True)
    )


def run_mutation(handle: Handle, call: QueryCall, write_options: WriteOptions) -> Receipt:
    """Run a mutation in one commit. If nothing matches, no commit is made."""
    from omnigraph.engine.writes.mutate import bind_mutation, run_operations

    handle.require_writable("running a mutation")
    branch = handle.branch_name
    with (
        log_operation("mutate", branch) as event,
        report_missing_branch(handle.branch_state),
        handle.store.effects.recording() as requests,
        handle.accept_blobs(),
    ):
        event.start_phase("compile")
        query, ir = _compile_mutation(handle, call)
        with naive_times_as_utc(call.assume_utc):
            mutation = bind_mutation(query, call.arguments, "python")
        requirement, attempts = handle.require_unchanged(mutation.row_filters(ir)), AttemptCounter()
        write_options = handle.with_actor(write_options)
        event.start_phase("write")
        outcome = run_operations(
            handle.branch_state,
            [mutation.run],
            "mutate",
            metadata=write_options.commit_metadata((query.plan, describe_plain_value(call.arguments))),
            conditions=write_options.requirements(requirement, attempts),
        )
        event.requests, event.retries = len(requests), attempts.retries
        event.rows = sum(outcome.nodes.values()) + sum(outcome.edges.values())
        commit = handle.record_write(outcome.commit, requirement)
    return replace(build_receipt(outcome, branch, event.elapsed_seconds(), query.name), commit=commit)


def write_records(handle: Handle, records: Any, mode: "LoadMode", options: RecordKeywords) -> Receipt:
    """Write records that are grouped by type or have an envelope, with the caller's options."""
    from omnigraph.api.load_routing import EngineOptions
    from omnigraph.api.loads import load_source

    target, write_options = handle.for_branch(options.get("branch")), _write_options_of(options)
    with naive_times_as_utc(options.get("assume_utc", False)):
        receipt = load_source(target, records, mode, EngineOptions(), write_options, records=True)
    assert isinstance(receipt, Receipt)  # noqa: S101 - problems are raised
    return receipt


def retry_on_conflict(handle: Handle, call: Callable[[], Answer], attempts: int) -> Answer:
    """Call a function again after each conflict that a refreshed handle may resolve."""
    return retry_call(call, handle.pause_before_retry, attempts)


def _write_options_of(options: RecordKeywords) -> WriteOptions:
    other_names = ("branch", "assume_utc")
    remaining: dict[str, Any] = {name: value for name, value in options.items() if name not in other_names}
    try:
        return WriteOptions(**remaining)
    except TypeError:
        names = "branch, if_commit, message, actor, idempotency_key, assume_utc"
        raise UsageError(reason=f"unknown option; expected one of {names}") from None


def _compile_mutation(handle: Handle, call: QueryCall) -> tuple[CompiledQuery, SchemaIR]:
    text = read_query(call.source, call.arguments)
    state, snapshot = handle.branch_state.last_known().state, handle.snapshot
    if snapshot.schema_row != state.schema:
        snapshot = handle.latest_snapshot()
    schema_hash = snapshot.schema_row.hash
    queries = COMPILED_QUERIES.get_or_compile(text, schema_hash, lambda: snapshot.schema.ir.catalog, call.name)
    return require_query_kind(select_query(queries, call.name), "mutation"), snapshot.schema.ir
