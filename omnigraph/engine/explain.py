"""Query plans as shown by `explain`: operators with estimated row counts and, with `analyze`, measurements.

Estimates are based only on table row counts and can be far off. With `analyze`, the query runs, and the row count and
time of each operator are measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import pyarrow.compute as pc

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.print_plan import operator_text, predicate_text, value_text
from omnigraph.storage.column_index import indexes_used_by
from omnigraph.values.coerce import ParameterMode
from omnigraph.values.table_key import TableKey

from .adjacency.neighbors import may_probe
from .estimate import estimate_rows
from .execution_context import ExecutionContext, OperatorStats
from .operators.scan import plan_text_lookup, split_filters
from .physical_operators import (
    DistinctExpand,
    DistinctValueScan,
    DropVariables,
    EdgeExists,
    KeyScan,
    NoNeighbor,
    WeightByDegree,
)
from .query_limits import QueryLimits
from .run_query import bind_params, execute_plan, prepare_read
from .search.nearest import vector_index_name

_WALK_LABELS = {NoNeighbor: "no match", DistinctExpand: "distinct targets", WeightByDegree: "count only"}
_ENDPOINT_COLUMNS = {"out": ("src",), "in": ("dst",), "both": ("src", "dst")}


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step in a plan: its description, its estimated row count and, if the query was run, its measurements."""

    depth: int
    description: str
    estimated_rows: int
    stats: OperatorStats | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the step as a JSON object, which includes measurements only with `analyze`."""
        members: dict[str, Any] = {"depth": self.depth, "operator": self.description}
        members["estimated_rows"] = self.estimated_rows
        if self.stats is not None:
            members["rows"] = self.stats.rows
            members["milliseconds"] = round(self.stats.milliseconds, 3)
        return members


@dataclass(frozen=True, slots=True, repr=False)
class ExplainedPlan:
    """The execution plan for a query. Its string form is a table of steps."""

    name: str
    steps: tuple[ExplainedStep, ...]
    rows: int | None = None
    milliseconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON object."""
        members: dict[str, Any] = {"query_name": self.name}
        members["plan"] = [step.to_json() for step in self.steps]
        if self.rows is not None and self.milliseconds is not None:
            members["row_count"] = self.rows
            members["milliseconds"] = round(self.milliseconds, 3)
        return members

    @property
    def headline(self) -> str:
        """The query name and, with `analyze`, the row count and the elapsed time."""
        if self.rows is None or self.milliseconds is None:
            return f"plan for {self.name} (not executed)"
        return f"plan for {self.name}: {self.rows} row{'s' * (self.rows != 1)} in {self.milliseconds:.1f} ms"

    def __repr__(self) -> str:
        return f"<{self.headline}>\n{self}"

    def _repr_html_(self) -> str:
        from .explain_card import explain_card

        return explain_card(self)

    def __str__(self) -> str:
        """Return the plan as a text table."""
        header = ["operator", "estimated rows"]
        header += ["rows", "ms"] if self.rows is not None else []
        table_rows = [header, *(_table_cells(step, self.rows is not None) for step in self.steps)]
        widths = [
            max(len(table_row[column_number]) for table_row in table_rows) for column_number in range(len(header))
        ]
        return "\n".join(_align_cells(table_row, widths) for table_row in table_rows)


def explain(
    snapshot: Snapshot,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    analyze: bool = False,
    limits: QueryLimits | None = None,
    mode: ParameterMode = "python",
) -> ExplainedPlan:
    """Return the plan for a read query.

    With `analyze`, also run the query. All of its parameters must then have values.
    """
    bound_params = bind_params(query, params, mode) if analyze else {}
    read_plan, context = prepare_read(snapshot, query, bound_params, limits)
    if not analyze:
        return ExplainedPlan(query.name, tuple(_explain_steps(context, read_plan)))
    context.trace = {}
    started_at = perf_counter()
    try:
        result_table = execute_plan(context, read_plan)
    finally:
        context.meter.leave_gate()
    elapsed_millis = (perf_counter() - started_at) * 1000
    return ExplainedPlan(query.name, tuple(_explain_steps(context, read_plan)), result_table.num_rows, elapsed_millis)


def _explain_steps(context: ExecutionContext, read_plan: plan.ReadPlan | plan.UnionPlan) -> Iterator[ExplainedStep]:
    if isinstance(read_plan, plan.ReadPlan):
        yield from _explain_read(context, read_plan)
        return
    part_rows = []
    for part_number, part in enumerate(read_plan.parts, start=1):
        part_steps = [replace(step, depth=step.depth + 1) for step in _explain_read(context, part)]
        part_rows.append(part_steps[-1].estimated_rows)
        yield ExplainedStep(0, f"part {part_number}", part_rows[-1])
        yield from part_steps
    for description in ("union all" if read_plan.keeps_duplicates else "union", *_tail_steps(read_plan)):
        yield ExplainedStep(0, description, sum(part_rows))
    yield from _bound_steps(context, read_plan, sum(part_rows))


def _explain_read(context: ExecutionContext, read_plan: plan.ReadPlan) -> Iterator[ExplainedStep]:
    estimated_rows, explained = 1.0, list[ExplainedStep]()
    for depth, operator in _flatten_operators(read_plan.operators, 0):
        input_rows = 1.0 if depth and (not explained or explained[-1].depth < depth) else estimated_rows
        estimated_rows = estimate_rows(context, operator, input_rows)
        stats = (context.trace or {}).get(id(operator))
        description = _operator_text(operator) + _index_text(context, operator)
        explained.append(ExplainedStep(depth, description, round(estimated_rows), stats))
    yield from explained
    yield from (
        ExplainedStep(0, description, round(estimated_rows)) for description in _result_steps(context, read_plan)
    )
    yield from _bound_steps(context, read_plan, round(estimated_rows))


def _flatten_operators(operators: Sequence[Any], depth: int) -> Iterator[tuple[int, Any]]:
    for operator in operators:
        if isinstance(operator, DropVariables):
            continue  # this operator does not change the rows
        yield depth, operator
        if isinstance(operator, plan.AntiJoin | plan.LeftJoin):
            yield from _flatten_operators(operator.inner, depth + 1)


def _operator_text(operator: Any) -> str:
    match operator:
        case KeyScan():
            key_members = ", ".join(
                f"{member_name} = {value_text(value)}" for member_name, _, value in operator.key_members
            )
            return f"look up ${operator.scan.variable}: {operator.scan.type_name} by {key_members}"
        case EdgeExists():
            label = "unlinked" if operator.negated else "linked"
            return f"{label} ${operator.target_variable}: {operator_text(operator.expansion)}"
        case DistinctValueScan():
            return f"grouped by value: {operator_text(operator.scan)}"
        case NoNeighbor() | DistinctExpand() | WeightByDegree():
            return f"{_WALK_LABELS[type(operator)]}: {operator_text(operator.expansion)}"
    return operator_text(operator)


def _index_text(context: ExecutionContext, operator: Any) -> str:
    """Return a note that lists the indexes used by a scan or by a traversal from a few rows."""
    try:
        index_names = dict.fromkeys(_full_text_indexes(context, operator))
        indexed_filters = list(_indexed_filters(context, operator)) if not index_names else []
    except KeyError:  # a parameter may have no value, because the query is explained without being run
        return ""
    index_names |= {
        index_name: None
        for table, pushed_filter in indexed_filters
        for index_name in indexes_used_by(table, pushed_filter)
    }
    return f" (index {', '.join(index_names)})" if index_names else ""


def _full_text_indexes(context: ExecutionContext, operator: Any) -> Iterator[str]:
    """Yield the full-text indexes that propose candidate rows for a scan."""
    if not isinstance(operator, plan.NodeScan):
        return
    for type_name in operator.implementers or (operator.type_name,):
        full_text_match = plan_text_lookup(context, TableKey.node(type_name), operator.filters)
        if full_text_match is not None:
            yield full_text_match.index_name


def _indexed_filters(context: ExecutionContext, operator: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(operator, KeyScan):
        yield context.table(TableKey.node(operator.scan.type_name)), pc.field("id") == "any"
    if isinstance(operator, DistinctValueScan):
        operator = operator.scan  # if the values are already in memory, the query does not use the index
    if isinstance(operator, plan.NodeScan):
        for type_name in operator.implementers or (operator.type_name,):
            pushed_filter, _ = split_filters(context, TableKey.node(type_name), operator.filters)
            if pushed_filter is not None:
                yield context.table(TableKey.node(type_name)), pushed_filter
    if isinstance(operator, DistinctExpand):
        operator = operator.expansion
    if isinstance(operator, plan.Expand):
        for step in operator.steps:
            endpoint_columns = _ENDPOINT_COLUMNS[step.direction] if may_probe(context, step.edge_type) else ()
            for type_name in endpoint_columns:
                yield (context.table(TableKey.edge(step.edge_type)), pc.field(type_name).isin(["any"]))


def _result_steps(context: ExecutionContext, read_plan: plan.ReadPlan) -> Iterator[str]:
    if read_plan.ranking is not None:
        yield f"rank by {value_text(read_plan.ranking)}{_ranking_text(context, read_plan)}"
    yield "group" if read_plan.aggregated else "return"
    if read_plan.having is not None:
        yield f"having {predicate_text(read_plan.having)}"
    if read_plan.order:
        yield "order by " + ", ".join(value_text(sort_key.value) for sort_key in read_plan.order)


def _tail_steps(union_plan: plan.UnionPlan) -> Iterator[str]:
    if union_plan.order:
        yield "order by " + ", ".join(sort_key.column or "" for sort_key in union_plan.order)


def _bound_steps(
    context: ExecutionContext, read_plan: plan.ReadPlan | plan.UnionPlan, estimated_rows: int
) -> Iterator[ExplainedStep]:
    """Yield the steps for `offset` and `limit`.

    If the parameter of a clause has no value, the clause does not change the estimate.
    """
    for clause, value in (("offset", read_plan.offset), ("limit", read_plan.limit)):
        if value is None:
            continue
        bound = _bound_count(context, value)
        if bound is not None:
            estimated_rows = min(estimated_rows, bound) if clause == "limit" else max(estimated_rows - bound, 0)
        yield ExplainedStep(0, f"{clause} {value_text(value)}", estimated_rows)


def _bound_count(context: ExecutionContext, value: plan.Value) -> int | None:
    if isinstance(value, plan.Parameter):
        count = context.params.get(value.name)
    else:
        count = value.value if isinstance(value, plan.Constant) else None
    return count if isinstance(count, int) else None


def _ranking_text(context: ExecutionContext, read_plan: plan.ReadPlan) -> str:
    """Return a note with the name of the vector index used by the ranking, or an empty string if it uses none."""
    ranking = read_plan.ranking
    if not isinstance(ranking, plan.Nearest) or read_plan.aggregated or read_plan.distinct:
        return ""
    node_scans = (scan for scan in read_plan.operators if isinstance(scan, plan.NodeScan))
    ranked_scans = [scan for scan in node_scans if scan.variable == ranking.field.variable]
    table_keys = [
        TableKey.node(index_name) for scan in ranked_scans for index_name in scan.implementers or (scan.type_name,)
    ]
    index_name = vector_index_name(context, ranking, table_keys) if table_keys else None
    return f" (index {index_name})" if index_name is not None else ""


def _table_cells(step: ExplainedStep, show_stats: bool) -> list[str]:
    text_cells = ["  " * step.depth + step.description, str(step.estimated_rows)]
    if show_stats and step.stats is not None:
        return [*text_cells, str(step.stats.rows), f"{step.stats.milliseconds:.2f}"]
    return [*text_cells, "", ""] if show_stats else text_cells


def _align_cells(text_cells: list[str], widths: list[int]) -> str:
    left_aligned = text_cells[0].ljust(widths[0])
    right_aligned = (cell.rjust(width) for cell, width in zip(text_cells[1:], widths[1:], strict=True))
    return "  ".join((left_aligned, *right_aligned)).rstrip()
