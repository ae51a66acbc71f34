"""Check the order, limit and offset of a read.

This module checks sort keys and rankings (codes T17, T18 and T21). A ranking must be the first sort key. It determines
the order, and later keys only break ties.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.query.plan_variables import contains_aggregate
from omnigraph.records.frozen import record

from .columns import check_grouped_parts, resolve_column_value
from .expressions import resolve_parameter
from .groups import is_grouped
from .literals import resolve_literal
from .scope import Scope
from .typed_values import TypedValue, is_scalar

_BEST_FIRST_DIRECTIONS = {"bm25": "desc", "rrf": "desc", "nearest": "asc"}


@record
class CheckedOrder:
    """The sort keys, and the ranking if the first key is a ranking."""

    keys: tuple[plan.SortKey, ...] = ()
    ranking: plan.Ranking | None = None


def check_order(scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...]) -> CheckedOrder:
    """Return a read's order, and report invalid sort keys."""
    ranking_calls = [_find_ranking_call(read_body, ordering) for ordering in read_body.orderings]
    _check_rankings(scope, read_body, ranking_calls)
    sort_keys: list[plan.SortKey] = []
    leading_ranking: plan.Ranking | None = None
    for key_index, (ordering, call) in enumerate(zip(read_body.orderings, ranking_calls, strict=True)):
        if call is None:
            sort_keys += _check_sort_key(scope, read_body, columns, ordering)
        elif (resolved_ranking := _resolve_ranking(scope, columns, ordering)) is not None and key_index == 0:
            leading_ranking = resolved_ranking
    return CheckedOrder(tuple(sort_keys), leading_ranking)


def check_row_count(scope: Scope, count_expression: m.Literal | m.Variable | None, keyword: str) -> plan.Value | None:
    """Return the row count for `limit` or `offset`, which must be a literal or an integer parameter."""
    if count_expression is None:
        return None
    if isinstance(count_expression, m.Literal):
        typed_value = resolve_literal(scope.report, count_expression)
        row_count = typed_value.value if typed_value is not None else None
        if isinstance(row_count, plan.Constant) and type(row_count.value) is int and row_count.value >= 0:
            return row_count
        message = f"`{keyword}` requires a non-negative integer"
        scope.report.error(count_expression.span, message)
        return None
    return _check_row_count_parameter(scope, count_expression, keyword)


def _check_row_count_parameter(scope: Scope, variable: m.Variable, keyword: str) -> plan.Value | None:
    parameter_value = resolve_parameter(scope, variable)
    if parameter_value is None:
        message = f"`{keyword}` requires a number or a parameter; `${variable.name}` is not a parameter"
        scope.report.error(variable.span, message, "T14")
        return None
    if parameter_value.type is not None and parameter_value.type.is_integer and not parameter_value.type.nullable:
        return parameter_value.value
    message = f"`{keyword}` requires a non-nullable integer parameter, not {parameter_value.describe_type()}"
    scope.report.error(variable.span, message)
    return None


def _find_ranking_call(read_body: m.ReadBody, ordering: m.Ordering) -> m.Call | None:
    """Return the ranking that an ordering refers to, directly or through an alias, or None if there is none."""
    expression: m.Expression = ordering.expression
    if isinstance(expression, m.Alias):
        matching_projections = (
            projection
            for projection in read_body.projections
            if projection.alias and projection.alias.text == expression.name
        )
        expression = next((projection.expression for projection in matching_projections), expression)
    return expression if isinstance(expression, m.Call) and expression.function in _BEST_FIRST_DIRECTIONS else None


def _check_rankings(scope: Scope, read_body: m.ReadBody, ranking_calls: list[m.Call | None]) -> None:
    for key_index, (ordering, call) in enumerate(zip(read_body.orderings, ranking_calls, strict=True)):
        if call is None:
            continue
        _check_limit(scope, read_body, ordering, call)
        _check_direction(scope, ordering, call)
        if key_index > 0:
            message = f"`{call.function}` must be the first sort key"
            scope.report.error(ordering.expression.span, message)
        elif is_grouped(read_body):
            message = f"groups cannot be ranked by `{call.function}`"
            scope.report.error(ordering.expression.span, message)


def _check_limit(scope: Scope, read_body: m.ReadBody, ordering: m.Ordering, call: m.Call) -> None:
    ranking_span = ordering.expression.span
    if read_body.limit is None and call.function in ("nearest", "rrf"):
        code = "T17" if call.function == "nearest" else "T21"
        message = f"`{call.function}` requires a `limit`"
        scope.report.error(ranking_span, message, code)
    alias_orderings = [
        other_ordering
        for other_ordering in read_body.orderings
        if other_ordering is not ordering and isinstance(other_ordering.expression, m.Alias)
    ]
    if call.function == "nearest" and alias_orderings:
        message = "`nearest` cannot be combined with an ordering by column name"
        scope.report.error(alias_orderings[0].expression.span, message, "T18")


def _check_direction(scope: Scope, ordering: m.Ordering, call: m.Call) -> None:
    if ordering.direction in (None, _BEST_FIRST_DIRECTIONS[call.function]):
        return
    message = f"`{call.function}` always returns the best rows first"
    if isinstance(ordering.expression, m.Alias):
        scope.report.error(ordering.span, message, hint=f"remove `{ordering.direction}`")
    else:
        hint = f"`{ordering.direction}` is ignored; remove it"
        scope.report.warn(ordering.span, message, "L207", hint=hint)


def _resolve_ranking(scope: Scope, columns: tuple[plan.PlanColumn, ...], ordering: m.Ordering) -> plan.Ranking | None:
    expression = ordering.expression
    if isinstance(expression, m.Alias):
        named_value = next((column.value for column in columns if column.name == expression.name), None)
        return named_value.ranking if isinstance(named_value, plan.Score) else None
    typed_value = resolve_column_value(scope, expression)
    if typed_value is not None and isinstance(typed_value.value, plan.Score):
        return typed_value.value.ranking
    return None


def _check_sort_key(
    scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...], ordering: m.Ordering
) -> list[plan.SortKey]:
    descending = ordering.direction == "desc"
    if isinstance(ordering.expression, m.Alias):
        column = _find_named_column(scope, read_body, columns, ordering.expression)
        if column is None:
            return []
        typed_column = TypedValue(column.value, column.type, ordering.expression.span)
        is_sortable = _check_sortable(scope, typed_column)
        return [plan.SortKey(column.value, descending, column.name)] if is_sortable else []
    typed_value = resolve_column_value(scope, ordering.expression)
    if (
        typed_value is None
        or not _check_sortable(scope, typed_value)
        or not _check_survives_grouping(scope, read_body, columns, typed_value)
    ):
        return []
    column = next((candidate for candidate in columns if candidate.value == typed_value.value), None)
    return [plan.SortKey(typed_value.value, descending, column.name if column else None)]


def _find_named_column(
    scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...], bare_word: m.Alias
) -> plan.PlanColumn | None:
    from omnigraph.lang.query.column_names import column_name

    column = next((candidate for candidate in columns if candidate.name == bare_word.name), None)
    column_names = [column_name(projection) for projection in read_body.projections]
    if column is None and bare_word.name not in column_names:
        from omnigraph.lang.schema.names import did_you_mean

        hint = did_you_mean(bare_word.name, column_names)
        scope.report.error(bare_word.span, f"no column is named `{bare_word.name}`", hint=hint)
    return column


def _check_sortable(scope: Scope, typed_value: TypedValue) -> bool:
    if typed_value.is_constant:
        scope.report.error(typed_value.span, "a constant cannot be a sort key")
        return False
    is_path = isinstance(typed_value.value, plan_paths.PathEntity)
    if is_path or (typed_value.type is not None and not is_scalar(typed_value.type)):
        scope.report.error(typed_value.span, f"{typed_value.describe_type()} cannot be sorted")
        return False
    return True


def _check_survives_grouping(
    scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...], typed_value: TypedValue
) -> bool:
    """Return whether a sort key still exists after grouping or deduplication. Report an error if it does not."""
    is_returned = any(column.value == typed_value.value for column in columns)
    grouped = is_grouped(read_body)
    has_aggregate = contains_aggregate(typed_value.value)
    if has_aggregate and not grouped:
        message = "ordering by an aggregate requires an aggregate in `return`"
        scope.report.error(typed_value.span, message, "T9")
        return False
    if is_returned:
        return True
    if has_aggregate and not read_body.distinct:
        return check_grouped_parts(scope, columns, typed_value)
    if grouped:
        message = "a grouped query can only be ordered by its columns and by aggregates"
        scope.report.error(typed_value.span, message, "T9")
    elif read_body.distinct:
        message = "a `distinct` query can only be ordered by its columns"
        scope.report.error(typed_value.span, message)
    return not grouped and not read_body.distinct
