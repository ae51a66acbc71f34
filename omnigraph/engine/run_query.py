"""Execute read queries: bind the parameters, rewrite the plan, run it, and return the result.

This module contains the engine's entry points for reads. A plan is rewritten only once per compiled query and schema,
so that later calls only have to run it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import pyarrow as pa

from omnigraph.errors import ParameterError, UsageError
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.parameters import ParameterBinder, bind_parameters
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids
from omnigraph.values.coerce import ParameterMode
from omnigraph.values.table_key import TableKey

from .column_size import overflow_error
from .execution_context import ExecutionContext
from .operators.dispatch import run_operators
from .operators.group import distinct_rows, group_rows
from .operators.order import SortKeyFunction, row_sort_keys, sorted_positions
from .operators.project import project_rows, result_schema
from .operators.rows import Rows
from .passes import rewrite_plan
from .query_caches import QueryCaches, shared_caches
from .query_limits import QueryLimits, QueryMeter
from .result_rows import ProjectedRows, as_table
from .result_stream import stream_batches
from .search.rank import has_scores, score_rows
from .union_rows import union_table

BoundParams = Mapping[str, Any]
AnyReadPlan = plan.ReadPlan | plan.UnionPlan
_MAX_REWRITTEN_PLANS = 512


@record
class ReadStats:
    """The number of returned rows, the run time and the peak memory use of a read."""

    rows: int
    milliseconds: float
    peak_bytes: int

    def to_dict(self) -> dict[str, float]:
        """Return the statistics as a dictionary."""
        return {"rows": self.rows, "milliseconds": self.milliseconds, "peak_bytes": self.peak_bytes}


@record
class ReadOutput:
    """The result columns of a read, and statistics about the cost of the read."""

    rows: pa.Table | ProjectedRows
    stats: ReadStats

    @property
    def table(self) -> pa.Table:
        """The result as a table."""
        return as_table(self.rows)


@record(eq=False)
class PreparedRead:
    """A compiled read, together with everything that can be computed before its arguments are known."""

    query: CompiledQuery
    plan: AnyReadPlan
    catalog: Catalog
    binder: ParameterBinder
    table_keys: tuple[TableKey, ...]
    warnings: tuple[Diagnostic, ...]


def prepare_compiled(query: CompiledQuery, schema_ir: SchemaIR, mode: ParameterMode = "standard") -> PreparedRead:
    """Prepare a compiled read so that it can run repeatedly on snapshots with this schema."""
    return PreparedRead(
        query,
        rewritten_plan(_require_read_plan(query), schema_ir),
        schema_ir.catalog,
        ParameterBinder(query.parameters, mode),
        tables_read(query),
        query.warnings,
    )


def tables_read(query: CompiledQuery) -> tuple[TableKey, ...]:
    """Return the keys of the tables that a query reads."""
    return tuple(TableKey.of(read.kind, read.type_name) for read in query.operation.reads)


def run_prepared(
    snapshot: Snapshot, prepared: PreparedRead, params: Mapping[str, Any], limits: QueryLimits | None = None
) -> ReadOutput:
    """Run a prepared read on a snapshot. `params` contains the values that the caller passed."""
    bound_params = prepared.binder.bind(params, clock_and_ids.now_millis())
    meter = QueryMeter(limits or QueryLimits.default())
    context = ExecutionContext(snapshot, prepared.catalog, bound_params, meter, shared_caches())
    return _run_plan(context, prepared.plan)


def run_read(
    snapshot: Snapshot,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    limits: QueryLimits | None = None,
    caches: QueryCaches | None = None,
    mode: ParameterMode = "standard",
) -> ReadOutput:
    """Run a compiled read on a snapshot. `params` contains the values that the caller passed."""
    return run_bound_read(snapshot, query, bind_params(query, params, mode), limits=limits, caches=caches)


def run_bound_read(
    snapshot: Snapshot,
    query: CompiledQuery,
    bound_params: BoundParams,
    *,
    limits: QueryLimits | None = None,
    caches: QueryCaches | None = None,
) -> ReadOutput:
    """Run a compiled read on a snapshot with parameters that are already bound."""
    read_plan, context = prepare_read(snapshot, query, bound_params, limits, caches)
    return _run_plan(context, read_plan)


def _run_plan(context: ExecutionContext, read_plan: AnyReadPlan) -> ReadOutput:
    started_at, meter = perf_counter(), context.meter
    try:
        rows = execute_rows(context, read_plan)
    finally:
        meter.leave_gate()
    return ReadOutput(rows, ReadStats(rows.num_rows, (perf_counter() - started_at) * 1000, meter.peak_bytes))


def stream_read(
    snapshot: Snapshot,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    limits: QueryLimits | None = None,
    caches: QueryCaches | None = None,
    mode: ParameterMode = "standard",
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Run a compiled read in batches; return the result schema and an iterator of batches.

    For queries without sorting, grouping, ranking, `distinct` or unions, memory use does not grow with the result.
    The order of their rows is unspecified. The query does not start until the first batch is requested.
    """
    read_plan, context = prepare_read(snapshot, query, bind_params(query, params, mode), limits, caches)
    batches = stream_batches(context, read_plan, row_bounds(context, read_plan), execute_plan)
    return result_schema(context.catalog, read_plan.columns), batches


def bind_params(query: CompiledQuery, params: Mapping[str, Any], mode: ParameterMode = "standard") -> BoundParams:
    """Bind all parameters, and set one timestamp for all uses of the current time in the query."""
    return bind_parameters(query.parameters, params, mode, request_time=clock_and_ids.now_millis())


def prepare_read(
    snapshot: Snapshot,
    query: CompiledQuery,
    bound_params: BoundParams,
    limits: QueryLimits | None = None,
    caches: QueryCaches | None = None,
) -> tuple[AnyReadPlan, ExecutionContext]:
    """Return the rewritten plan for a read and the context to run it in."""
    read_plan, schema_ir = _require_read_plan(query), snapshot.schema.ir
    meter = QueryMeter(limits or QueryLimits.default())
    context = ExecutionContext(snapshot, schema_ir.catalog, bound_params, meter, caches or shared_caches())
    return rewritten_plan(read_plan, schema_ir), context


def _require_read_plan(query: CompiledQuery) -> AnyReadPlan:
    if isinstance(query.plan, plan.WritePlan):
        raise UsageError(reason=f"'{query.name}' is a mutation, not a read query")
    return query.plan


# Plans are keyed by object identity, because hashing a plan costs more than running a small one. Each entry keeps its
# plan and schema alive, so that their ids cannot be reused.
_rewritten_plans: dict[tuple[int, int], tuple[AnyReadPlan, SchemaIR, AnyReadPlan]] = {}


def rewritten_plan(read_plan: AnyReadPlan, schema_ir: SchemaIR) -> AnyReadPlan:
    """Return the plan after all rewrites. The result is cached for each plan and schema."""
    cache_key = (id(read_plan), id(schema_ir))
    cached_plan = _rewritten_plans.get(cache_key)
    if cached_plan is None:
        if len(_rewritten_plans) >= _MAX_REWRITTEN_PLANS:
            _rewritten_plans.clear()
        cached_plan = _rewritten_plans[cache_key] = (read_plan, schema_ir, _rewrite_parts(read_plan, schema_ir))
    return cached_plan[2]


def _rewrite_parts(read_plan: AnyReadPlan, schema_ir: SchemaIR) -> AnyReadPlan:
    if isinstance(read_plan, plan.ReadPlan):
        return rewrite_plan(read_plan, schema_ir)
    return replace(read_plan, parts=tuple(rewrite_plan(part, schema_ir) for part in read_plan.parts))


def execute_plan(context: ExecutionContext, read_plan: AnyReadPlan) -> pa.Table:
    """Run a plan and return its result as a table."""
    return as_table(execute_rows(context, read_plan))


def execute_rows(context: ExecutionContext, read_plan: AnyReadPlan) -> pa.Table | ProjectedRows:
    """Run a plan and return its result; raise `ResourceLimitExceeded` if a column is too large."""
    try:
        return _execute_rows(context, read_plan)
    except pa.ArrowInvalid as error:
        raise overflow_error(error) from error


def _execute_rows(context: ExecutionContext, read_plan: AnyReadPlan) -> pa.Table | ProjectedRows:
    if isinstance(read_plan, plan.UnionPlan):
        return union_table(context, read_plan, row_bounds(context, read_plan), execute_plan)
    rows = run_operators(context, Rows.single(), read_plan.operators)
    offset, max_rows = row_bounds(context, read_plan)
    sort_limit = None if read_plan.distinct else max_rows
    if read_plan.aggregated:
        result = group_rows(context, rows, read_plan, sort_limit)
        if offset == 0 and max_rows is None and not read_plan.distinct:
            return result
    else:
        result = ungrouped_rows(context, rows, read_plan, sort_limit, 0 if read_plan.distinct else offset)
        if not read_plan.distinct:
            return result
    table = as_table(result)
    if read_plan.distinct:
        table = table.take(pa.array(distinct_rows(table)))
    return table.slice(offset, None if max_rows is None else max_rows - offset)


def ungrouped_rows(
    context: ExecutionContext, rows: Rows, read_plan: plan.ReadPlan, max_rows: int | None, offset: int
) -> ProjectedRows:
    """Sort the rows of an ungrouped query, apply its bounds, and return its result columns."""
    if rows.count < 2 and offset == 0 and max_rows != 0 and not has_scores(read_plan):
        return project_rows(context, rows, read_plan.columns)
    scored_rows = score_rows(context, rows, read_plan, max_rows) if has_scores(read_plan) else None
    sort_keys: list[SortKeyFunction] = []
    if scored_rows is not None:
        rows, sort_keys = scored_rows.rows, scored_rows.sort_keys(read_plan.ranking)
    sort_keys += row_sort_keys(context, rows, read_plan)
    ordered_positions = sorted_positions(context, rows.count, sort_keys, max_rows)[offset:]
    score_columns = scored_rows.score_columns(ordered_positions) if scored_rows is not None else None
    return project_rows(context, rows.take(ordered_positions), read_plan.columns, score_columns)


def row_bounds(context: ExecutionContext, read_plan: AnyReadPlan) -> tuple[int, int | None]:
    """Return the offset of the first row and the end offset, which is None if there is no limit."""
    if read_plan.offset is None and read_plan.limit is None:
        return 0, None
    offset = count_argument(context, read_plan.offset, "offset") or 0
    limit = count_argument(context, read_plan.limit, "limit")
    return offset, None if limit is None else offset + limit


def count_argument(context: ExecutionContext, value: plan.Value | None, clause: str) -> int | None:
    """Return the value of a `limit` or `offset` clause, or None if the query has no such clause."""
    if value is None:
        return None
    row_count: int = context.constant(value)
    if row_count < 0:
        parameter_name = value.name if isinstance(value, plan.Parameter) else clause
        expected_text = f"a non-negative number for `{clause}`"
        raise ParameterError(parameter=parameter_name, expected=expected_text, actual=row_count)
    return row_count
