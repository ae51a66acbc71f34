"""The reading half of a graph handle: queries, streams, plans, node and edge sets.

Each call takes one snapshot, compiles (or remembers) one text, binds its parameters and hands all
of it to the engine. It never touches a table itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, overload

from omnigraph.boundary import guarded
from omnigraph.diagnostics import Source
from omnigraph.engine.limits import Limits
from omnigraph.errors import EntityNotFound, InputError
from omnigraph.events import Event, operation
from omnigraph.handle import Handle
from omnigraph.history.gone import batches_until_gone, told_when_gone
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.nodes import EdgeSet, Node, NodeSet, edge_set, node_set
from omnigraph.prepared import COMPILED, Prepared, Query, choose, demand, read_query
from omnigraph.result import Result, ResultStream
from omnigraph.rowtext import node_id
from omnigraph.sources import write_lines

Moment = str | int | datetime | timedelta
Params = Mapping[str, Any] | None


class Reading(Handle):
    """Everything that gives data and changes nothing."""

    @overload
    def query(self, source: Query, /, *, lazy: Literal[True], **options: Any) -> ResultStream: ...
    @overload
    def query(
        self,
        source: Query,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Moment | None = None,
        timeout: float | None = None,
        lazy: Literal[False] = False,
        **values: Any,
    ) -> Result: ...
    def query(  # noqa: PLR0913 - all but the first are named
        self,
        source: Query,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Moment | None = None,
        timeout: float | None = None,
        lazy: bool = False,
        **values: Any,
    ) -> Result | ResultStream:
        """Run a query on the newest state, or on another branch or moment.

        `source` is query text, a path, or a bare `match { … } return { … }`; `name` chooses among
        several queries. Parameters are keyword arguments, or `params` where a name is taken.

        Raises the language errors (`ParseError`, `TypeCheckError`, `ParameterError`),
        `QueryTimeout`, `ResourceLimitExceeded`, and `NotFound` for a branch or moment.
        """
        given = _together(params, values)
        if branch is not None or at is not None:
            there = self._elsewhere(branch, at)
            return there.query(source, name=name, params=given, timeout=timeout, lazy=lazy)  # type: ignore[call-overload,no-any-return]
        if lazy:
            return self._stream(source, name, given, timeout)
        return self._query(source, name, given, timeout)

    def stream(
        self,
        source: Query,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Moment | None = None,
        timeout: float | None = None,
        **values: Any,
    ) -> ResultStream:
        """Run a query and take its rows batch by batch, in bounded memory, of one snapshot.

        Without `order` the rows come as they are stored.
        """
        there = self._elsewhere(branch, at)
        return there._stream(source, name, _together(params, values), timeout)

    def explain(
        self,
        source: Query,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        analyze: bool = False,
        **values: Any,
    ) -> Any:
        """How a query runs: operators with estimated rows; `analyze` runs it and measures."""
        from omnigraph.engine.explain import explain

        given = _together(params, values)
        shown, query = self._compiled(source, name, given)
        return explain(shown, query, given, analyze=analyze)

    def prepare(self, source: Query, /, *, name: str | None = None) -> Prepared:
        """Check a query now, and call it like a function later."""
        _, query = self._compiled(source, name, {})
        asked = read_query(source, {})
        text = Source(asked.name, asked.text)
        chosen = query.name

        def call(params: Mapping[str, Any]) -> Any:
            if query.kind == "read":
                return self.query(text, name=chosen, params=params)
            return self.mutate(text, name=chosen, params=params)  # type: ignore[attr-defined]

        def explain(params: Mapping[str, Any], analyze: bool) -> Any:
            return self.explain(text, name=chosen, params=params, analyze=analyze)

        types = {one.name: one.type.display() for one in query.parameters}
        return Prepared(chosen, query.kind, types, query.description, call, explain)

    # Without the query language -----------------------------------------------------------------

    def nodes(self, type_name: str, /) -> NodeSet:
        """The nodes of a type or interface, as a set to filter, follow and read."""
        return node_set(self._answer, self._newest().schema.ir.catalog, type_name)

    def edges(self, type_name: str, /) -> EdgeSet:
        """The edges of a type: id, from, to and properties."""
        return edge_set(self._answer, self._newest().schema.ir.catalog, type_name)

    def node(self, type_name: str, key: Any, /) -> Node | None:
        """One node by its key, or by its id where the type has no key; None when there is none.

        The members of a composite key come as a tuple, in the order of the declaration, or as a
        mapping.
        """
        found = (
            self.nodes(type_name)
            .where(id=node_id(self._newest().schema.ir, type_name, key))
            .result()
            .one_or_none()
        )
        if found is None:
            return None
        values = dict(found)
        return Node(values.pop("id"), type_name, values)

    def __getitem__(self, wanted: tuple[str, Any]) -> Node:
        """`graph["Person", "ada"]`; a KeyError when there is no such node."""
        type_name, key = wanted
        found = self.node(type_name, key)
        if found is None:
            raise EntityNotFound(f"there is no {type_name} '{key}' here")
        return found

    # Whole graphs -------------------------------------------------------------------------------

    @overload
    def export(
        self,
        path: None = None,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Moment | None = None,
        iso_dates: bool = False,
    ) -> Iterator[bytes]: ...
    @overload
    def export(
        self,
        path: str | PathLike[str],
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Moment | None = None,
        iso_dates: bool = False,
    ) -> int: ...
    def export(
        self,
        path: str | PathLike[str] | None = None,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Moment | None = None,
        iso_dates: bool = False,
    ) -> Iterator[bytes] | int:
        """Write one snapshot as NDJSON that loads back: nodes first, ordered by id.

        With a path (.gz and .zst are packed) the file appears whole, and the number of entities is
        given; without one, the lines. A Date is the number of its day and a DateTime of its
        millisecond since 1970; with `iso_dates` they are texts, which load back as well. No cleanup
        takes what a large export reads, from its first line to its last.
        """
        from omnigraph.history.hold import while_held
        from omnigraph.ingest.export import export_lines

        there = self._elsewhere(branch, at)
        shown = there._newest()
        made = batches_until_gone(shown, export_lines(shown, types, iso_dates=iso_dates))
        lines = while_held(there._line, shown, made)
        if path is None:
            return lines
        with operation("export", there.branch_name) as event:
            event.rows = count = write_lines(Path(path), lines)
        return count

    # Inside -------------------------------------------------------------------------------------

    @guarded
    def _answer(self, text: str, params: Mapping[str, Any]) -> Result:
        return self._query(text, None, params, None)

    def _query(
        self, source: Query, name: str | None, given: Mapping[str, Any], timeout: float | None
    ) -> Result:
        from omnigraph.engine.run import run_read

        with operation("query", self.branch_name) as event:
            shown, query = self._compiled(source, name, given, event)
            demand(query, "read")
            event.phase("run")
            with told_when_gone(shown):
                answer = run_read(shown, query, given, limits=_limits(timeout), mode="python")
            event.rows = answer.table.num_rows
            self._saw(shown, query)
        return Result(
            answer.table,
            query_name=query.name,
            params=dict(given),
            target=self._target(),
            commit_id=shown.commit_id,
            elapsed=event.seconds(),
            stats=answer.stats.to_dict(),
            warnings=tuple(one.message for one in query.warnings),
        )

    def _stream(
        self, source: Query, name: str | None, given: Mapping[str, Any], timeout: float | None
    ) -> ResultStream:
        from omnigraph.engine.run import stream_read

        with operation("stream", self.branch_name) as event:
            shown, query = self._compiled(source, name, given, event)
            demand(query, "read")
            event.phase("run")
            limits = _limits(timeout)
            with told_when_gone(shown):
                schema, batches = stream_read(shown, query, given, limits=limits, mode="python")
            self._saw(shown, query)
        return ResultStream(
            schema,
            batches_until_gone(shown, batches),
            query_name=query.name,
            target=self._target(),
            commit_id=shown.commit_id,
        )

    def _compiled(
        self,
        source: Query,
        name: str | None,
        given: Mapping[str, Any],
        event: Event | None = None,
    ) -> tuple[Snapshot, CompiledQuery]:
        """The state to read, and the query compiled for its schema."""
        if event is not None:
            event.phase("state")
        shown = self._newest()
        if event is not None:
            event.phase("compile")
        asked = read_query(source, given)
        row = shown.schema_row
        queries = COMPILED.get(asked, row.hash, lambda: shown.schema.ir.catalog, name)
        return shown, choose(queries, name)

    def _elsewhere(self, branch: str | None, at: Moment | None) -> Self:
        """The handle that a call with `branch` or `at` means."""
        there: Any = self if branch is None else self.checkout(branch)  # type: ignore[attr-defined]
        found: Self = there if at is None else there.at(at)
        return found


def _together(params: Params, values: Mapping[str, Any]) -> dict[str, Any]:
    twice = [name for name in params or () if name in values]
    if twice:
        raise InputError(f"parameter ${twice[0]} is given twice", reason="given twice")
    return {**(params or {}), **values}


def _limits(timeout: float | None) -> Limits | None:
    return None if timeout is None else replace(Limits.default(), timeout=timeout)
