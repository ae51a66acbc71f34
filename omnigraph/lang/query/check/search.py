"""Text conditions and rankings: `search`, `fuzzy`, `match_text`, `bm25`, `nearest`, `rrf`.

Owns the rules for their arguments (T15, T19, T20, T21). The caller decides where they are allowed.
"""

from typing import Literal as OneOf

from omnigraph.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan

from . import expressions, literals
from .scope import EdgeVariable, Scope
from .typed import I64, Typed, is_text

TextFunction = OneOf["search", "fuzzy", "match_text"]

CONDITIONS = ("search", "fuzzy", "match_text")
_CODES = {
    "search": "T19",
    "fuzzy": "T19",
    "match_text": "T20",
    "bm25": "T20",
    "nearest": "T15",
    "rrf": "T21",
}
_COUNTS = {
    "search": (2, 2),
    "fuzzy": (2, 3),
    "match_text": (2, 2),
    "bm25": (2, 2),
    "nearest": (2, 2),
    "rrf": (2, 3),
}
_DEFAULT_K = 60


def code_of(call: m.Call) -> str:
    """Return the code that reports misuse of this function."""
    return _CODES[call.function]


def text_search(scope: Scope, call: m.Call) -> plan.TextSearch | None:
    """Return a condition on the text of a property."""
    match call.function:
        case "search" | "fuzzy" | "match_text" as function:
            return _text_search(scope, call, function)
    message = f"`{call.function}` is a ranking, not a condition"
    scope.report.error(call.span, message, code_of(call))
    return None


def _text_search(scope: Scope, call: m.Call, function: TextFunction) -> plan.TextSearch | None:
    if not _counted(scope, call):
        return None
    target, query = _text_field(scope, call), _text_query(scope, call)
    given = len(call.arguments) > 2
    edits = _whole(scope, call, call.arguments[2], 0) if given else None
    if target is None or query is None or (given and edits is None):
        return None
    return plan.TextSearch(function, target, query.value, edits)


def ranking(scope: Scope, call: m.Call) -> plan.Ranking | None:
    """Return a ranking: a number for each row, by which rows can be sorted."""
    if not _counted(scope, call):
        return None
    match call.function:
        case "bm25":
            return _bm25(scope, call)
        case "nearest":
            return _nearest(scope, call)
        case "rrf":
            return _fuse(scope, call)
    message = f"`{call.function}` is a condition and can only be used in `match`"
    scope.report.error(call.span, message, code_of(call))
    return None


def _counted(scope: Scope, call: m.Call) -> bool:
    low, high = _COUNTS[call.function]
    if low <= len(call.arguments) <= high:
        return True
    wanted = f"{low}" if low == high else f"{low} or {high}"
    message = f"`{call.function}` takes {wanted} arguments"
    scope.report.error(call.span, message, code_of(call))
    return False


def _bm25(scope: Scope, call: m.Call) -> plan.Bm25 | None:
    target, query = _text_field(scope, call), _text_query(scope, call)
    return plan.Bm25(target, query.value) if target is not None and query is not None else None


def _nearest(scope: Scope, call: m.Call) -> plan.Nearest | None:
    target = _field(scope, call)
    query = _constant(scope, call)
    if target is None or query is None:
        return None
    if not target.type.is_vector:
        message = f"`nearest` needs a Vector property, not {target.type.display()}"
        scope.report.error(call.arguments[0].span, message, "T15")
        return None
    value = _position(scope, query, target)
    model = _model(scope, call.arguments[0])
    return plan.Nearest(target, value, model) if value is not None else None


def _position(scope: Scope, query: Typed, target: plan.PropertyValue) -> plan.Value | None:
    """Return the point to measure from: a vector of the same dimension, or text to embed."""
    wanted = target.type.as_nullable(False)
    if is_text(query.type) and not query.is_null:
        return query.value
    if isinstance(query.value, plan.Constant):
        stored = literals.fit(query.value, wanted)
        if isinstance(stored, plan.Constant):
            return stored
        scope.report.error(query.span, stored, "T15")
        return None
    if query.type is not None and query.type.as_nullable(False) == wanted:
        return query.value
    message = f"`nearest` needs {wanted.display()} or String here, not {query.shown()}"
    hint = f"declare the parameter: `query q($v: {wanted.display()})`"
    scope.report.error(query.span, message, "T15", hint=hint)
    return None


def _model(scope: Scope, target: m.Expression) -> str | None:
    declared = expressions.declared(scope, target) if isinstance(target, m.Field) else None
    return declared.embed.model if declared is not None and declared.embed is not None else None


def _fuse(scope: Scope, call: m.Call) -> plan.Fuse | None:
    arms = [_arm(scope, argument) for argument in call.arguments[:2]]
    given = len(call.arguments) > 2
    k = _whole(scope, call, call.arguments[2], 1) if given else plan.Constant(_DEFAULT_K, I64)
    first, second = arms
    if first is None or second is None or k is None:
        return None
    if first.field.variable != second.field.variable:
        message = "both rankings of `rrf` must rank the same variable"
        scope.report.error(call.arguments[1].span, message, "T21")
        return None
    return plan.Fuse(first, second, k)


def _arm(scope: Scope, argument: m.Expression) -> plan.Bm25 | plan.Nearest | None:
    if not isinstance(argument, m.Call) or argument.function not in ("bm25", "nearest"):
        message = "`rrf` takes `nearest` and `bm25`"
        scope.report.error(argument.span, message, "T21")
        return None
    found = ranking(scope, argument)
    return found if isinstance(found, plan.Bm25 | plan.Nearest) else None


def _text_field(scope: Scope, call: m.Call) -> plan.PropertyValue | None:
    target = _field(scope, call)
    if target is None or is_text(target.type):
        return target
    message = f"`{call.function}` needs a String property, not {target.type.display()}"
    scope.report.error(call.arguments[0].span, message, code_of(call))
    return None


def _field(scope: Scope, call: m.Call) -> plan.PropertyValue | None:
    """Return the declared property of a node that a function works on."""
    target = call.arguments[0]
    if not isinstance(target, m.Field):
        message = f"the first argument of `{call.function}` must be a property such as `$x.title`"
        scope.report.error(target.span, message, code_of(call))
        return None
    if isinstance(scope.variables.get(target.variable), EdgeVariable):
        message = f"`{call.function}` works on nodes; `${target.variable}` is an edge"
        scope.report.error(target.span, message, "T23")
        return None
    found = expressions.field(scope, target)
    if found is None:
        return None
    if isinstance(found.value, plan.PropertyValue):
        return found.value
    message = f"`{call.function}` needs a declared property, not `id`"
    scope.report.error(target.span, message, code_of(call))
    return None


def _text_query(scope: Scope, call: m.Call) -> Typed | None:
    query = _constant(scope, call)
    if query is None or (is_text(query.type) and not query.is_null):
        return query
    message = f"`{call.function}` searches for a String, not {query.shown()}"
    scope.report.error(query.span, message, code_of(call))
    return None


def _constant(scope: Scope, call: m.Call) -> Typed | None:
    """Resolve the second argument: a literal or a parameter."""
    query = _value(scope, call, call.arguments[1])
    if query is None or query.is_constant:
        return query
    message = f"`{call.function}` takes a literal or a parameter here"
    scope.report.error(query.span, message, code_of(call))
    return None


def _whole(scope: Scope, call: m.Call, node: m.Expression, least: int) -> plan.Value | None:
    """Resolve an integer of at least `minimum`, as a literal or parameter."""
    given = _value(scope, call, node)
    if given is None:
        return None
    value = given.value
    if isinstance(value, plan.Constant) and isinstance(value.value, int):
        if given.type == I64 and value.value >= least:
            return value
    elif isinstance(value, plan.Parameter) and value.type.is_integer:
        return value
    _not_whole(scope, call, node.span, least)
    return None


def _not_whole(scope: Scope, call: m.Call, span: Span, least: int) -> None:
    bound = "positive integer" if least else "non-negative integer"
    message = f"the last argument of `{call.function}` must be a {bound}"
    scope.report.error(span, message, code_of(call))


def _value(scope: Scope, call: m.Call, node: m.Expression) -> Typed | None:
    if isinstance(node, m.Call | m.Aggregate | m.Alias):
        message = f"`{call.function}` takes a literal or a parameter here"
        scope.report.error(node.span, message, code_of(call))
        return None
    return expressions.resolve(scope, node)
