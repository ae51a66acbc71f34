"""Check paths and edge tests, as in `$p = any shortest $a $e:road{1,9} $b where $e.open = true by $e.km`.

This module checks the path variable, the condition after `where` and the cost after `by`. A path's edge variable is
visible only in the condition and the cost, because it represents every edge on the path.
"""

from typing import cast

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.query.plan_variables import variables_of
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.values import PropertyType, ScalarType

from . import conditions, expressions, search
from .functions import PATH_FUNCTIONS
from .scope import ANONYMOUS, BrokenVariable, EdgeVariable, HopEdgeVariable, PathVariable, Scope
from .typed_values import F64, I64, TypedValue

_ID_LIST = PropertyType(ScalarType.STRING, is_list=True)
_FUNCTION_TYPES = {"length": I64, "nodes": _ID_LIST, "edges": _ID_LIST, "cost": F64}


def spans_many_edges(traversal: m.Traversal) -> bool:
    """Return whether an edge variable in this traversal represents every edge of a path."""
    has_many_hops = traversal.hops is not None and (traversal.hops.low, traversal.hops.high) != (1, 1)
    return has_many_hops or traversal.path is not None


def check_path_pattern(scope: Scope, traversal: m.Traversal, edges: tuple[EdgeType, ...]) -> bool:
    """Return whether a path's variable and hop bounds are valid. Report an error if they are not."""
    path = traversal.path
    if path is None:
        return True
    problem: str | None = None
    span = path.variable.span
    other_variables = (traversal.source, traversal.target, traversal.edge_variable)
    if path.variable.name == ANONYMOUS:
        problem = "a path requires a name"
    elif path.variable.name in scope.parameters:
        problem = f"`${path.variable.name}` is a parameter and cannot be bound"
    elif path.variable.name in scope.variables or any(path.variable.name == one.name for one in other_variables if one):
        problem = f"`${path.variable.name}` is already bound"
    elif traversal.hops is None:
        problem, span = "a path requires hop bounds, as in `knows{1,3}`", traversal.span
    elif any(edge.source != edge.target for edge in edges):
        problem, span = "a path requires an edge between nodes of the same type", traversal.edges[0].span
    elif path.cost is not None:
        problem, span = _cost_problem(traversal, path), path.cost.span
    if problem is not None:
        scope.report.error(span, problem, "T26")
    return problem is None


def _cost_problem(traversal: m.Traversal, path: m.PathPattern) -> str | None:
    if path.mode != "any shortest":
        return f"`by` can only follow `any shortest`, not `{path.mode}`"
    if traversal.hops is not None and traversal.hops.low > 1:
        return "with `by`, the lower hop bound must be 0 or 1"
    return None


def bind_path_variable(scope: Scope, traversal: m.Traversal, type_name: str) -> str | None:
    """Bind the path variable and return its name in the plan, or return None if there is no path."""
    if traversal.path is None:
        return None
    variable_name = traversal.path.variable.name
    plan_name = scope.plan_name(variable_name)
    scope.variables[variable_name] = PathVariable(plan_name, type_name, traversal.path.cost is not None)
    return plan_name


def check_edge_test(scope: Scope, traversal: m.Traversal) -> plan.EdgeTest | None:
    """Return the condition that every edge must satisfy, or None if it is missing or invalid."""
    if traversal.edge_test is None:
        return None
    edge_variable = _named_edge_variable(scope, traversal, traversal.edge_test.span, "where")
    if edge_variable is None:
        return None
    rules = conditions.ConditionRules(
        report=scope.report,
        resolve_operand=lambda expression: expressions.resolve_expression(scope, expression),
        check_text_search=lambda call: search.check_text_search(scope, call),
    )
    predicate = conditions.check_condition(rules, traversal.edge_test)
    if predicate is None:
        return None
    if variables_of(predicate) - {edge_variable.name}:
        message = f"`where` can only test the edge `${traversal.edge_variable.name if traversal.edge_variable else ''}`"
        hint = "write a condition on other variables as a separate clause"
        scope.report.error(traversal.edge_test.span, message, "T23", hint=hint)
        return None
    return plan.EdgeTest(edge_variable.name, (predicate,))


def check_cost(scope: Scope, traversal: m.Traversal) -> plan.PropertyValue | None:
    """Return the numeric edge property after `by`, or None if it is missing or invalid."""
    cost = traversal.path.cost if traversal.path is not None else None
    if cost is None:
        return None
    edge_variable = _named_edge_variable(scope, traversal, cost.span, "by")
    if edge_variable is None:
        return None
    resolved = expressions.resolve_field(scope, cost)
    if resolved is None:
        return None
    is_number = resolved.type is not None and resolved.type.is_numeric
    if not isinstance(resolved.value, plan.PropertyValue) or resolved.value.variable != edge_variable.name:
        scope.report.error(cost.span, "`by` requires a property of the edges on this path", "T26")
    elif not is_number:
        scope.report.error(cost.span, f"`by` requires numbers, not {resolved.describe_type()}", "T26")
    else:
        return resolved.value
    return None


def _named_edge_variable(scope: Scope, traversal: m.Traversal, span: Span, keyword: str) -> EdgeVariable | None:
    variable = traversal.edge_variable
    bound_variable = scope.variables.get(variable.name) if variable is not None else None
    if isinstance(bound_variable, EdgeVariable):
        return bound_variable
    message = f"`{keyword}` requires a named edge"
    hint = f"write `$a $e:{traversal.edges[0].text} $b {keyword} $e.…`"
    scope.report.error(span, message, "T23", hint=hint)
    return None


def hide_edge_variable(scope: Scope, traversal: m.Traversal) -> None:
    """If an edge variable represents many edges, make it unusable outside its traversal."""
    variable = traversal.edge_variable
    bound_variable = scope.variables.get(variable.name) if variable is not None else None
    if variable is not None and isinstance(bound_variable, EdgeVariable) and spans_many_edges(traversal):
        scope.variables[variable.name] = HopEdgeVariable(bound_variable.name)


def is_path_call(scope: Scope, call: m.ScalarCall) -> bool:
    """Return whether a call reads a path. A call to `length` reads a path only if its argument is a path variable."""
    if call.function in PATH_FUNCTIONS:
        return True
    argument = call.arguments[0] if len(call.arguments) == 1 else None
    bound_variable = scope.variables.get(argument.name) if isinstance(argument, m.Variable) else None
    return call.function == "length" and isinstance(bound_variable, PathVariable)


def resolve_path_call(scope: Scope, call: m.ScalarCall) -> TypedValue | None:
    """Resolve a call to a path function, such as `length($p)`. Return None if the call is invalid."""
    argument = call.arguments[0] if len(call.arguments) == 1 else None
    bound_variable = scope.variables.get(argument.name) if isinstance(argument, m.Variable) else None
    if isinstance(bound_variable, BrokenVariable):
        return None
    problem: str | None = None
    if not isinstance(bound_variable, PathVariable):
        problem = f"`{call.function}` requires a path" + _other_argument(argument)
    elif call.function == "cost" and not bound_variable.has_cost:
        problem = "this path has no cost, because it has no `by`"
    if problem is not None or not isinstance(bound_variable, PathVariable):
        hint = "bind a path as in `$p = any shortest $a knows{1,3} $b`"
        scope.report.error(call.span, str(problem), "T26", hint=hint)
        return None
    function_name = cast("plan_paths.PathFunction", call.function)
    value_type = _FUNCTION_TYPES[call.function].as_nullable(bound_variable.optional)
    return TypedValue(plan_paths.PathValue(bound_variable.name, function_name, value_type), value_type, call.span)


def _other_argument(argument: m.Expression | None) -> str:
    return f", and `${argument.name}` is not one" if isinstance(argument, m.Variable) else " as its only argument"
