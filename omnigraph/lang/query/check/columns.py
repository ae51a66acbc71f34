"""Check the result columns of a read: values, aggregates and scores.

This module decides which expressions may be returned, which types aggregates accept and return, and which columns are
group keys.
"""

from collections.abc import Sequence

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.query.column_names import column_name
from omnigraph.lang.query.plan_variables import PlanNode, contains_aggregate, operands_of
from omnigraph.values import PropertyType, ScalarType

from . import expressions, search
from .mentions import mentions_aggregate
from .scope import Scope
from .typed_values import F64, I64, TypedValue, is_scalar

ANY_ROW = plan.Constant(1, I64)  # the argument of `count(*)`: a constant, so it is never null
BLOB_HINT = "read a blob with `graph.blob(..)` in Python or `omnigraph blob get`"
_ID_TYPE = PropertyType(ScalarType.STRING)


def check_columns(scope: Scope, projections: tuple[m.Projection, ...], *, grouped: bool) -> tuple[plan.PlanColumn, ...]:
    """Return the valid columns in source order, and report invalid ones."""
    columns: list[plan.PlanColumn] = []
    typed_columns: list[TypedValue] = []
    seen_names: set[str] = set()
    for projection in projections:
        typed_value = resolve_column_value(scope, projection.expression)
        if typed_value is None:
            continue
        result_name = column_name(projection)
        if result_name in seen_names:
            span = projection.alias.span if projection.alias is not None else projection.span
            hint = "rename one of the columns with `as`"
            scope.report.error(span, f"two columns are named `{result_name}`", hint=hint)
        seen_names.add(result_name)
        if _check_group_key(scope, typed_value, grouped):
            columns.append(plan.PlanColumn(result_name, typed_value.value, typed_value.type))
            typed_columns.append(typed_value)
    for typed_column in typed_columns:
        check_grouped_parts(scope, columns, typed_column)
    return tuple(columns)


def check_grouped_parts(scope: Scope, columns: Sequence[plan.PlanColumn], typed_value: TypedValue) -> bool:
    """Return whether every part of an expression has one value per group, and report an error if any part does not."""
    if not contains_aggregate(typed_value.value):
        return True
    if has_group_value(typed_value.value, columns):
        return True
    message = "in an expression with aggregates, every property outside an aggregate must also be a separate column"
    scope.report.error(typed_value.span, message, "T9")
    return False


def has_group_value(value: PlanNode, columns: Sequence[plan.PlanColumn]) -> bool:
    """Return whether an expression consists only of aggregates, group keys and constants."""
    return _is_grouped(value, [column.value for column in columns if not contains_aggregate(column.value)])


def _is_grouped(value: PlanNode, group_keys: list[plan.Value]) -> bool:
    if isinstance(value, plan.Aggregate | plan.Constant | plan.Parameter) or value in group_keys:
        return True
    operands = tuple(operands_of(value))
    return bool(operands) and all(_is_grouped(operand, group_keys) for operand in operands)


def is_aggregated(projections: tuple[m.Projection, ...]) -> bool:
    """Return whether at least one column is or contains an aggregate."""
    return any(mentions_aggregate(projection.expression) for projection in projections)


def resolve_column_value(scope: Scope, expression: m.Expression) -> TypedValue | None:
    """Return a value that may be projected or used as a sort key, or None after reporting an error."""
    match expression:
        case m.Aggregate():
            return check_aggregate(scope, expression)
        case m.Call():
            ranking = search.check_ranking(scope, expression)
            score_type = F64.as_nullable(True)
            return TypedValue(plan.Score(ranking), score_type, expression.span) if ranking is not None else None
        case m.Alias():
            message = f"`{expression.name}` is not a value; column names can only be used in `order` and `having`"
            is_keyword = expression.name == "distinct"
            hint = "write `distinct` before the braces: `return distinct { $p.name }`" if is_keyword else None
            scope.report.error(expression.span, message, hint=hint)
            return None
        case m.Arithmetic() | m.Negative() | m.ScalarCall() | m.Case():
            return expressions.resolve_scalar_expression(
                scope, expression, lambda operand: _resolve_operand(scope, operand)
            )
    typed_value = expressions.resolve_expression(scope, expression)
    if typed_value is not None and typed_value.is_null:
        scope.report.error(expression.span, "`null` has no type here and cannot be returned")
        return None
    return typed_value if typed_value is not None and _check_readable(scope, typed_value) else None


def _resolve_operand(scope: Scope, expression: m.Expression) -> TypedValue | None:
    """Resolve an operand in a scalar expression. Operands may contain aggregates but no scores."""
    match expression:
        case m.Aggregate() | m.Arithmetic() | m.Negative() | m.ScalarCall() | m.Case():
            return resolve_column_value(scope, expression)
    return expressions.resolve_expression(scope, expression)


def check_aggregate(scope: Scope, aggregate: m.Aggregate) -> TypedValue | None:
    """Return an aggregate with its result type (always nullable), or None after reporting an error."""
    argument = _resolve_argument(scope, aggregate)
    if argument is None:
        return None
    mismatch = _argument_mismatch(aggregate, argument)
    if mismatch is not None:
        scope.report.error(aggregate.argument.span, mismatch, "T8")
        return None
    place = plan.SourcePlace(scope.report.source, aggregate.span)
    plan_aggregate = plan.Aggregate(aggregate.function, argument.value, aggregate.distinct, place)
    return TypedValue(plan_aggregate, _result_type(aggregate.function, argument).as_nullable(True), aggregate.span)


def _resolve_argument(scope: Scope, aggregate: m.Aggregate) -> TypedValue | None:
    argument = aggregate.argument
    if isinstance(argument, m.AllRows):
        return TypedValue(ANY_ROW, I64, argument.span)
    if isinstance(argument, m.Call) or mentions_aggregate(argument):
        inner_text = "an expression with an aggregate"
        if isinstance(argument, m.Aggregate | m.Call):
            inner_text = f"`{argument.function}(…)`"
        message = f"`{aggregate.function}` does not accept {inner_text} as an argument"
        scope.report.error(aggregate.argument.span, message, "T8")
        return None
    return resolve_column_value(scope, aggregate.argument)


def _argument_mismatch(aggregate: m.Aggregate, argument: TypedValue) -> str | None:
    """Return the reason why an aggregate function does not accept its argument, or None if it does."""
    argument_type, type_text = argument.type, argument.describe_type()
    match aggregate.function:
        case "sum" | "avg":
            is_accepted = argument_type is not None and argument_type.is_numeric
            return None if is_accepted else f"`{aggregate.function}` requires numbers, not {type_text}"
        case "min" | "max":
            is_accepted = argument_type is not None and is_scalar(argument_type)
            return None if is_accepted else f"`{aggregate.function}` requires comparable values, not {type_text}"
        case "collect":
            is_accepted = (
                is_scalar(argument_type) if argument_type else not isinstance(argument.value, plan_paths.PathEntity)
            )
            return None if is_accepted else f"`collect` requires scalars, not {type_text}"
    if aggregate.distinct and argument_type is not None and not is_scalar(argument_type):
        return f"`count(distinct …)` requires scalars, not {type_text}"
    return None


def _result_type(function: m.AggregateFunction, argument: TypedValue) -> PropertyType:
    match function:
        case "count":
            return I64
        case "sum" if argument.type is not None and argument.type.is_integer:
            return I64
        case "sum" | "avg":
            return F64
        case "collect":
            element_type = (argument.type or _ID_TYPE).element_type()
            return PropertyType(element_type.scalar, is_list=True, enum_values=element_type.enum_values)
    return argument.type or _ID_TYPE


def _check_readable(scope: Scope, typed_value: TypedValue) -> bool:
    if typed_value.type is None or typed_value.type.scalar is not ScalarType.BLOB:
        return True
    scope.report.error(typed_value.span, "queries cannot read Blobs", "T24", hint=BLOB_HINT)
    return False


def _check_group_key(scope: Scope, typed_value: TypedValue, aggregated: bool) -> bool:
    """Return whether a column is allowed. In a grouped read, literals, scores and `now()` are not allowed."""
    key_classes = (
        plan.Aggregate
        | plan.PropertyValue
        | plan.SystemValue
        | plan.Entity
        | plan.ScalarValue
        | plan_paths.PathEntity
        | plan_paths.PathValue
    )
    if not aggregated or isinstance(typed_value.value, key_classes):
        return True
    if isinstance(typed_value.value, plan.Parameter) and not typed_value.is_now:
        return True
    message = "in a query with aggregates, every other column must be a property, a variable or an expression"
    scope.report.error(typed_value.span, message, "T9")
    return False
