"""Order, limit and offset of a read.

Owns sort keys, the choice of a ranking and what a ranking requires (T17, T18, T21). A ranking is
the first key and alone decides the order; keys after it only break its ties.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.record import record

from .columns import column_value, is_aggregated
from .expressions import parameter
from .literals import constant
from .scope import Scope
from .typed import Typed, is_scalar

_BEST_FIRST = {"bm25": "desc", "rrf": "desc", "nearest": "asc"}


@record
class Order:
    """The sort keys, and the ranking if the first key is one."""

    keys: tuple[plan.SortKey, ...] = ()
    ranking: plan.Ranking | None = None


def check_order(scope: Scope, body: m.ReadBody, columns: tuple[plan.Column, ...]) -> Order:
    """Return the order of a read; report keys that cannot be sorted by."""
    rankings = [_ranking_call(body, one) for one in body.orderings]
    _check_rankings(scope, body, rankings)
    keys: list[plan.SortKey] = []
    chosen: plan.Ranking | None = None
    for at, (ordering, call) in enumerate(zip(body.orderings, rankings, strict=True)):
        if call is None:
            keys += _key(scope, body, columns, ordering)
        elif (found := _ranking(scope, columns, ordering)) is not None and at == 0:
            chosen = found
    return Order(tuple(keys), chosen)


def amount(scope: Scope, node: m.Literal | m.Variable | None, word: str) -> plan.Value | None:
    """Return the row count of `limit` or `offset`: a literal or an integer parameter."""
    if node is None:
        return None
    if isinstance(node, m.Literal):
        given = constant(scope.report, node)
        value = given.value if given is not None else None
        if isinstance(value, plan.Constant) and type(value.value) is int and value.value >= 0:
            return value
        message = f"`{word}` needs a non-negative integer"
        scope.report.error(node.span, message)
        return None
    return _amount_parameter(scope, node, word)


def _amount_parameter(scope: Scope, node: m.Variable, word: str) -> plan.Value | None:
    given = parameter(scope, node)
    if given is None:
        message = f"`{word}` needs a number or a parameter; `${node.name}` is not a parameter"
        scope.report.error(node.span, message, "T14")
        return None
    if given.type is not None and given.type.is_integer and not given.type.nullable:
        return given.value
    message = f"`{word}` needs a non-nullable integer parameter, not {given.shown()}"
    scope.report.error(node.span, message)
    return None


def _ranking_call(body: m.ReadBody, ordering: m.Ordering) -> m.Call | None:
    """Return the ranking that an ordering names, directly or by the alias of a column."""
    node: m.Expression = ordering.expression
    if isinstance(node, m.Alias):
        named = (one for one in body.projections if one.alias and one.alias.text == node.name)
        node = next((one.expression for one in named), node)
    return node if isinstance(node, m.Call) and node.function in _BEST_FIRST else None


def _check_rankings(scope: Scope, body: m.ReadBody, rankings: list[m.Call | None]) -> None:
    for at, (ordering, call) in enumerate(zip(body.orderings, rankings, strict=True)):
        if call is None:
            continue
        _check_limit(scope, body, ordering, call)
        _check_direction(scope, ordering, call)
        if at > 0:
            message = f"`{call.function}` must be the first sort key"
            scope.report.error(ordering.expression.span, message)
        elif is_aggregated(body.projections):
            message = f"groups cannot be ranked by `{call.function}`"
            scope.report.error(ordering.expression.span, message)


def _check_limit(scope: Scope, body: m.ReadBody, ordering: m.Ordering, call: m.Call) -> None:
    span = ordering.expression.span
    if body.limit is None and call.function in ("nearest", "rrf"):
        code = "T17" if call.function == "nearest" else "T21"
        message = f"`{call.function}` needs a `limit`"
        scope.report.error(span, message, code)
    others = [o for o in body.orderings if o is not ordering and isinstance(o.expression, m.Alias)]
    if call.function == "nearest" and others:
        message = "`nearest` cannot be combined with an ordering by column name"
        scope.report.error(others[0].expression.span, message, "T18")


def _check_direction(scope: Scope, ordering: m.Ordering, call: m.Call) -> None:
    if ordering.direction in (None, _BEST_FIRST[call.function]):
        return
    message = f"`{call.function}` always puts the best rows first"
    if isinstance(ordering.expression, m.Alias):
        scope.report.error(ordering.span, message, hint=f"remove `{ordering.direction}`")
    else:
        hint = f"`{ordering.direction}` is ignored; remove it"
        scope.report.warn(ordering.span, message, "L207", hint=hint)


def _ranking(
    scope: Scope, columns: tuple[plan.Column, ...], ordering: m.Ordering
) -> plan.Ranking | None:
    node = ordering.expression
    if isinstance(node, m.Alias):
        named = next((one.value for one in columns if one.name == node.name), None)
        return named.ranking if isinstance(named, plan.Score) else None
    found = column_value(scope, node)
    if found is not None and isinstance(found.value, plan.Score):
        return found.value.ranking
    return None


def _key(
    scope: Scope, body: m.ReadBody, columns: tuple[plan.Column, ...], ordering: m.Ordering
) -> list[plan.SortKey]:
    descending = ordering.direction == "desc"
    if isinstance(ordering.expression, m.Alias):
        column = _named(scope, body, columns, ordering.expression)
        if column is None:
            return []
        value = Typed(column.value, column.type, ordering.expression.span)
        sortable = _sortable(scope, value)
        return [plan.SortKey(column.value, descending, column.name)] if sortable else []
    found = column_value(scope, ordering.expression)
    if found is None or not _sortable(scope, found) or not _grouped(scope, body, columns, found):
        return []
    column = next((one for one in columns if one.value == found.value), None)
    return [plan.SortKey(found.value, descending, column.name if column else None)]


def _named(
    scope: Scope, body: m.ReadBody, columns: tuple[plan.Column, ...], node: m.Alias
) -> plan.Column | None:
    from omnigraph.lang.query.naming import column_name

    column = next((one for one in columns if one.name == node.name), None)
    names = [column_name(projection) for projection in body.projections]
    if column is None and node.name not in names:
        from omnigraph.lang.schema.names import did_you_mean

        hint = did_you_mean(node.name, names)
        scope.report.error(node.span, f"no column is named `{node.name}`", hint=hint)
    return column


def _sortable(scope: Scope, value: Typed) -> bool:
    if value.is_constant:
        scope.report.error(value.span, "a constant cannot be a sort key")
        return False
    if value.type is not None and not is_scalar(value.type):
        scope.report.error(value.span, f"{value.shown()} cannot be sorted")
        return False
    return True


def _grouped(
    scope: Scope, body: m.ReadBody, columns: tuple[plan.Column, ...], value: Typed
) -> bool:
    """Whether the key still exists after rows are grouped or made distinct; report it if not."""
    returned = any(one.value == value.value for one in columns)
    grouped = is_aggregated(body.projections)
    if isinstance(value.value, plan.Aggregate) and not grouped:
        message = "ordering by an aggregate requires an aggregate in `return`"
        scope.report.error(value.span, message, "T9")
        return False
    if returned or (isinstance(value.value, plan.Aggregate) and not body.distinct):
        return True
    if grouped:
        message = "a grouped query can only be ordered by its columns and by aggregates"
        scope.report.error(value.span, message, "T9")
    elif body.distinct:
        message = "a `distinct` query can only be ordered by its columns"
        scope.report.error(value.span, message)
    return not grouped and not body.distinct
