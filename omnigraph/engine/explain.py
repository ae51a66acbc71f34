"""Explained plans: operators with estimated rows, and with measured rows and times.

Estimates come from table row counts alone and promise nothing. With `analyze` the query is run and
its operators are measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pyarrow.compute as pc

from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.print_plan import operator_text, value_text
from omnigraph.storage.index import used_by
from omnigraph.values.coerce import Mode

from .context import Context, Measured
from .estimate import estimate
from .limits import Limits
from .nearest import index_of
from .neighbours import may_probe
from .physical import Alone, FoldScan, Forget, KeyScan, Linked, Reach, Weigh
from .run import bind, execute, start
from .scan import asked_words, split

_WALKS = {Alone: "no match", Reach: "distinct targets", Weigh: "count only"}
_NEAR = {"out": ("src",), "in": ("dst",), "both": ("src", "dst")}


@dataclass(frozen=True, slots=True)
class Line:
    """One step of a plan: its description, estimated rows, and measurements if it was run."""

    depth: int
    text: str
    estimated: int
    measured: Measured | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members of the JSON form; measurements only with `analyze`."""
        found: dict[str, Any] = {"depth": self.depth, "operator": self.text}
        found["estimated_rows"] = self.estimated
        if self.measured is not None:
            found["rows"] = self.measured.rows
            found["milliseconds"] = round(self.measured.milliseconds, 3)
        return found


@dataclass(frozen=True, slots=True)
class Explained:
    """The plan of a query as it runs."""

    name: str
    lines: tuple[Line, ...]
    rows: int | None = None
    milliseconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members of the JSON form."""
        found: dict[str, Any] = {"query_name": self.name}
        found["plan"] = [one.to_json() for one in self.lines]
        if self.rows is not None and self.milliseconds is not None:
            found["row_count"] = self.rows
            found["milliseconds"] = round(self.milliseconds, 3)
        return found

    def __str__(self) -> str:
        """Return the plan as a text table."""
        head = ["operator", "estimated rows"]
        head += ["rows", "ms"] if self.rows is not None else []
        cells = [head, *(_cells(one, self.rows is not None) for one in self.lines)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
        return "\n".join(_aligned(row, widths) for row in cells)


def explain(
    snapshot: Snapshot,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    analyze: bool = False,
    limits: Limits | None = None,
    mode: Mode = "python",
) -> Explained:
    """Return the plan of a read; with `analyze`, run it. Only `analyze` needs parameters."""
    bound = bind(query, params, mode) if analyze else {}
    what, context = start(snapshot, query, bound, limits)
    if not analyze:
        return Explained(query.name, tuple(_lines(context, what)))
    context.trace = {}
    began = perf_counter()
    try:
        table = execute(context, what)
    finally:
        context.meter.leave()
    taken = (perf_counter() - began) * 1000
    return Explained(query.name, tuple(_lines(context, what)), table.num_rows, taken)


def _lines(context: Context, what: plan.ReadPlan) -> Iterator[Line]:
    rows, lines = 1.0, list[Line]()
    for depth, operator in _flat(what.operators, 0):
        inner = 1.0 if depth and (not lines or lines[-1].depth < depth) else rows
        rows = estimate(context, operator, inner)
        seen = (context.trace or {}).get(id(operator))
        text = _text(operator) + _index_text(context, operator)
        lines.append(Line(depth, text, round(rows), seen))
    yield from lines
    yield from (Line(0, text, round(rows)) for text in _tail(context, what))


def _flat(operators: Sequence[Any], depth: int) -> Iterator[tuple[int, Any]]:
    for one in operators:
        if isinstance(one, Forget):
            continue  # changes no rows
        yield depth, one
        if isinstance(one, plan.AntiJoin | plan.LeftJoin):
            yield from _flat(one.inner, depth + 1)


def _text(operator: Any) -> str:
    match operator:
        case KeyScan():
            members = ", ".join(f"{name} = {value_text(value)}" for name, _, value in operator.key)
            return f"look up ${operator.scan.variable}: {operator.scan.type_name} by {members}"
        case Linked():
            word = "unlinked" if operator.negated else "linked"
            return f"{word} ${operator.right}: {operator_text(operator.walk)}"
        case FoldScan():
            return f"grouped by value: {operator_text(operator.scan)}"
        case Alone() | Reach() | Weigh():
            return f"{_WALKS[type(operator)]}: {operator_text(operator.walk)}"
    return operator_text(operator)


def _index_text(context: Context, operator: Any) -> str:
    """Return which indexes serve a scan or a walk from a few rows, as far as is known."""
    try:
        names = dict.fromkeys(_words(context, operator))
        asked = list(_asked(context, operator)) if not names else []
    except KeyError:  # a parameter without a value: the plan is explained without being run
        return ""
    names |= {name: None for table, where in asked for name in used_by(table, where)}
    return f" (index {', '.join(names)})" if names else ""


def _words(context: Context, operator: Any) -> Iterator[str]:
    """Return the full-text indexes that propose the rows of a scan."""
    if not isinstance(operator, plan.NodeScan):
        return
    for name in operator.implementers or (operator.type_name,):
        found = asked_words(context, f"node:{name}", operator.filters)
        if found is not None:
            yield found.index


def _asked(context: Context, operator: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(operator, KeyScan):
        yield context.table(f"node:{operator.scan.type_name}"), pc.field("id") == "any"
    if isinstance(operator, FoldScan):
        operator = operator.scan  # unless the values are in memory, as with any scan
    if isinstance(operator, plan.NodeScan):
        for name in operator.implementers or (operator.type_name,):
            pushed, _ = split(context, f"node:{name}", operator.filters)
            if pushed is not None:
                yield context.table(f"node:{name}"), pushed
    if isinstance(operator, Reach):
        operator = operator.walk
    if isinstance(operator, plan.Expand):
        for step in operator.steps:
            near = _NEAR[step.direction] if may_probe(context, step.edge_type) else ()
            for name in near:
                yield context.table(f"edge:{step.edge_type}"), pc.field(name).isin(["any"])


def _tail(context: Context, what: plan.ReadPlan) -> Iterator[str]:
    if what.ranking is not None:
        yield f"rank by {value_text(what.ranking)}{_ranking_text(context, what)}"
    yield "group" if what.aggregated else "return"
    if what.order:
        yield "order by " + ", ".join(value_text(one.value) for one in what.order)
    for word, value in (("offset", what.offset), ("limit", what.limit)):
        if value is not None:
            yield f"{word} {value_text(value)}"


def _ranking_text(context: Context, what: plan.ReadPlan) -> str:
    """Return which index proposes the nearest nodes of a scan."""
    ranking = what.ranking
    if not isinstance(ranking, plan.Nearest) or what.aggregated or what.distinct:
        return ""
    scans = (one for one in what.operators if isinstance(one, plan.NodeScan))
    own = [one for one in scans if one.variable == ranking.field.variable]
    types = [f"node:{name}" for one in own for name in one.implementers or (one.type_name,)]
    name = index_of(context, ranking, types) if types else None
    return f" (index {name})" if name is not None else ""


def _cells(line: Line, measured: bool) -> list[str]:
    found = ["  " * line.depth + line.text, str(line.estimated)]
    if measured and line.measured is not None:
        return [*found, str(line.measured.rows), f"{line.measured.milliseconds:.2f}"]
    return [*found, "", ""] if measured else found


def _aligned(cells: list[str], widths: list[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join((first, *rest)).rstrip()
