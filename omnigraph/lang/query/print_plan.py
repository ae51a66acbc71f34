"""A plan as text, one operator per line, for people and tests.

The text is never parsed. Its only guarantee is that equal plans print alike.
"""

from collections.abc import Iterable, Iterator

from omnigraph.values import (
    BlobUri,
    PropertyType,
    ScalarType,
    format_blob,
    format_date,
    format_datetime,
)

from . import plan


def explain_plan(what: plan.Plan) -> str:
    """Return the plan as indented lines.

    >>> print(explain_plan(plan.ReadPlan((plan.NodeScan("p", "Person"),), (), ("p",))))
    scan $p: Person
    return
    """
    lines = _read(what) if isinstance(what, plan.ReadPlan) else _write(what)
    return "\n".join(lines)


def _read(read: plan.ReadPlan) -> Iterator[str]:
    yield from _operators(read.operators, "")
    words = [word for word, on in (("distinct", read.distinct), ("grouped", read.aggregated)) if on]
    columns = ", ".join(_column(one) for one in read.columns)
    yield " ".join(part for part in ("return", *words, columns) if part)
    if read.ranking is not None:
        yield f"rank {value_text(read.ranking)}"
    if read.order:
        yield f"order {', '.join(_key(key) for key in read.order)}"
    if read.limit is not None:
        yield f"limit {value_text(read.limit)}"
    if read.offset is not None:
        yield f"offset {value_text(read.offset)}"


def _column(column: plan.Column) -> str:
    value = value_text(column.value)
    kind = column.type.display() if column.type is not None else "object"
    return f"{column.name} = {value}: {kind}"


def _key(key: plan.SortKey) -> str:
    shown = key.column if key.column is not None else value_text(key.value)
    return f"{shown} desc" if key.descending else shown


def _operators(operators: Iterable[plan.Operator], indent: str) -> Iterator[str]:
    for operator in operators:
        yield indent + operator_text(operator)
        if isinstance(operator, plan.AntiJoin | plan.LeftJoin):
            yield from _operators(operator.inner, indent + "  ")


def operator_text(operator: plan.Operator) -> str:
    """Return the text of one operator, without its inner operators."""
    match operator:
        case plan.NodeScan():
            among = f" ({' | '.join(operator.implementers)})" if operator.implementers else ""
            return f"scan ${operator.variable}: {operator.type_name}{among}" + _tests(
                operator.filters
            )
        case plan.Expand():
            return _expand(operator)
        case plan.Close():
            return f"close ${operator.left} = ${operator.right}"
        case plan.Filter():
            return f"filter {predicate_text(operator.predicate)}"
        case plan.AntiJoin():
            return f"without {_variables(operator.outer)}"
        case plan.LeftJoin():
            return f"maybe {_variables(operator.outer)} -> {_variables(operator.introduced)}"


def _expand(expand: plan.Expand) -> str:
    steps = "|".join(_step(one) for one in expand.steps)
    edge = f" as ${expand.edge_variable}" if expand.edge_variable is not None else ""
    hops = f" {{{expand.min_hops},{expand.max_hops}}}"
    hops = "" if (expand.min_hops, expand.max_hops) == (1, 1) else hops
    target = f"${expand.target or '_'}: {expand.target_type}"
    tests = _tests(expand.target_filters)
    return f"expand ${expand.source} {steps}{hops}{edge} {target}{tests}"


def _step(step: plan.Step) -> str:
    arrows = {"out": "-{}->", "in": "<-{}-", "both": "-{}-"}
    return arrows[step.direction].format(step.edge_type)


def _tests(predicates: tuple[plan.Predicate, ...]) -> str:
    return f" [{'; '.join(predicate_text(one) for one in predicates)}]" if predicates else ""


def _variables(names: tuple[str, ...]) -> str:
    return ", ".join(f"${name}" for name in names) or "nothing"


def _write(write: plan.WritePlan) -> Iterator[str]:
    for statement in write.statements:
        match statement:
            case plan.InsertRow():
                head = f"insert {statement.kind} {statement.type_name}"
                yield f"{head} {_assigned(statement.assignments)}"
            case plan.UpdateRows():
                test = predicate_text(statement.where)
                head = f"update node {statement.type_name} {_assigned(statement.assignments)}"
                yield f"{head} where {test}"
            case plan.DeleteRows():
                test = predicate_text(statement.where)
                also = f" with {', '.join(statement.cascades)}" if statement.cascades else ""
                yield f"delete {statement.kind} {statement.type_name} where {test}{also}"


def _assigned(assignments: tuple[plan.Assign, ...]) -> str:
    return "{ " + ", ".join(f"{one.name}: {value_text(one.value)}" for one in assignments) + " }"


def value_text(value: plan.Value | plan.Ranking) -> str:  # noqa: PLR0911 - one return per kind
    """Return a value or ranking as it could be written in a query."""
    match value:
        case plan.Constant():
            return _constant(value.value, value.type)
        case plan.Parameter():
            return "now()" if value.name == plan.NOW else f"${value.name}"
        case plan.PropertyValue():
            return f"${value.variable}.{value.name}"
        case plan.SystemValue():
            return f"${value.variable}.{value.field}"
        case plan.Entity():
            return f"${value.variable}"
        case plan.Score():
            return value_text(value.ranking)
        case plan.Aggregate():
            distinct = "distinct " if value.distinct else ""
            return f"{value.function}({distinct}{value_text(value.argument)})"
    return _ranking(value)


def _ranking(ranking: plan.Ranking) -> str:
    match ranking:
        case plan.Bm25():
            return f"bm25({value_text(ranking.field)}, {value_text(ranking.query)})"
        case plan.Nearest():
            model = f" by {ranking.model}" if ranking.model is not None else ""
            return f"nearest({value_text(ranking.field)}, {value_text(ranking.query)}{model})"
        case plan.Fuse():
            arms = f"{_ranking(ranking.first)}, {_ranking(ranking.second)}"
            return f"rrf({arms}, {value_text(ranking.k)})"


def _constant(value: object, kind: PropertyType) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_constant(item, kind.element()) for item in value)}]"
    if isinstance(value, int) and kind.scalar is ScalarType.DATE:
        return f'date("{format_date(value)}")'
    if isinstance(value, int) and kind.scalar is ScalarType.DATETIME:
        return f'datetime("{format_datetime(value)}")'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytes | BlobUri):
        value = format_blob(value)
    return f'"{value}"' if isinstance(value, str) else repr(value)


def predicate_text(predicate: plan.Predicate) -> str:  # noqa: PLR0911 - one return per kind
    """Return a predicate as it could be written in a query."""
    match predicate:
        case plan.Compare():
            sides = value_text(predicate.left), value_text(predicate.right)
            return f"{sides[0]} {predicate.operator} {sides[1]}"
        case plan.TextTest():
            sides = value_text(predicate.left), value_text(predicate.right)
            return f"{sides[0]} {predicate.operator} {sides[1]}"
        case plan.InList():
            return f"{value_text(predicate.operand)} in {value_text(predicate.items)}"
        case plan.IsNull():
            word = "is not null" if predicate.negated else "is null"
            return f"{value_text(predicate.operand)} {word}"
        case plan.OfType():
            return f"${predicate.variable} is {predicate.type_name}"
        case plan.TextSearch():
            return _search(predicate)
        case plan.And():
            return f"({' and '.join(predicate_text(one) for one in predicate.items)})"
        case plan.Or():
            return f"({' or '.join(predicate_text(one) for one in predicate.items)})"
        case plan.Not():
            return f"not {predicate_text(predicate.item)}"


def _search(search: plan.TextSearch) -> str:
    edits = f", {value_text(search.max_edits)}" if search.max_edits is not None else ""
    field, query = value_text(search.field), value_text(search.query)
    return f"{search.function}({field}, {query}{edits})"
