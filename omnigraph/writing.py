"""The writing half of a graph handle: changes, loads, exports.

Every call here ends in one publish below, or in no effect. Convenience methods compile to the same
mutations and loads, hence to the same rules.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.events import operation
from omnigraph.handle import Handle, on_branch
from omnigraph.history.memory import Shown
from omnigraph.history.plan import Watch
from omnigraph.ingest.load import LoadMode, OnError
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.naming import require_text
from omnigraph.pipeline.engine import Way, run, source_of
from omnigraph.prepared import COMPILED, Query, choose, demand, read_query
from omnigraph.receipt import LoadReport, Receipt, receipt_of, report
from omnigraph.rowtext import delete_text, edge_rows, inserting, rows_of, update_text
from omnigraph.sources import Progress, opened, teller
from omnigraph.terms import Attempts, Terms, actor_of, request_of, told

if TYPE_CHECKING:
    from omnigraph.transaction import Transaction

Answer = TypeVar("Answer")
Params = Mapping[str, Any] | None


class Writing(Handle):
    """Everything that changes a graph.

    Every write takes `branch`, `if_commit` (write only if the branch is at this commit), `message`,
    `actor`, and `idempotency_key` (a repetition gives the first commit again).
    """

    def mutate(  # noqa: PLR0913 - all but the first are named
        self,
        source: Query,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
        **values: Any,
    ) -> Receipt:
        """Run a mutation: one commit, or none when nothing matches.

        Updates and deletes are strict: they fail with a conflict when the types they touch have
        changed since this handle last showed them. Inserts are tried again inside.

        Raises the language errors, `ConstraintViolation`, `UniqueViolation`, `KeyConflict`,
        `VersionConflict`, `PreconditionFailed`, `ConcurrentCommit`, `ReadOnlyError`.
        """
        terms = Terms(if_commit, message, actor, idempotency_key)
        return self._there(branch)._mutate(source, name, {**(params or {}), **values}, terms)

    def insert(self, type_name: str, /, *records: Any, **options: Any) -> Receipt:
        """Add entities: dicts, dataclasses, or one table or frame. An existing key is an error."""
        with inserting():
            return self._put({require_text(type_name, "type"): rows_of(records)}, "append", options)

    def upsert(self, type_name: str, /, *records: Any, **options: Any) -> Receipt:
        """Add entities or replace those of the same id, whole rows at a time.

        An edge without an `id` is always a new one: give it an id, or let the schema say
        `@unique(src, dst)`, if a repetition must not double it.
        """
        return self._put({require_text(type_name, "type"): rows_of(records)}, "merge", options)

    def connect_nodes(
        self, edge_type: str, ends: Iterable[tuple[Any, ...]], /, **options: Any
    ) -> Receipt:
        """Add edges: `[("ada", "bob", {"since": "2020-01-01"})]`.

        An end is the key of its node, as Python has it: a text, a number, a date, for a key of
        several members a tuple or a dict. A node of a type without key is named by its id.
        """
        there = self._there(options.pop("branch", None))
        rows = edge_rows(there._newest().schema.ir, edge_type, ends)
        return there._put({edge_type: rows}, "append", options)

    def update(  # noqa: PLR0913 - all but the first are named
        self,
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
        **values: Any,
    ) -> Receipt:
        """Give values to properties of nodes: `update("Person", where="name = $n", set=…, n=…)`."""
        there, terms = self._there(branch), Terms(if_commit, message, actor, idempotency_key)
        catalog = there._newest().schema.ir.catalog
        text, given = update_text(catalog, type_name, where, set, {**(params or {}), **values})
        return there._mutate(text, None, given, terms)

    def delete(  # noqa: PLR0913 - all but the first are named
        self,
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
        **values: Any,
    ) -> Receipt:
        """Delete nodes, with their edges, or edges: `delete("Person", where="age > 120")`."""
        there, terms = self._there(branch), Terms(if_commit, message, actor, idempotency_key)
        catalog = there._newest().schema.ir.catalog
        text, given = delete_text(catalog, type_name, where, {**(params or {}), **values})
        return there._mutate(text, None, given, terms)

    def load(  # noqa: PLR0913 - all but the first are named
        self,
        data: Any,
        *,
        mode: LoadMode,
        branch: str | None = None,
        from_: str | None = None,
        format: Literal["ndjson", "csv", "parquet"] | None = None,
        mapping: Mapping[str, Mapping[str, str]] | None = None,
        on_error: OnError = "raise",
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
        rejects: str | PathLike[str] | None = None,
        max_errors: int | None = None,
        dry_run: bool = False,
        progress: Progress = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt | LoadReport:
        """Load NDJSON (paths, a file, bytes), records, or tables by type, as one commit.

        `mode` is "append" (existing ids are errors), "merge" (they are replaced) or "overwrite"
        (the types in the input are replaced as a whole). `from_` forks a branch that is missing.
        Edges without an `id` are new at every load: give them one, or an `idempotency_key` to the
        load, or `@unique(src, dst)` to the schema, if a repetition must not double them.
        A mapping of types may name CSV and Parquet files; `mapping` renames their columns. With
        `on_error="report"` a bad input gives a `LoadReport` of everything that is wrong with it, or
        of the first `max_errors`; `rejects` is a folder for all of it. `dry_run` only checks.

        Paths may be folders, patterns and `s3://`. `engine` is "local", in this process, "spark",
        on the session `spark` or on one of its own, or "auto": Spark from 64 MiB on, and for
        DataFrames of Spark by type.
        """
        if on_error not in ("raise", "report"):
            raise UsageError(reason=f"on_error is 'raise' or 'report', not {on_error!r}")
        way = Way(engine, spark, rejects=rejects, dry_run=dry_run, on_error=on_error)
        terms = Terms(if_commit, message, actor, idempotency_key)
        self._writable("a load")
        made = branch if from_ is not None and branch not in self._branches() else None
        there = self._forked(made, from_) if made else self._there(branch)
        try:
            bulk = source_of(data, format, mapping or {}, way)
            if hasattr(bulk, "frames"):
                way = replace(way, progress=teller(progress))
            with opened(data if bulk is None else bulk, format, mapping or {}, progress) as source:
                done = there._load(source, mode, way, terms, created=bool(made))
        except BaseException:
            self._unfork(made)
            raise
        if isinstance(done, LoadReport) or dry_run:
            self._unfork(made)
        if isinstance(done, LoadReport) and max_errors is not None:
            return done.first(max_errors)
        return done

    def retry(self, fn: Callable[[Self], Answer], *, attempts: int = 12) -> Answer:
        """Call `fn(graph)`, again after a conflict that a fresh look may solve.

        Between two attempts it waits a random time, of at most 4, 8, 16 … 500 milliseconds.
        """
        for attempt in range(1, attempts + 1):
            try:
                return fn(self)
            except OmnigraphError as error:
                if error.retryable != "fresh" or attempt == attempts:
                    raise
                self._line.pause(attempt)
                self.refresh()
        raise UsageError(reason="attempts must be at least 1")

    def transaction(
        self,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> "Transaction":
        """Several writes as one commit: `with graph.transaction() as tx: tx.insert(…)`.

        Reads inside see the writes before them. An exception leaves no effect. Whatever was read,
        updated or deleted inside must be unchanged at the end, else `ReadSetConflict`.
        """
        from omnigraph.transaction import Transaction

        there = self._there(branch)
        there._writable("a transaction")
        terms = there._signed(Terms(if_commit, message, actor, idempotency_key))
        return Transaction(there._line, terms, there._wrote)

    # Inside -------------------------------------------------------------------------------------

    def _mutate(
        self, source: Query, name: str | None, given: Mapping[str, Any], terms: Terms
    ) -> Receipt:
        from omnigraph.engine.mutate import run_write, strict_keys

        self._writable("a mutation")
        here = self.branch_name
        with (
            operation("mutate", here) as event,
            on_branch(here),
            self._store.effects.recorded() as did,
        ):
            event.phase("compile")
            query = self._write_query(source, name, given)
            watch, attempts = self._watch(strict_keys(query)), Attempts()
            terms = self._signed(terms)
            event.phase("write")
            done = run_write(
                self._line,
                query,
                given,
                signature=terms.signature((query.plan, told(given))),
                conditions=terms.conditions(watch, attempts),
                mode="python",
            )
            event.requests, event.retries = len(did), attempts.retries
            event.rows = sum(done.nodes.values()) + sum(done.edges.values())
            made = self._wrote(done.commit, watch)
        return replace(receipt_of(done, here, event.seconds(), query.name), commit=made)

    def _load(
        self,
        source: Any,
        mode: LoadMode,
        way: Way,
        terms: Terms,
        *,
        created: bool = False,
        records: bool = False,
    ) -> Receipt | LoadReport:
        self._writable("a load")
        here = self.branch_name
        with (
            operation("load", here) as event,
            on_branch(here),
            self._store.effects.recorded() as did,
        ):
            watch, attempts = self._replacing(source, mode), Attempts()
            terms = self._signed(terms)
            event.phase("write")
            asked = request_of(mode, source) if terms.idempotency_key else None
            signature, conditions = terms.signature(asked), terms.conditions(watch, attempts)
            done = run(self._line, source, mode, way, signature, conditions)
            event.requests, event.retries = len(did), attempts.retries
            event.rows = done.total
            made = self._wrote(done.commit, watch)
        if done.problems:
            return report(done.problems, done.summary.seconds)
        replayed = terms.idempotency_key is not None and _replayed(done.commit, watch)
        if records and done.commit is None:
            done = replace(done, nodes={}, edges={})
        return Receipt(
            made,
            done.nodes,
            done.edges,
            branch=here,
            branch_created=created,
            elapsed=event.seconds(),
            # A repetition has made new ids for what it then found done already.
            ids={n: c.to_pylist() for n, c in done.ids.items()} if records and not replayed else {},
            replayed=replayed,
            steps=done.summary.seconds,
            written=done.summary.bytes,
        )

    def _put(self, data: Mapping[str, Any], mode: LoadMode, options: dict[str, Any]) -> Receipt:
        there = self._there(options.pop("branch", None))
        try:
            terms = Terms(**options)
        except TypeError:
            known = "branch, if_commit, message, actor, idempotency_key"
            raise UsageError(reason=f"unknown option; there are {known}") from None
        done = there._load(data, mode, Way(), terms, records=True)
        assert isinstance(done, Receipt)  # noqa: S101 - problems are raised
        return done

    def _write_query(
        self, source: Query, name: str | None, given: Mapping[str, Any]
    ) -> CompiledQuery:
        asked = read_query(source, given)
        state = self._line.base().state
        shown = self._snapshot if self._snapshot.schema_row == state.schema else self._newest()
        catalog = lambda: shown.schema.ir.catalog  # noqa: E731 - read only when it is needed
        queries = COMPILED.get(asked, shown.schema_row.hash, catalog, name)
        return demand(choose(queries, name), "mutation")

    def _replacing(self, source: Any, mode: LoadMode) -> Watch:
        """An overwrite is strict: about the types that it names, or about all when a file will."""
        if mode != "overwrite":
            return self._watch(())
        if not isinstance(source, Mapping):
            newest = self._line.refresh().state.tables
            return Shown(newest).strict(newest)
        names = set(source)
        return self._watch(key for key in self._snapshot.tables if key.partition(":")[2] in names)

    def _signed(self, terms: Terms) -> Terms:
        return replace(terms, actor=actor_of(terms.actor) if terms.actor else self.actor)

    def _there(self, branch: str | None) -> Self:
        self._open()
        if branch is None or branch == self.branch_name:
            return self
        return self.checkout(branch)  # type: ignore[attr-defined,no-any-return]

    def _branches(self) -> Any:
        return self.branches  # type: ignore[attr-defined]

    def _forked(self, name: str, source: str | None) -> Self:
        return self._branches().create(name, from_=source)  # type: ignore[no-any-return]

    def _unfork(self, made: str | None) -> None:
        """Nothing was loaded: the branch that was made for it goes again, unless others use it."""
        if made is not None and not self._used(made):
            self._branches().delete(made)

    def _used(self, made: str) -> bool:
        """Whether somebody wrote to a branch since it was made."""
        head = self._branches().graph.checkout(made).snapshot.commit_id
        return bool(head != self._branches()[made].fork_commit)


def _replayed(commit: Any, watch: Watch) -> bool:
    return commit is not None and commit.id != watch.commit_id
