"""Check calls to scalar functions: names, arguments and result types.

This module contains the table of functions. Arguments that must be the same for all rows, such as a pattern, must be
literals or parameters. This module checks the literals; parameters are checked when the query runs.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import cast

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .patterns import find_pattern_error
from .scalars import ScalarRules, common_type, fit_alternative, is_nullable, numeric_result, resolve_all
from .typed_values import BOOL, F64, I64, STRING, TypedValue, is_text

MAX_ROUND_DIGITS = 15
_DATE_SCALARS = (ScalarType.DATE, ScalarType.DATETIME)
_SPECIAL_FUNCTIONS = ("search", "match_text", "fuzzy", "bm25", "nearest", "rrf", "date", "datetime")
PATH_FUNCTIONS = ("nodes", "edges", "cost")


@record
class ArgumentRule:
    """A requirement for an argument. `expected` describes the requirement, and `accepts` tests the argument's type."""

    expected: str
    accepts: Callable[[PropertyType], bool]
    is_fixed: bool = False
    check_literal: Callable[[object], str | None] = lambda _: None


@record
class FunctionRule:
    """A function's arguments and result type. The result is null if any argument is null."""

    arguments: tuple[ArgumentRule, ...]
    result_type: Callable[[list[TypedValue]], PropertyType]
    required_count: int | None = None

    @property
    def min_count(self) -> int:
        """Return the minimum number of arguments."""
        return len(self.arguments) if self.required_count is None else self.required_count


def _check_minimum(minimum: int) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        return None if isinstance(value, int) and value >= minimum else f"must be at least {minimum}, not {value}"

    return check


def _check_digits(value: object) -> str | None:
    if isinstance(value, int) and abs(value) <= MAX_ROUND_DIGITS:
        return None
    return f"must be between -{MAX_ROUND_DIGITS} and {MAX_ROUND_DIGITS}, not {value}"


def _check_pattern(value: object) -> str | None:
    pattern_error = find_pattern_error(str(value))
    return f"is not a valid regular expression: {pattern_error}" if pattern_error is not None else None


_TEXT = ArgumentRule("a String", is_text)
_TEXT_OR_LIST = ArgumentRule("a String, a list or a path", lambda type_: is_text(type_) or type_.is_list)
_NUMBER = ArgumentRule("a number", lambda type_: type_.is_numeric)
_DAY = ArgumentRule("a Date or a DateTime", lambda type_: type_.scalar in _DATE_SCALARS and not type_.is_list)
_MOMENT = ArgumentRule("a DateTime", lambda type_: type_.scalar is ScalarType.DATETIME and not type_.is_list)
_FIXED_TEXT = ArgumentRule("a String", is_text, is_fixed=True)
_NEEDLE = ArgumentRule("a String", is_text, True, lambda value: None if value else "must not be empty")
_PATTERN = ArgumentRule("a String", is_text, True, _check_pattern)
_START = ArgumentRule("an integer", lambda type_: type_.is_integer, True, _check_minimum(1))
_COUNT = ArgumentRule("an integer", lambda type_: type_.is_integer, True, _check_minimum(0))
_DIGITS = ArgumentRule("an integer", lambda type_: type_.is_integer, True, _check_digits)


def _returns(result_type: PropertyType) -> Callable[[list[TypedValue]], PropertyType]:
    return lambda _: result_type


def _computed_number(arguments: list[TypedValue]) -> PropertyType:
    return numeric_result(arguments[0].type or F64)


_FUNCTIONS: dict[str, FunctionRule] = {
    "lower": FunctionRule((_TEXT,), _returns(STRING)),
    "upper": FunctionRule((_TEXT,), _returns(STRING)),
    "length": FunctionRule((_TEXT_OR_LIST,), _returns(I64)),
    "substring": FunctionRule((_TEXT, _START, _COUNT), _returns(STRING), required_count=2),
    "replace": FunctionRule((_TEXT, _NEEDLE, _FIXED_TEXT), _returns(STRING)),
    "split": FunctionRule((_TEXT, _NEEDLE), _returns(PropertyType(ScalarType.STRING, is_list=True))),
    "matches": FunctionRule((_TEXT, _PATTERN), _returns(BOOL)),
    "abs": FunctionRule((_NUMBER,), _computed_number),
    "round": FunctionRule((_NUMBER, _DIGITS), _computed_number, required_count=1),
    "floor": FunctionRule((_NUMBER,), _computed_number),
    "ceil": FunctionRule((_NUMBER,), _computed_number),
    "year": FunctionRule((_DAY,), _returns(I64)),
    "month": FunctionRule((_DAY,), _returns(I64)),
    "day": FunctionRule((_DAY,), _returns(I64)),
    "hour": FunctionRule((_MOMENT,), _returns(I64)),
    "minute": FunctionRule((_MOMENT,), _returns(I64)),
    "second": FunctionRule((_MOMENT,), _returns(I64)),
}


def resolve_call(rules: ScalarRules, call: m.ScalarCall) -> TypedValue | None:
    """Return the value of a function call, or None after reporting an error."""
    function_rule = _FUNCTIONS.get(call.function)
    if function_rule is None and call.function != "coalesce":
        _report_unknown(rules, call)
        return None
    arguments = resolve_all(rules, call.arguments)
    if arguments is None:
        return None
    if function_rule is None:
        return _resolve_coalesce(rules, call, arguments)
    if not _check_count(rules, call, function_rule):
        return None
    checks = [
        _check_argument(rules, call, argument_rule, argument)
        for argument_rule, argument in zip(function_rule.arguments, arguments, strict=False)
    ]
    if not all(checks):
        return None
    result_type = function_rule.result_type(arguments).as_nullable(any(map(is_nullable, arguments)))
    return _call_value(rules, call, tuple(argument.value for argument in arguments), result_type)


def _call_value(
    rules: ScalarRules, call: m.ScalarCall, arguments: tuple[plan.Value, ...], result_type: PropertyType
) -> TypedValue:
    function_name = cast("plan.ScalarFunction", call.function)
    value = plan.ScalarCall(function_name, arguments, result_type, rules.place(call.span))
    return TypedValue(value, result_type, call.span)


def _name_span(call: m.ScalarCall) -> Span:
    return Span(call.span.start, call.span.start + len(call.function))


def _report_unknown(rules: ScalarRules, call: m.ScalarCall) -> None:
    if call.function in _SPECIAL_FUNCTIONS:
        rules.report.error(_name_span(call), f"`{call.function}` cannot be used inside an expression", "T25")
        return
    if call.function in PATH_FUNCTIONS:
        rules.report.error(
            call.span, f"`{call.function}` requires a path, but this part of the query does not bind one", "T26"
        )
        return
    function_names = sorted([*_FUNCTIONS, *PATH_FUNCTIONS, "coalesce"])
    hint = did_you_mean(call.function, function_names) or f"available functions: {', '.join(function_names)}"
    rules.report.error(_name_span(call), f"unknown function `{call.function}`", "T25", hint=hint)


def _check_count(rules: ScalarRules, call: m.ScalarCall, function_rule: FunctionRule) -> bool:
    min_count, max_count = function_rule.min_count, len(function_rule.arguments)
    if min_count <= len(call.arguments) <= max_count:
        return True
    expected_count = f"{min_count}" if min_count == max_count else f"{min_count} or {max_count}"
    noun = "argument" if max_count == 1 else "arguments"
    message = f"`{call.function}` takes {expected_count} {noun}, not {len(call.arguments)}"
    rules.report.error(call.span, message, "T25")
    return False


def _check_argument(rules: ScalarRules, call: m.ScalarCall, argument_rule: ArgumentRule, argument: TypedValue) -> bool:
    if argument.is_null or argument.type is None or not argument_rule.accepts(argument.type):
        message = f"`{call.function}` requires {argument_rule.expected} here, not {argument.describe_type()}"
        rules.report.error(argument.span, message, "T25")
        return False
    if not argument_rule.is_fixed:
        return True
    if not argument.is_constant:
        rules.report.error(argument.span, f"`{call.function}` requires a literal or a parameter here", "T25")
        return False
    problem = argument_rule.check_literal(argument.value.value) if isinstance(argument.value, plan.Constant) else None
    if problem is not None:
        rules.report.error(argument.span, f"this argument to `{call.function}` {problem}", "T25")
    return problem is None


def _resolve_coalesce(rules: ScalarRules, call: m.ScalarCall, arguments: list[TypedValue]) -> TypedValue | None:
    if not arguments:
        rules.report.error(call.span, "`coalesce` takes at least 1 argument", "T25")
        return None
    result_type = common_type(rules, arguments, "coalesce")
    if result_type is None:
        return None
    result_type = result_type.as_nullable(all(map(is_nullable, arguments)))
    for earlier_argument, argument in pairwise(arguments):
        if not is_nullable(earlier_argument):
            message = "this argument to `coalesce` is never used, because the argument before it is never null"
            rules.report.warn(argument.span, message, "L208", hint="remove this argument")
            break
    values = tuple(fit_alternative(argument, result_type) for argument in arguments)
    return _call_value(rules, call, values, result_type)
