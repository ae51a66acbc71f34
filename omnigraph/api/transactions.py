"""Transactions: several writes that are published as one commit.

Each operation runs immediately on an overlay of the snapshot that the transaction started from, so that reads inside
the transaction see its changes. When the transaction ends, all operations run again on the newest state. Nothing is
visible outside the transaction before it ends.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from omnigraph.api.blob_properties import resolve_address
from omnigraph.api.blobs import Blob
from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet, edge_set, node_set
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
from omnigraph.api.error_boundary import Guarded
from omnigraph.api.handle import report_missing_branch
from omnigraph.api.log_events import log_operation
from omnigraph.api.record_writes import describe_record_write, read_record_write
from omnigraph.api.results.receipt import Receipt, build_receipt
from omnigraph.api.results.result import Result
from omnigraph.api.write_options import AttemptCounter, WriteOptions, describe_load_request, describe_plain_value
from omnigraph.engine.run_query import bind_params, run_bound_read
from omnigraph.engine.writes.generated_ids import IdGenerator
from omnigraph.engine.writes.mutate import (
    WriteOperation,
    bind_mutation,
    load_operation,
    open_overlay,
    run_operations,
)
from omnigraph.engine.writes.overlay_snapshot import overlay_snapshot
from omnigraph.engine.writes.row_dependencies import RowDependencies
from omnigraph.engine.writes.statements import WriteStats
from omnigraph.errors import KeyConflict, ReadSetConflict, UsageError, VersionConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.given_columns import Verb
from omnigraph.ingest.load import LoadMode, LoadOptions, parse_input
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.publish.idempotency import find_commit_by_key
from omnigraph.publish.read_set import ReadSet, UnchangedReads
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.pending_blobs import PendingBlobs
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from omnigraph.values.name_rules import require_text

RecordWrite = Callable[[Commit | None, UnchangedReads], Commit | None]
Params = Mapping[str, Any] | None


@dataclass(slots=True)
class _Work:
    """A transaction's operations, and the state that it started from."""

    txn: WriteTxn
    overlay: Any
    id_generator: IdGenerator
    operations: list[WriteOperation] = field(default_factory=list)
    requests: list[object] = field(default_factory=list)
    dependencies: RowDependencies = field(default_factory=RowDependencies)
    snapshot: Snapshot | None = None
    replayed: bool = False

    def current_snapshot(self) -> Snapshot:
        """Return the state that reads in the transaction see. It is rebuilt after each write."""
        if self.snapshot is None:
            self.snapshot = overlay_snapshot(self.overlay)
        return self.snapshot


class Transaction(Guarded):
    """Several writes that become one commit at the end of the `with` block. `receipt` describes the commit.

    A transaction can only be used in the thread that began it.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     with graph.transaction() as tx:
    ...         tx.insert("Person", {"name": "ada"})
    ...         tx.insert("Person", {"name": "bob"})
    ...     tx.receipt.nodes
    {'Person': 2}
    """

    def __init__(
        self, branch_state: BranchState, options: WriteOptions, record_write: RecordWrite, blobs: PendingBlobs
    ) -> None:
        self._branch_state = branch_state
        self._options = options
        self._record_write = record_write
        self._blobs = blobs
        self._thread = threading.get_ident()
        self._id_generator = IdGenerator()
        self._work: _Work | None = None
        self.receipt: Receipt | None = None

    def __enter__(self) -> Self:
        if self._work is not None or self.receipt is not None:
            raise UsageError(reason="a transaction object can be used only once")
        branch_state = self._branch_state
        txn = WriteTxn(
            branch_state.store,
            branch_state.name,
            branch_state.refresh(),
            clock_and_ids.new_ulid(),
            clock_and_ids.now_micros(),
        )
        self._work = _Work(txn, open_overlay(txn), self._id_generator)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        work, self._work = self._open_work(), None
        try:
            if kind is None:
                with self._blobs.activate():
                    self.receipt = self._publish(work)
        finally:
            self._blobs.close()

    def _guarded_store(self) -> Store:
        return self._branch_state.store

    # Writing ------------------------------------------------------------------------------------

    def mutate(self, source: QuerySource, /, *, name: str | None = None, params: Params = None, **values: Any) -> None:
        """Run a mutation on the transaction's state; see `Graph.mutate`."""
        arguments = {**(params or {}), **values}
        query = require_query_kind(self._compile(source, name, arguments), "mutation")
        mutation, work = bind_mutation(query, arguments, "python"), self._open_work()
        with self._blobs.activate():
            work.dependencies.add_mutation(mutation.statements, mutation.params, work.overlay.ir)
        self._add_operation(mutation.run, (query.plan, describe_plain_value(arguments)))

    def insert(self, type_name: str, /, *records: Any) -> None:
        """Add entities; see `Graph.insert`."""
        with suggest_upsert():
            self.load({require_text(type_name, "type"): normalize_records(records)}, mode="append")

    def upsert(self, type_name: str, /, *records: Any) -> None:
        """Add entities, or change those with the same key or id; see `Graph.upsert`."""
        self._write_partial_records(type_name, normalize_records(records), "upsert")

    def patch(self, type_name: str, /, *records: Any) -> None:
        """Change existing entities; see `Graph.patch`."""
        self._write_partial_records(type_name, normalize_records(records), "patch")

    def connect_nodes(self, edge_type: str, ends: Iterable[tuple[Any, ...]], /) -> None:
        """Add edges; see `Graph.connect_nodes`."""
        with suggest_upsert():
            self.load(build_edge_load(self._open_work().overlay.ir, edge_type, ends), mode="append")

    def update(
        self, type_name: str, /, *, where: str, set: Mapping[str, Any], params: Params = None, **values: Any
    ) -> None:
        """Set properties on the nodes or edges that match a predicate; see `Graph.update`."""
        catalog = self._open_work().overlay.catalog
        text, arguments = build_update(catalog, type_name, where, set, {**(params or {}), **values})
        with name_assignments(set):
            self.mutate(text, params=arguments)

    def delete(self, type_name: str, /, *, where: str, params: Params = None, **values: Any) -> None:
        """Delete edges, or nodes together with their edges; see `Graph.delete`."""
        catalog = self._open_work().overlay.catalog
        text, arguments = build_delete(catalog, type_name, where, {**(params or {}), **values})
        self.mutate(text, params=arguments)

    def load(self, data: Any, *, mode: LoadMode) -> None:
        """Load records in "append" or "merge" mode; see `Graph.load`. A transaction rejects other modes."""
        self._open_work()
        with self._blobs.activate():
            parsed = parse_input(self._branch_state, data, mode, ProblemCollector(), LoadOptions())
        self._add_operation(load_operation(parsed), describe_load_request(mode, data))

    def _write_partial_records(self, type_name: str, data: Any, verb: Verb) -> None:
        work = self._open_work()
        with self._blobs.activate():
            record_write = read_record_write(work.overlay.ir, type_name, data, verb)
        self._add_operation(record_write.run, describe_record_write(verb, type_name, data))
        record_write.add_dependencies(work.dependencies)

    # Reading ------------------------------------------------------------------------------------

    def query(self, source: QuerySource, /, *, name: str | None = None, params: Params = None, **values: Any) -> Result:
        """Run a query that sees this transaction's earlier writes."""
        arguments = {**(params or {}), **values}
        query = require_query_kind(self._compile(source, name, arguments), "read")
        work = self._open_work()
        bound_params = bind_params(query, arguments, "python")
        work.dependencies.add_query(query, bound_params)
        answer = run_bound_read(work.current_snapshot(), query, bound_params)
        target = {"branch": self._branch_state.name, "snapshot": None}
        return Result(answer.table, query_name=query.name, params=arguments, target=target)

    def nodes(self, type_name: str, /) -> NodeSet:
        """Return the nodes of a given type, including those written in this transaction."""
        return node_set(self._run_text, self._open_work().overlay.catalog, type_name)

    def edges(self, type_name: str, /) -> EdgeSet:
        """Return the edges of a given type, including those written in this transaction."""
        return edge_set(self._run_text, self._open_work().overlay.catalog, type_name)

    def blob(self, type_name: str, key: Any, property_name: str, /, *, kind: str | None = None) -> Blob:
        """Open a blob, including one that this transaction has written; see `Graph.blob`.

        The blob remains readable after the transaction ends. If another write changes the blob before the transaction
        ends, the transaction fails with `ReadSetConflict`.
        """
        work = self._open_work()
        address = resolve_address(work.overlay.ir, type_name, key, property_name, kind)
        work.dependencies.add_value(address.table_key, address.entity_id, property_name)
        return Blob(self._branch_state, work.current_snapshot(), address)

    # Inside -------------------------------------------------------------------------------------

    def _run_text(self, text: str, params: Mapping[str, Any]) -> Result:
        return self.query(text, params=params)

    def _open_work(self) -> _Work:
        if threading.get_ident() != self._thread:
            raise UsageError(reason="a transaction can be used only in the thread that started it")
        if self._work is None:
            raise UsageError(reason="the transaction is not open: use it inside its `with` block")
        return self._work

    def _compile(self, source: QuerySource, name: str | None, arguments: Mapping[str, Any]) -> CompiledQuery:
        work = self._open_work()
        row = work.txn.base.state.schema
        text = read_query(source, arguments)
        queries = COMPILED_QUERIES.get_or_compile(text, row.hash, lambda: work.overlay.catalog, name)
        return select_query(queries, name)

    def _add_operation(self, added: WriteOperation, request: object) -> None:
        """Run an operation on the overlay so that later reads see its changes, and record it for publishing."""
        work = self._open_work()
        try:
            if not work.replayed:
                with self._blobs.activate():
                    added(work.overlay, WriteStats(), work.id_generator)
        except BaseException as error:
            with _add_note_on_failure(error), self._blobs.activate():
                _restore_overlay(work)
            work.replayed = isinstance(error, KeyConflict) and self._is_replay(work)
            if not work.replayed:
                raise
        work.operations.append(added)
        work.requests.append(request)
        work.snapshot = None

    def _is_replay(self, work: _Work) -> bool:
        """Return whether a transaction with the same idempotency key has already been published."""
        key, base = self._options.idempotency_key, work.txn.base.state
        return key is not None and find_commit_by_key(self._branch_state.store, base, key) is not None

    def _publish(self, work: _Work) -> Receipt:
        read_set = ReadSet(work.txn.base.state.tables)
        requirement, attempts = read_set.require_unchanged(work.dependencies.row_filters()), AttemptCounter()
        name = self._branch_state.name
        with log_operation("transaction", name) as event, report_missing_branch(self._branch_state), suggest_upsert():
            event.start_phase("write")
            try:
                outcome = run_operations(
                    self._branch_state,
                    work.operations,
                    "transaction",
                    metadata=self._options.commit_metadata(work.requests),
                    conditions=self._options.requirements(requirement, attempts),
                    schema_hash=work.txn.base.state.schema.hash,
                    id_generator=work.id_generator,
                )
            except VersionConflict as error:
                same_facts = ("expected", "actual", "changed_ids", "more_changes", "commit_id", "actor")
                facts = {name: error.details.get(name) for name in same_facts}
                raise ReadSetConflict(member=error.type_key, **facts) from error
            event.retries = attempts.retries
            event.rows = sum(outcome.nodes.values()) + sum(outcome.edges.values())
            commit = self._record_write(outcome.commit, requirement)
        return replace(build_receipt(outcome, name, event.elapsed_seconds()), commit=commit)


def reuse_ids(transaction: Transaction, earlier_ids: Iterable[str]) -> None:
    """Use these ids, which an earlier run generated, for the rows that a new transaction's mutations insert."""
    transaction._id_generator = IdGenerator(earlier_ids)


def generated_ids(transaction: Transaction) -> tuple[str, ...]:
    """Return the ids that a transaction's mutations generated, in the order in which they were generated."""
    return transaction._id_generator.issued_ids


@contextmanager
def _add_note_on_failure(error: BaseException) -> Iterator[None]:
    """Attach a cleanup error as a note to the error that caused the cleanup."""
    try:
        yield
    except Exception as other:
        error.add_note(f"the transaction's earlier changes could not be reapplied: {other}")
        raise error from other


def _restore_overlay(work: _Work) -> None:
    """Rebuild the overlay without the rows and ids of a rejected operation."""
    work.overlay, work.snapshot = open_overlay(work.txn), None
    work.id_generator.restart()
    for applied in work.operations:
        applied(work.overlay, WriteStats(), work.id_generator)
