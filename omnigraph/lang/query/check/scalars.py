"""Check arithmetic and `case`: which operands are compatible, and what type the result has.

Integer arithmetic uses I64, and arithmetic that involves a float or `/` uses F64. Function calls are checked in
`functions`. The caller resolves the operands, because the meaning of names depends on the context.
"""

from collections.abc import Callable

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

from .report import CheckReport
from .typed_values import F64, I64, STRING, TypedValue, is_comparable, is_scalar, is_text


@record
class ScalarRules:
    """The functions that resolve operands and conditions inside an expression."""

    report: CheckReport
    resolve_operand: Callable[[m.Expression], TypedValue | None]
    check_condition: Callable[[m.Condition], plan.Predicate | None]

    def place(self, span: Span) -> plan.SourcePlace:
        """Return an expression's position, for use in errors that occur when the query runs."""
        return plan.SourcePlace(self.report.source, span)


def resolve_scalar(rules: ScalarRules, expression: m.ScalarExpression) -> TypedValue | None:
    """Return the value of a scalar expression, or None after reporting an error."""
    from .functions import resolve_call

    match expression:
        case m.Arithmetic():
            return _resolve_arithmetic(rules, expression)
        case m.Negative():
            return _resolve_negative(rules, expression)
        case m.ScalarCall():
            return resolve_call(rules, expression)
        case m.Case():
            return _resolve_case(rules, expression)


def resolve_all(rules: ScalarRules, expressions: tuple[m.Expression, ...]) -> list[TypedValue] | None:
    """Return the values of several expressions, or None if one of them is invalid."""
    resolved_values = [rules.resolve_operand(expression) for expression in expressions]
    valid_values = [value for value in resolved_values if value is not None]
    return valid_values if len(valid_values) == len(resolved_values) else None


def numeric_result(number_type: PropertyType) -> PropertyType:
    """Return the type used for arithmetic on numbers of this type."""
    return F64 if number_type.scalar.is_float else I64


def common_type(rules: ScalarRules, alternatives: list[TypedValue], construct: str) -> PropertyType | None:
    """Return the result type of a `case` or `coalesce` with these alternatives, or None after reporting an error."""
    typed_alternatives = [alternative for alternative in alternatives if not alternative.is_null]
    if not typed_alternatives:
        rules.report.error(alternatives[0].span, f"`{construct}` requires at least one value that is not null", "T25")
        return None
    first_type = typed_alternatives[0].type
    result_type = first_type
    for alternative in typed_alternatives:
        if alternative.type is None or not is_scalar(alternative.type):
            message = f"`{construct}` requires scalars, not {alternative.describe_type()}"
            rules.report.error(alternative.span, message, "T25")
            return None
        if first_type is None or not is_comparable(first_type, alternative.type):
            message = f"`{construct}` cannot mix {typed_alternatives[0].describe_type()} and "
            rules.report.error(alternative.span, message + alternative.describe_type(), "T25")
            return None
        result_type = _wider_type(result_type, alternative.type)
    return result_type


def _wider_type(first_type: PropertyType | None, second_type: PropertyType) -> PropertyType:
    """Return the common type of two comparable types.

    Two different number types become I64, or F64 if either is a float.
    """
    if first_type is None or first_type.as_nullable(False) == second_type.as_nullable(False):
        return second_type
    if not second_type.scalar.is_numeric:
        return STRING if is_text(second_type) else second_type
    return F64 if first_type.scalar.is_float or second_type.scalar.is_float else I64


def fit_alternative(alternative: TypedValue, result_type: PropertyType) -> plan.Value:
    """Return the plan value for an alternative. A null literal gets the type of the other alternatives."""
    return plan.Constant(None, result_type.as_nullable(True)) if alternative.is_null else alternative.value


def is_nullable(value: TypedValue) -> bool:
    """Return whether a value can be null."""
    return value.is_null or value.type is None or value.type.nullable


def _resolve_arithmetic(rules: ScalarRules, arithmetic: m.Arithmetic) -> TypedValue | None:
    operands = resolve_all(rules, arithmetic.operands)
    if operands is None:
        return None
    result_type = operands[0].type
    for operator, operand in zip(arithmetic.operators, operands[1:], strict=True):
        left_operand = TypedValue(operands[0].value, result_type, operands[0].span)
        result_type = _step_type(rules, left_operand, operator, operand)
        if result_type is None:
            return None
    may_be_null = any(map(is_nullable, operands)) or any(operator in "/%" for operator in arithmetic.operators)
    result_type = (result_type or I64).as_nullable(may_be_null)
    steps = tuple(
        (operator, operand.value) for operator, operand in zip(arithmetic.operators, operands[1:], strict=True)
    )
    value = plan.Arithmetic(operands[0].value, steps, result_type, rules.place(arithmetic.span))
    return TypedValue(value, result_type, arithmetic.span)


def _step_type(
    rules: ScalarRules, left_operand: TypedValue, operator: m.ArithmeticOperator, right_operand: TypedValue
) -> PropertyType | None:
    left_type, right_type = left_operand.type, right_operand.type
    if left_type is not None and right_type is not None and left_type.is_numeric and right_type.is_numeric:
        is_float = operator == "/" or left_type.scalar.is_float or right_type.scalar.is_float
        return F64 if is_float else I64
    if operator == "+" and is_text(left_type) and is_text(right_type):
        return STRING
    odd_operand = left_operand if not _can_compute(left_type, operator) else right_operand
    kinds = "two numbers or two Strings" if operator == "+" else "two numbers"
    message = f"`{operator}` requires {kinds}, not {left_operand.describe_type()} and {right_operand.describe_type()}"
    rules.report.error(odd_operand.span, message, "T7")
    return None


def _can_compute(operand_type: PropertyType | None, operator: m.ArithmeticOperator) -> bool:
    return operand_type is not None and (operand_type.is_numeric or (operator == "+" and is_text(operand_type)))


def _resolve_negative(rules: ScalarRules, negative: m.Negative) -> TypedValue | None:
    operand = rules.resolve_operand(negative.operand)
    if operand is None:
        return None
    if operand.type is None or not operand.type.is_numeric:
        rules.report.error(operand.span, f"`-` requires a number, not {operand.describe_type()}", "T7")
        return None
    result_type = numeric_result(operand.type).as_nullable(operand.type.nullable)
    return TypedValue(plan.Negative(operand.value, result_type, rules.place(negative.span)), result_type, negative.span)


def _resolve_case(rules: ScalarRules, case: m.Case) -> TypedValue | None:
    predicates = [rules.check_condition(branch.condition) for branch in case.branches]
    default = (case.default,) if case.default is not None else ()
    results = resolve_all(rules, (*(branch.value for branch in case.branches), *default))
    valid_predicates = [predicate for predicate in predicates if predicate is not None]
    if results is None or len(valid_predicates) != len(predicates):
        return None
    result_type = common_type(rules, results, "case")
    if result_type is None:
        return None
    result_type = result_type.as_nullable(case.default is None or any(map(is_nullable, results)))
    values = [fit_alternative(result, result_type) for result in results]
    if case.default is None:
        values.append(plan.Constant(None, result_type))
    branches = tuple(zip(valid_predicates, values[:-1], strict=True))
    return TypedValue(plan.Case(branches, values[-1], result_type), result_type, case.span)
