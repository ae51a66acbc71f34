"""Check text conditions and rankings: `search`, `fuzzy`, `match_text`, `bm25`, `nearest` and `rrf`.

This module checks the arguments to these functions (codes T15, T19, T20 and T21). The caller decides where the
functions are allowed.
"""

from typing import Literal as OneOf

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan

from . import expressions, literals
from .scope import EdgeVariable, Scope
from .typed_values import I64, TypedValue, is_text

TextFunction = OneOf["search", "fuzzy", "match_text"]

TEXT_CONDITIONS = ("search", "fuzzy", "match_text")
_MISUSE_CODES = {"search": "T19", "fuzzy": "T19", "match_text": "T20", "bm25": "T20", "nearest": "T15", "rrf": "T21"}
_ARGUMENT_COUNTS = {
    "search": (2, 2),
    "fuzzy": (2, 3),
    "match_text": (2, 2),
    "bm25": (2, 2),
    "nearest": (2, 2),
    "rrf": (2, 3),
}
_DEFAULT_RRF_K = 60


def misuse_code(call: m.Call) -> str:
    """Return the diagnostic code for misuse of the called function."""
    return _MISUSE_CODES[call.function]


def check_text_search(scope: Scope, call: m.Call) -> plan.TextSearch | None:
    """Return the predicate for `search`, `fuzzy` or `match_text`, or None after reporting an error."""
    match call.function:
        case "search" | "fuzzy" | "match_text" as function:
            return _build_text_search(scope, call, function)
    message = f"`{call.function}` is a ranking, not a condition"
    scope.report.error(call.span, message, misuse_code(call))
    return None


def _build_text_search(scope: Scope, call: m.Call, function: TextFunction) -> plan.TextSearch | None:
    if not _check_argument_count(scope, call):
        return None
    text_property = _resolve_text_property(scope, call)
    typed_query = _resolve_text_query(scope, call)
    has_max_edits = len(call.arguments) > 2
    max_edits = _resolve_integer(scope, call, call.arguments[2], 0) if has_max_edits else None
    if text_property is None or typed_query is None or (has_max_edits and max_edits is None):
        return None
    return plan.TextSearch(function, text_property, typed_query.value, max_edits)


def check_ranking(scope: Scope, call: m.Call) -> plan.Ranking | None:
    """Return the ranking for a call such as `bm25` or `nearest`, or None after reporting an error."""
    if not _check_argument_count(scope, call):
        return None
    match call.function:
        case "bm25":
            return _check_bm25(scope, call)
        case "nearest":
            return _check_nearest(scope, call)
        case "rrf":
            return _check_fuse(scope, call)
    message = f"`{call.function}` is a condition and can only be used in `match`"
    scope.report.error(call.span, message, misuse_code(call))
    return None


def _check_argument_count(scope: Scope, call: m.Call) -> bool:
    min_count, max_count = _ARGUMENT_COUNTS[call.function]
    if min_count <= len(call.arguments) <= max_count:
        return True
    expected_count = f"{min_count}" if min_count == max_count else f"{min_count} or {max_count}"
    message = f"`{call.function}` takes {expected_count} arguments"
    scope.report.error(call.span, message, misuse_code(call))
    return False


def _check_bm25(scope: Scope, call: m.Call) -> plan.Bm25 | None:
    text_property = _resolve_text_property(scope, call)
    typed_query = _resolve_text_query(scope, call)
    return (
        plan.Bm25(text_property, typed_query.value) if text_property is not None and typed_query is not None else None
    )


def _check_nearest(scope: Scope, call: m.Call) -> plan.Nearest | None:
    vector_property = _resolve_property(scope, call)
    typed_query = _resolve_constant_query(scope, call)
    if vector_property is None or typed_query is None:
        return None
    if not vector_property.type.is_vector:
        message = f"`nearest` requires a Vector property, not {vector_property.type.display()}"
        scope.report.error(call.arguments[0].span, message, "T15")
        return None
    query_value = _resolve_query_vector(scope, typed_query, vector_property)
    embedding_model = _embedding_model(scope, call.arguments[0])
    return plan.Nearest(vector_property, query_value, embedding_model) if query_value is not None else None


def _resolve_query_vector(
    scope: Scope, typed_query: TypedValue, vector_property: plan.PropertyValue
) -> plan.Value | None:
    """Return the query vector for `nearest`: a vector with the property's dimension, or text to embed."""
    vector_type = vector_property.type.as_nullable(False)
    if is_text(typed_query.type) and not typed_query.is_null:
        return typed_query.value
    if isinstance(typed_query.value, plan.Constant):
        stored_constant = literals.fit_constant(typed_query.value, vector_type)
        if isinstance(stored_constant, plan.Constant):
            return stored_constant
        scope.report.error(typed_query.span, stored_constant, "T15")
        return None
    if typed_query.type is not None and typed_query.type.as_nullable(False) == vector_type:
        return typed_query.value
    message = f"`nearest` requires {vector_type.display()} or String here, not {typed_query.describe_type()}"
    hint = f"declare the parameter, as in `query q($v: {vector_type.display()})`"
    scope.report.error(typed_query.span, message, "T15", hint=hint)
    return None


def _embedding_model(scope: Scope, expression: m.Expression) -> str | None:
    declaration = expressions.find_declaration(scope, expression) if isinstance(expression, m.Field) else None
    return declaration.embed.model if declaration is not None and declaration.embed is not None else None


def _check_fuse(scope: Scope, call: m.Call) -> plan.Fuse | None:
    fused_rankings = [_check_fused_ranking(scope, argument) for argument in call.arguments[:2]]
    has_k = len(call.arguments) > 2
    rank_constant = _resolve_integer(scope, call, call.arguments[2], 1) if has_k else plan.Constant(_DEFAULT_RRF_K, I64)
    first_ranking, second_ranking = fused_rankings
    if first_ranking is None or second_ranking is None or rank_constant is None:
        return None
    if first_ranking.field.variable != second_ranking.field.variable:
        message = "both rankings in `rrf` must use the same variable"
        scope.report.error(call.arguments[1].span, message, "T21")
        return None
    return plan.Fuse(first_ranking, second_ranking, rank_constant)


def _check_fused_ranking(scope: Scope, argument: m.Expression) -> plan.Bm25 | plan.Nearest | None:
    if not isinstance(argument, m.Call) or argument.function not in ("bm25", "nearest"):
        message = "`rrf` expects `nearest` or `bm25` here"
        scope.report.error(argument.span, message, "T21")
        return None
    checked_ranking = check_ranking(scope, argument)
    return checked_ranking if isinstance(checked_ranking, plan.Bm25 | plan.Nearest) else None


def _resolve_text_property(scope: Scope, call: m.Call) -> plan.PropertyValue | None:
    property_value = _resolve_property(scope, call)
    if property_value is None or is_text(property_value.type):
        return property_value
    message = f"`{call.function}` requires a String property, not {property_value.type.display()}"
    scope.report.error(call.arguments[0].span, message, misuse_code(call))
    return None


def _resolve_property(scope: Scope, call: m.Call) -> plan.PropertyValue | None:
    """Return the declared node property that a function is applied to, or None after reporting an error."""
    property_argument = call.arguments[0]
    if not isinstance(property_argument, m.Field):
        message = f"the first argument to `{call.function}` must be a property such as `$x.title`"
        scope.report.error(property_argument.span, message, misuse_code(call))
        return None
    if isinstance(scope.variables.get(property_argument.variable), EdgeVariable):
        message = f"`{call.function}` requires a node property; `${property_argument.variable}` is an edge"
        scope.report.error(property_argument.span, message, "T23")
        return None
    typed_value = expressions.resolve_field(scope, property_argument)
    if typed_value is None:
        return None
    if isinstance(typed_value.value, plan.PropertyValue):
        return typed_value.value
    message = f"`{call.function}` requires a declared property, not `id`"
    scope.report.error(property_argument.span, message, misuse_code(call))
    return None


def _resolve_text_query(scope: Scope, call: m.Call) -> TypedValue | None:
    typed_query = _resolve_constant_query(scope, call)
    if typed_query is None or (is_text(typed_query.type) and not typed_query.is_null):
        return typed_query
    message = f"`{call.function}` requires a String to search for, not {typed_query.describe_type()}"
    scope.report.error(typed_query.span, message, misuse_code(call))
    return None


def _resolve_constant_query(scope: Scope, call: m.Call) -> TypedValue | None:
    """Resolve a function's second argument, which must be a literal or a parameter."""
    typed_query = _resolve_argument(scope, call, call.arguments[1])
    if typed_query is None or typed_query.is_constant:
        return typed_query
    message = f"`{call.function}` requires a literal or a parameter here"
    scope.report.error(typed_query.span, message, misuse_code(call))
    return None


def _resolve_integer(scope: Scope, call: m.Call, expression: m.Expression, minimum: int) -> plan.Value | None:
    """Resolve a parameter or an integer literal of at least `minimum`. Return None after reporting an error."""
    typed_value = _resolve_argument(scope, call, expression)
    if typed_value is None:
        return None
    integer_value = typed_value.value
    if isinstance(integer_value, plan.Constant) and isinstance(integer_value.value, int):
        if typed_value.type == I64 and integer_value.value >= minimum:
            return integer_value
    elif isinstance(integer_value, plan.Parameter) and integer_value.type.is_integer:
        return integer_value
    _report_not_integer(scope, call, expression.span, minimum)
    return None


def _report_not_integer(scope: Scope, call: m.Call, span: Span, minimum: int) -> None:
    requirement = "positive integer" if minimum else "non-negative integer"
    message = f"the last argument to `{call.function}` must be a {requirement}"
    scope.report.error(span, message, misuse_code(call))


def _resolve_argument(scope: Scope, call: m.Call, expression: m.Expression) -> TypedValue | None:
    if isinstance(expression, m.Call | m.Aggregate | m.Alias):
        message = f"`{call.function}` requires a literal or a parameter here"
        scope.report.error(expression.span, message, misuse_code(call))
        return None
    return expressions.resolve_expression(scope, expression)
