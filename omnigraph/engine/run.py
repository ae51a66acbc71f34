"""Execution of reads: binds parameters, rewrites the plan, runs it, returns a table.

The entry points of the engine for reads. A plan is rewritten once per compiled query and schema;
only the execution itself remains per call.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pyarrow as pa

from omnigraph import ids
from omnigraph.errors import ParameterError, UsageError
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.parameters import bind_parameters
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values.coerce import Mode

from .cache import Caches, shared_caches
from .context import Context
from .group import distinct, grouped
from .limits import Limits, Meter
from .operators import run_operators
from .order import Key, arrange, row_keys
from .passes import rewrite
from .project import project, result_schema
from .rank import has_scores, score
from .rows import Rows
from .stream import stream

Bound = Mapping[str, Any]
_KEPT = 512


@dataclass(frozen=True, slots=True)
class Stats:
    """What a read cost."""

    rows: int
    milliseconds: float
    peak_bytes: int

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return {
            "rows": self.rows,
            "milliseconds": self.milliseconds,
            "peak_bytes": self.peak_bytes,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a read: a table with the columns of the plan, and its cost."""

    table: pa.Table
    stats: Stats


def run_read(
    snapshot: Snapshot,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    caches: Caches | None = None,
    mode: Mode = "standard",
) -> Answer:
    """Run a compiled read on a snapshot; `params` are values as callers pass them."""
    began = perf_counter()
    what, context = start(snapshot, query, bind(query, params, mode), limits, caches)
    try:
        table = execute(context, what)
    finally:
        context.meter.leave()
    taken = (perf_counter() - began) * 1000
    return Answer(table, Stats(table.num_rows, taken, context.meter.peak))


def stream_read(
    snapshot: Snapshot,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    caches: Caches | None = None,
    mode: Mode = "standard",
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Run a compiled read in batches; return the result schema and an iterator of batches.

    Without an order, groups, a ranking or `distinct`, memory does not grow with the result, and
    rows come in storage order. Nothing runs before the first batch is requested.
    """
    what, context = start(snapshot, query, bind(query, params, mode), limits, caches)
    batches = stream(context, what, bounds(context, what), execute)
    return result_schema(context.catalog, what.columns), batches


def bind(query: CompiledQuery, params: Mapping[str, Any], mode: Mode = "standard") -> Bound:
    """Return the values of all parameters, with one timestamp for the whole request."""
    return bind_parameters(query.parameters, params, mode, now=ids.now_millis())


def start(
    snapshot: Snapshot,
    query: CompiledQuery,
    bound: Bound,
    limits: Limits | None = None,
    caches: Caches | None = None,
) -> tuple[plan.ReadPlan, Context]:
    """Return the rewritten plan of a read and the context to run it in."""
    if not isinstance(query.plan, plan.ReadPlan):
        raise UsageError(reason=f"'{query.name}' is a mutation, not a read")
    ir = snapshot.schema.ir
    meter = Meter(limits or Limits.default())
    context = Context(snapshot, ir.catalog, bound, meter, caches or shared_caches())
    return prepared(query.plan, ir), context


# Keyed by identity, since hashing a plan costs more than running a small one. Both objects are
# kept alive in the entry, so that their ids cannot be reused.
_prepared: dict[tuple[int, int], tuple[plan.ReadPlan, SchemaIR, plan.ReadPlan]] = {}


def prepared(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan after all rewrites; computed once."""
    key = (id(what), id(ir))
    found = _prepared.get(key)
    if found is None:
        if len(_prepared) >= _KEPT:
            _prepared.clear()
        found = _prepared[key] = (what, ir, rewrite(what, ir))
    return found[2]


def execute(context: Context, what: plan.ReadPlan) -> pa.Table:
    """Run a plan and return its result."""
    rows = run_operators(context, Rows.one(), what.operators)
    offset, most = bounds(context, what)
    limit = None if what.distinct else most
    if what.aggregated:
        table = grouped(context, rows, what, limit)
    else:
        table = plain(context, rows, what, limit, 0 if what.distinct else offset)
        if not what.distinct:
            return table
    if what.distinct:
        table = table.take(pa.array(distinct(table)))
    return table.slice(offset, None if most is None else most - offset)


def plain(
    context: Context, rows: Rows, what: plan.ReadPlan, most: int | None, offset: int
) -> pa.Table:
    """Return the ordered rows of an ungrouped query as result columns."""
    scored = score(context, rows, what, most) if has_scores(what) else None
    keys: list[Key] = []
    if scored is not None:
        rows, keys = scored.rows, scored.keys(what.ranking)
    keys += row_keys(context, rows, what)
    order = arrange(context, rows.count, keys, most)[offset:]
    scores = scored.columns(order) if scored is not None else None
    return project(context, rows.take(order), what.columns, scores)


def bounds(context: Context, what: plan.ReadPlan) -> tuple[int, int | None]:
    """Return how many rows to skip, and the most rows needed, including the skipped ones."""
    offset = amount(context, what.offset, "offset") or 0
    limit = amount(context, what.limit, "limit")
    return offset, None if limit is None else offset + limit


def amount(context: Context, value: plan.Value | None, word: str) -> int | None:
    """Evaluate the argument of `limit` or `offset`."""
    if value is None:
        return None
    found: int = context.constant(value)
    if found < 0:
        name = value.name if isinstance(value, plan.Parameter) else word
        wanted = f"a non-negative number for `{word}`"
        raise ParameterError(parameter=name, expected=wanted, actual=found)
    return found
