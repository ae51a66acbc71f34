"""A transaction: operations that are collected, shown to their own reads, and published as one.

Owns the list of operations. They run at once on an overlay of the state at the beginning, for the
reads inside, and again on the newest state when the transaction ends. Nothing is visible before.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from omnigraph import ids
from omnigraph.boundary import Guarded
from omnigraph.engine.mutate import (
    Operation,
    loading,
    mutation,
    open_overlay,
    overlay_snapshot,
    run_operations,
    strict_keys,
)
from omnigraph.engine.run import run_read
from omnigraph.engine.statements import Mint, Tally
from omnigraph.errors import KeyConflict, ReadSetConflict, UsageError, VersionConflict
from omnigraph.events import operation
from omnigraph.handle import on_branch
from omnigraph.history.commit import Commit
from omnigraph.history.idempotency import commit_of_key
from omnigraph.history.line import Line
from omnigraph.history.memory import Shown
from omnigraph.history.plan import Watch, WriteTxn
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.load import LoadMode, LoadOptions, parse
from omnigraph.ingest.problem import Problems
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.naming import require_text
from omnigraph.nodes import EdgeSet, NodeSet, edge_set, node_set
from omnigraph.prepared import COMPILED, Query, choose, demand, read_query
from omnigraph.receipt import Receipt, receipt_of
from omnigraph.result import Result
from omnigraph.rowtext import delete_text, edge_rows, inserting, rows_of, update_text
from omnigraph.storage.store import Store
from omnigraph.terms import Attempts, Terms, request_of, told

Wrote = Callable[[Commit | None, Watch], Commit | None]
Params = Mapping[str, Any] | None


@dataclass(slots=True)
class _Work:
    """What a transaction has collected, on the state that it began with."""

    txn: WriteTxn
    overlay: Any
    mint: Mint = field(default_factory=Mint)
    operations: list[Operation] = field(default_factory=list)
    requests: list[object] = field(default_factory=list)
    relied: set[str] = field(default_factory=set)
    shown: Snapshot | None = None
    repeats: bool = False


class Transaction(Guarded):
    """Writes that become one commit at the end of the `with` block; `receipt` tells of it.

    It belongs to the thread that began it.
    """

    def __init__(self, line: Line, terms: Terms, wrote: Wrote) -> None:
        self._line = line
        self._terms = terms
        self._wrote = wrote
        self._thread = threading.get_ident()
        self._work: _Work | None = None
        self.receipt: Receipt | None = None

    def __enter__(self) -> Self:
        if self._work is not None or self.receipt is not None:
            raise UsageError(reason="a transaction runs once")
        line = self._line
        txn = WriteTxn(line.store, line.name, line.refresh(), ids.new_ulid(), ids.now_micros())
        self._work = _Work(txn, open_overlay(txn))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        work, self._work = self._at_work(), None
        if kind is None:
            self.receipt = self._publish(work)

    def _guarded_store(self) -> Store:
        return self._line.store

    # Writing ------------------------------------------------------------------------------------

    def mutate(
        self, source: Query, /, *, name: str | None = None, params: Params = None, **values: Any
    ) -> None:
        """Run a mutation inside the transaction."""
        given = {**(params or {}), **values}
        query = demand(self._compiled(source, name, given), "mutation")
        self._at_work().relied.update(strict_keys(query))
        asked = (query.plan, told(given))
        self._add(mutation(query, given, "python"), asked)

    def insert(self, type_name: str, /, *records: Any) -> None:
        """Add entities."""
        with inserting():
            self.load({require_text(type_name, "type"): rows_of(records)}, mode="append")

    def upsert(self, type_name: str, /, *records: Any) -> None:
        """Add entities or replace those of the same id."""
        self.load({require_text(type_name, "type"): rows_of(records)}, mode="merge")

    def connect_nodes(self, edge_type: str, ends: Iterable[tuple[Any, ...]], /) -> None:
        """Add edges."""
        self.insert(edge_type, edge_rows(self._at_work().overlay.ir, edge_type, ends))

    def update(
        self,
        type_name: str,
        /,
        *,
        where: str,
        set: Mapping[str, Any],
        params: Params = None,
        **values: Any,
    ) -> None:
        """Give values to properties of nodes."""
        catalog = self._at_work().overlay.catalog
        text, given = update_text(catalog, type_name, where, set, {**(params or {}), **values})
        self.mutate(text, params=given)

    def delete(
        self, type_name: str, /, *, where: str, params: Params = None, **values: Any
    ) -> None:
        """Delete nodes, with their edges, or edges."""
        catalog = self._at_work().overlay.catalog
        text, given = delete_text(catalog, type_name, where, {**(params or {}), **values})
        self.mutate(text, params=given)

    def load(self, data: Any, *, mode: LoadMode) -> None:
        """Load records; whole types cannot be overwritten inside a transaction."""
        self._at_work()
        parsed = parse(self._line, data, mode, Problems(), LoadOptions())
        self._add(loading(parsed), request_of(mode, data))

    # Reading ------------------------------------------------------------------------------------

    def query(
        self, source: Query, /, *, name: str | None = None, params: Params = None, **values: Any
    ) -> Result:
        """Read; the writes of this transaction so far are seen."""
        given = {**(params or {}), **values}
        query = demand(self._compiled(source, name, given), "read")
        work = self._at_work()
        if work.shown is None:
            work.shown = overlay_snapshot(work.overlay)
        work.relied.update(f"{one.kind}:{one.type_name}" for one in query.operation.reads)
        answer = run_read(work.shown, query, given, mode="python")
        target = {"branch": self._line.name, "snapshot": None}
        return Result(answer.table, query_name=query.name, params=given, target=target)

    def nodes(self, type_name: str, /) -> NodeSet:
        """The nodes of a type, as this transaction sees them."""
        return node_set(self._answer, self._at_work().overlay.catalog, type_name)

    def edges(self, type_name: str, /) -> EdgeSet:
        """The edges of a type, as this transaction sees them."""
        return edge_set(self._answer, self._at_work().overlay.catalog, type_name)

    # Inside -------------------------------------------------------------------------------------

    def _answer(self, text: str, params: Mapping[str, Any]) -> Result:
        return self.query(text, params=params)

    def _at_work(self) -> _Work:
        if threading.get_ident() != self._thread:
            raise UsageError(reason="a transaction belongs to the thread that began it")
        if self._work is None:
            raise UsageError(reason="the transaction is not open: use it inside its `with` block")
        return self._work

    def _compiled(self, source: Query, name: str | None, given: Mapping[str, Any]) -> CompiledQuery:
        work = self._at_work()
        row = work.txn.base.state.schema
        asked = read_query(source, given)
        queries = COMPILED.get(asked, row.hash, lambda: work.overlay.catalog, name)
        return choose(queries, name)

    def _add(self, one: Operation, request: object) -> None:
        """Run an operation for the reads that follow, and keep it for the end."""
        work = self._at_work()
        try:
            if not work.repeats:
                one(work.overlay, Tally(), work.mint)
        except BaseException as error:
            with _noting(error):
                _step_back(work)
            work.repeats = isinstance(error, KeyConflict) and self._repeats(work)
            if not work.repeats:
                raise
        work.operations.append(one)
        work.requests.append(request)
        work.shown = None

    def _repeats(self, work: _Work) -> bool:
        """Whether this is the repetition of a transaction that landed: its rows are there."""
        key, base = self._terms.idempotency_key, work.txn.base.state
        return key is not None and commit_of_key(self._line.store, base, key) is not None

    def _publish(self, work: _Work) -> Receipt:
        seen = Shown(work.txn.base.state.tables)
        watch, attempts = seen.strict(work.relied), Attempts()
        name = self._line.name
        with operation("transaction", name) as event, on_branch(name), inserting():
            event.phase("write")
            try:
                done = run_operations(
                    self._line,
                    work.operations,
                    "transaction",
                    signature=self._terms.signature(work.requests),
                    conditions=self._terms.conditions(watch, attempts),
                    schema=work.txn.base.state.schema.hash,
                    mint=work.mint,
                )
            except VersionConflict as error:
                facts = {"expected": error.expected, "actual": error.actual}
                raise ReadSetConflict(member=error.type_key, **facts) from error
            event.retries = attempts.retries
            event.rows = sum(done.nodes.values()) + sum(done.edges.values())
            made = self._wrote(done.commit, watch)
        return replace(receipt_of(done, name, event.seconds()), commit=made)


@contextmanager
def _noting(error: BaseException) -> Iterator[None]:
    """Let what goes wrong while cleaning up be a note of the error that made it necessary."""
    try:
        yield
    except Exception as other:
        error.add_note(f"and the steps before could not be shown again: {other}")
        raise error from other


def _step_back(work: _Work) -> None:
    """The overlay without what a refused operation left in it, and the ids that it made."""
    work.overlay, work.shown = open_overlay(work.txn), None
    work.mint.restart()
    for one in work.operations:
        one(work.overlay, Tally(), work.mint)
