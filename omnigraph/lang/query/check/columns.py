"""The result columns of a read: values, aggregates and scores.

Owns which expressions may be returned, the argument and result types of aggregates, and the group
keys.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.query.naming import column_name
from omnigraph.values import PropertyType, ScalarType

from . import expressions, search
from .scope import Scope
from .typed import F64, I64, Typed, is_scalar

_ID = PropertyType(ScalarType.STRING)


def check_columns(scope: Scope, projections: tuple[m.Projection, ...]) -> tuple[plan.Column, ...]:
    """Return the valid columns, in order; report the others."""
    aggregated = is_aggregated(projections)
    columns: list[plan.Column] = []
    seen: set[str] = set()
    for projection in projections:
        value = column_value(scope, projection.expression)
        if value is None:
            continue
        name = column_name(projection)
        if name in seen:
            span = projection.alias.span if projection.alias is not None else projection.span
            hint = "name one of them with `as`"
            scope.report.error(span, f"two columns are named `{name}`", hint=hint)
        seen.add(name)
        if _is_key(scope, value, aggregated):
            columns.append(plan.Column(name, value.value, value.type))
    return tuple(columns)


def is_aggregated(projections: tuple[m.Projection, ...]) -> bool:
    """Whether rows are grouped: at least one column is an aggregate."""
    return any(isinstance(one.expression, m.Aggregate) for one in projections)


def column_value(scope: Scope, node: m.Expression) -> Typed | None:
    """Return a value that may be projected or sorted by, or None after reporting why not."""
    match node:
        case m.Aggregate():
            return aggregate(scope, node)
        case m.Call():
            found = search.ranking(scope, node)
            kind = F64.as_nullable(True)
            return Typed(plan.Score(found), kind, node.span) if found is not None else None
        case m.Alias():
            message = f"`{node.name}` is not a value; a column name can only be used in `order`"
            scope.report.error(node.span, message)
            return None
    value = expressions.resolve(scope, node)
    if value is not None and value.is_null:
        scope.report.error(node.span, "`null` has no type here and cannot be returned")
        return None
    return value if value is not None and _readable(scope, value) else None


def aggregate(scope: Scope, node: m.Aggregate) -> Typed | None:
    """Return an aggregate with the type of its result, which is always nullable."""
    argument = _argument(scope, node)
    if argument is None:
        return None
    problem = _problem(node, argument)
    if problem is not None:
        scope.report.error(node.argument.span, problem, "T8")
        return None
    value = plan.Aggregate(node.function, argument.value, node.distinct)
    return Typed(value, _result(node.function, argument).as_nullable(True), node.span)


def _argument(scope: Scope, node: m.Aggregate) -> Typed | None:
    if isinstance(node.argument, m.Aggregate | m.Call):
        inner = f"`{node.argument.function}(…)`"
        message = f"`{node.function}` cannot take {inner}"
        scope.report.error(node.argument.span, message, "T8")
        return None
    return column_value(scope, node.argument)


def _problem(node: m.Aggregate, argument: Typed) -> str | None:
    """Return why the function does not accept the argument, or None."""
    kind, shown = argument.type, argument.shown()
    match node.function:
        case "sum" | "avg":
            fits = kind is not None and kind.is_numeric
            return None if fits else f"`{node.function}` needs numbers, not {shown}"
        case "min" | "max":
            fits = kind is not None and is_scalar(kind)
            return None if fits else f"`{node.function}` needs comparable values, not {shown}"
        case "collect":
            fits = kind is None or is_scalar(kind)
            return None if fits else f"`collect` needs scalars, not {shown}"
    if node.distinct and kind is not None and not is_scalar(kind):
        return f"`count(distinct …)` needs scalars, not {shown}"
    return None


def _result(function: m.AggregateFunction, argument: Typed) -> PropertyType:
    match function:
        case "count":
            return I64
        case "sum" | "avg":
            return F64
        case "collect":
            item = (argument.type or _ID).element()
            return PropertyType(item.scalar, is_list=True, enum_values=item.enum_values)
    return argument.type or _ID


def _readable(scope: Scope, value: Typed) -> bool:
    if value.type is None or value.type.scalar is not ScalarType.BLOB:
        return True
    scope.report.error(value.span, "a Blob cannot be read by a query", "T24")
    return False


def _is_key(scope: Scope, value: Typed, aggregated: bool) -> bool:
    """Whether a column is allowed if rows are grouped: an aggregate, or a group key."""
    keys = plan.Aggregate | plan.PropertyValue | plan.SystemValue | plan.Entity
    if not aggregated or isinstance(value.value, keys):
        return True
    if isinstance(value.value, plan.Parameter) and not value.is_now:
        return True
    message = "in a query with aggregates, any other column must be a property or a variable"
    scope.report.error(value.span, message, "T9")
    return False
