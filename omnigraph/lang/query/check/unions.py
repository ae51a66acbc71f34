"""Check unions, which combine the rows of several reads into one result.

This module decides which columns are compatible (code T30). All parts must return the same column names in the same
order, and each column must have a common type that can represent all values exactly.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.query.column_names import column_name
from omnigraph.lang.schema.names import did_you_mean

from .checked import CheckedRead, CheckedUnion
from .orderings import check_row_count
from .reads import check_read
from .scope import Scope
from .typed_values import TypedValue, common_type, is_scalar


def check_union(scope: Scope, union_body: m.UnionBody) -> CheckedUnion:
    """Check each part in a scope of its own, then check that the parts return compatible columns."""
    checked_parts = tuple(check_read(scope.without_variables(), part) for part in union_body.parts)
    names_match = [_check_names(scope, union_body.parts[0], part) for part in union_body.parts[1:]]
    columns = _common_columns(scope, union_body, checked_parts) if all(names_match) else ()
    return CheckedUnion(
        parts=checked_parts,
        columns=columns,
        keeps_duplicates=union_body.keeps_duplicates,
        order=_check_order(scope, union_body, columns),
        limit=check_row_count(scope, union_body.limit, "limit"),
        offset=check_row_count(scope, union_body.offset, "offset"),
    )


def _check_names(scope: Scope, first_part: m.ReadBody, other_part: m.ReadBody) -> bool:
    """Return whether two parts return the same column names. Report the first difference."""
    expected_names = [column_name(projection) for projection in first_part.projections]
    for projection, expected_name in zip(other_part.projections, expected_names, strict=False):
        if column_name(projection) != expected_name:
            span = projection.alias.span if projection.alias is not None else projection.span
            message = f"this column is named `{column_name(projection)}`, but the first part names it `{expected_name}`"
            hint = "the parts of a union must return the same column names in the same order; rename columns with `as`"
            scope.report.error(span, message, "T30", hint=hint)
            return False
    if len(other_part.projections) == len(expected_names):
        return True
    counts = len(other_part.projections), len(expected_names)
    span = other_part.projections[0].span.to(other_part.projections[-1].span)
    message = f"this part returns {_count_columns(counts[0])}, but the first part returns {counts[1]}"
    scope.report.error(span, message, "T30", hint=f"return the columns of the first part: {', '.join(expected_names)}")
    return False


def _count_columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _common_columns(
    scope: Scope, union_body: m.UnionBody, checked_parts: tuple[CheckedRead, ...]
) -> tuple[plan.PlanColumn, ...]:
    columns = {column.name: column for column in checked_parts[0].columns}
    for part, checked_part in zip(union_body.parts[1:], checked_parts[1:], strict=True):
        projections = {column_name(projection): projection for projection in part.projections}
        for column in checked_part.columns:
            earlier_column = columns.get(column.name)
            if earlier_column is not None:  # a column of None has an error that has already been reported
                columns[column.name] = _merge_columns(scope, earlier_column, column, projections[column.name])
    return tuple(columns.values())


def _merge_columns(
    scope: Scope, earlier_column: plan.PlanColumn, column: plan.PlanColumn, projection: m.Projection
) -> plan.PlanColumn:
    """Return `earlier_column` with a type that can also hold the values of `column`. Report incompatible types."""
    if earlier_column.type is not None and column.type is not None:
        merged_type = common_type(earlier_column.type, column.type)
        if merged_type is not None:
            return plan.PlanColumn(column.name, earlier_column.value, merged_type)
    elif _entity_type(earlier_column) is not None and _entity_type(earlier_column) == _entity_type(column):
        return earlier_column
    message = f"`{column.name}` is {_describe(column)} here, but {_describe(earlier_column)} in an earlier part"
    hint = "return values of the same type, such as properties of the nodes" if column.type is None else None
    scope.report.error(projection.expression.span, message, "T30", hint=hint)
    return earlier_column


def _entity_type(column: plan.PlanColumn) -> str | None:
    return column.value.type_name if isinstance(column.value, plan.Entity) else None


def _describe(column: plan.PlanColumn) -> str:
    if column.type is not None:
        return column.type.display()
    kind = "an edge" if isinstance(column.value, plan.Entity) and column.value.edge_types else "a node"
    return f"{kind} of type {_entity_type(column)}"


def _check_order(
    scope: Scope, union_body: m.UnionBody, columns: tuple[plan.PlanColumn, ...]
) -> tuple[plan.SortKey, ...]:
    """Return the sort keys, and report keys that are not column names."""
    known_names = [column_name(projection) for projection in union_body.parts[0].projections]
    sort_keys: list[plan.SortKey] = []
    for ordering in union_body.orderings:
        expression = ordering.expression
        if not isinstance(expression, m.Alias):
            hint = "name the column with `as` in every part, and order by that name"
            scope.report.error(expression.span, "a union can only be ordered by its column names", "T30", hint=hint)
        elif expression.name not in known_names:
            hint_text = did_you_mean(expression.name, known_names)
            scope.report.error(expression.span, f"no column is named `{expression.name}`", hint=hint_text)
        else:
            sort_keys += _resolve_key(scope, columns, ordering, expression)
    return tuple(sort_keys)


def _resolve_key(
    scope: Scope, columns: tuple[plan.PlanColumn, ...], ordering: m.Ordering, bare_word: m.Alias
) -> list[plan.SortKey]:
    column = next((candidate for candidate in columns if candidate.name == bare_word.name), None)
    if column is None:
        return []
    if column.type is not None and not is_scalar(column.type):
        typed_column = TypedValue(column.value, column.type, bare_word.span)
        scope.report.error(bare_word.span, f"{typed_column.describe_type()} cannot be sorted")
        return []
    return [plan.SortKey(column.value, ordering.direction == "desc", column.name)]
