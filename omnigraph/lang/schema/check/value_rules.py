"""Check `@range` and `@check`, which restrict a node property's values."""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.schema import catalog, literals, model
from omnigraph.values import ScalarType

from .columns import ConstraintColumn, resolve_column
from .draft import TypeDraft
from .findings import CheckStage, SchemaFindings


def read_value_rule(
    draft: TypeDraft, constraint: model.Constraint, findings: SchemaFindings
) -> catalog.Constraint | None:
    """Return the rule that a `@range` or `@check` declares, or None if it is invalid."""
    if draft.kind == "edge":
        message = f"`@{constraint.kind}` is not allowed on {draft.label}"
        hint = "only nodes can have `@range` and `@check` constraints"
        findings.add(CheckStage.CONSTRAINT, constraint.span, message, hint)
        return None
    for option in constraint.options:
        message = f"`@{constraint.kind}` has no option `{option.name.text}`"
        findings.add(CheckStage.CONSTRAINT, option.name.span, message)
    read_rule = _read_range if constraint.kind == "range" else _read_check
    return read_rule(draft, constraint, findings)


def _read_range(draft: TypeDraft, constraint: model.Constraint, findings: SchemaFindings) -> catalog.Constraint | None:
    match constraint.arguments:
        case (model.Literal(), model.Bounds() as bounds):
            column = resolve_column(draft, constraint, constraint.arguments[0], findings)
        case _:
            message = "`@range` takes a property and its bounds"
            hint = "write `@range(year, 1600..2100)`; one bound may be omitted"
            findings.add(CheckStage.CONSTRAINT, constraint.span, message, hint)
            return None
    lower_bound, upper_bound = (_read_bound(bound_literal, findings) for bound_literal in (bounds.low, bounds.high))
    if lower_bound is not None and upper_bound is not None and lower_bound > upper_bound:
        message = f"`@range`: the lower bound {lower_bound} is greater than the upper bound {upper_bound}"
        findings.add(CheckStage.CONSTRAINT, bounds.span, message, "no value can satisfy this range")
    if column is None or not _check_column_kind(column, constraint, "numeric", findings):
        return None
    return catalog.Range(column.name, lower_bound, upper_bound)


def _read_bound(bound_literal: model.Literal | None, findings: SchemaFindings) -> int | float | None:
    if bound_literal is None:
        return None
    bound = literals.parse_number(bound_literal)
    if bound is None:
        message = "this bound is too large for any numeric type"
        findings.add(CheckStage.CONSTRAINT, bound_literal.span, message)
    return bound


def _read_check(draft: TypeDraft, constraint: model.Constraint, findings: SchemaFindings) -> catalog.Constraint | None:
    match constraint.arguments:
        case (model.Literal(), model.Literal(kind="string") as pattern):
            column = resolve_column(draft, constraint, constraint.arguments[0], findings)
        case _:
            message = "`@check` takes a property and a quoted pattern"
            hint = 'write `@check(code, "^[A-Z]+$")`'
            findings.add(CheckStage.CONSTRAINT, constraint.span, message, hint)
            return None
    _check_pattern(pattern, findings)
    if column is None or not _check_column_kind(column, constraint, "String", findings):
        return None
    return catalog.Check(column.name, pattern.text)


def _check_column_kind(
    column: ConstraintColumn, constraint: model.Constraint, required_kind: str, findings: SchemaFindings
) -> bool:
    """Return whether the column's type is of the required kind, `numeric` or `String`.

    A column with an invalid type is accepted, because that error has already been reported.
    """
    if column.type is None:
        return True
    is_string = column.type.scalar is ScalarType.STRING and not column.type.is_list
    if column.type.is_numeric if required_kind == "numeric" else is_string:
        return True
    message = f"`@{constraint.kind}` requires a {required_kind} property; `{column.name}` is {column.type.display()}"
    findings.add(CheckStage.CONSTRAINT, column.span, message)
    return False


def _check_pattern(pattern: model.Literal, findings: SchemaFindings) -> None:
    import re2  # type: ignore[import-untyped]  # imported lazily, because only some schemas have patterns

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern.text, options)
    except (re2.error, UnicodeError) as error:
        error_detail = error.args[0]
        reason = str(error_detail, "utf-8", "replace") if isinstance(error_detail, bytes) else "not Unicode text"
        span, message = _locate_pattern_error(pattern, reason, findings)
        hint = "patterns use RE2 syntax, which has no lookaround or backreferences"
        findings.add(CheckStage.CONSTRAINT, span, f"`@check`: {message}", hint)


def _locate_pattern_error(pattern: model.Literal, reason: str, findings: SchemaFindings) -> tuple[Span, str]:
    """Return the position and message for an RE2 error.

    `reason` is RE2's message. After a colon, it may quote the invalid part of the pattern.
    """
    complaint, _, faulty_part = reason.partition(": ")
    part_index = pattern.text.find(faulty_part) if faulty_part else -1
    message = "invalid pattern" + (f" `{faulty_part}`" if faulty_part else "") + f": {complaint}"
    if part_index < 0:
        return pattern.span, message
    quoted_pattern = findings.source.text[pattern.span.start : pattern.span.end]
    start = pattern.span.start + literals.quoted_offset(quoted_pattern, part_index)
    end = pattern.span.start + literals.quoted_offset(quoted_pattern, part_index + len(faulty_part))
    return Span(start, end), message


def check_defaults(node: catalog.NodeType, findings: SchemaFindings) -> None:
    """Reject a `@default` that violates a `@range` or `@check` on the same node."""
    for rule in node.constraints:
        if not isinstance(rule, catalog.Range | catalog.Check):
            continue
        definition = node.property(rule.column)
        if definition is None or definition.default is None or not _rule_applies(rule, definition):
            continue
        default = definition.default
        if not _default_satisfies_rule(rule, default):
            constraint_name = "range" if isinstance(rule, catalog.Range) else "check"
            message = f"`@default` on `{rule.column}`: `{default.text}` violates its `@{constraint_name}`"
            findings.add(CheckStage.CONSTRAINT, default.span, message)


def _rule_applies(rule: catalog.Range | catalog.Check, definition: catalog.PropertyDefinition) -> bool:
    """Return whether the rule supports the property's type. Mismatches have already been reported."""
    if isinstance(rule, catalog.Range):
        return definition.type.is_numeric
    return definition.default is not None and definition.default.kind == "string"


def _default_satisfies_rule(rule: catalog.Range | catalog.Check, default: model.Literal) -> bool:
    if isinstance(rule, catalog.Range):
        value = literals.parse_number(default)
        reaches_minimum = rule.low is None or value is None or value >= rule.low
        return reaches_minimum and (rule.high is None or value is None or value <= rule.high)
    import re2

    try:
        return re2.search(rule.pattern, default.text) is not None
    except re2.error:  # invalid patterns have already been reported
        return True
