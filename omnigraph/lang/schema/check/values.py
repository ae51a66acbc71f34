"""`@range` and `@check`: rules for the values of one property of a node."""

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import catalog, literals, model
from omnigraph.values import ScalarType

from .columns import Column, resolve_one
from .draft import Draft
from .findings import Findings, Stage


def read_value_rule(
    draft: Draft, written: model.Constraint, findings: Findings
) -> catalog.Constraint | None:
    """Return the rule of a `@range` or `@check`, or None if it is rejected."""
    if draft.kind == "edge":
        message = f"`@{written.kind}` is not allowed on edges: {draft.label}"
        findings.add(Stage.CONSTRAINT, written.span, message, "only nodes have value rules")
        return None
    for option in written.options:
        message = f"`@{written.kind}` has no option `{option.name.text}`"
        findings.add(Stage.CONSTRAINT, option.name.span, message)
    read = _read_range if written.kind == "range" else _read_check
    return read(draft, written, findings)


def _read_range(
    draft: Draft, written: model.Constraint, findings: Findings
) -> catalog.Constraint | None:
    match written.arguments:
        case (model.Literal(), model.Bounds() as bounds):
            column = resolve_one(draft, written, written.arguments[0], findings)
        case _:
            message = "`@range` takes a property and its bounds"
            hint = "write `@range(year, 1600..2100)`; one bound may be omitted"
            findings.add(Stage.CONSTRAINT, written.span, message, hint)
            return None
    low, high = (_bound(literal, findings) for literal in (bounds.low, bounds.high))
    if low is not None and high is not None and low > high:
        message = f"`@range`: the lower bound {low} is greater than the upper bound {high}"
        findings.add(Stage.CONSTRAINT, bounds.span, message, "no value can satisfy it")
    if column is None or not _is(column, written, "numeric", findings):
        return None
    return catalog.Range(column.name, low, high)


def _bound(literal: model.Literal | None, findings: Findings) -> int | float | None:
    if literal is None:
        return None
    value = literals.number(literal)
    if value is None:
        message = "this bound is too large for any number type"
        findings.add(Stage.CONSTRAINT, literal.span, message)
    return value


def _read_check(
    draft: Draft, written: model.Constraint, findings: Findings
) -> catalog.Constraint | None:
    match written.arguments:
        case (model.Literal(), model.Literal(kind="string") as pattern):
            column = resolve_one(draft, written, written.arguments[0], findings)
        case _:
            message = "`@check` takes a property and a quoted pattern"
            hint = 'write `@check(code, "^[A-Z]+$")`'
            findings.add(Stage.CONSTRAINT, written.span, message, hint)
            return None
    _check_pattern(pattern, findings)
    if column is None or not _is(column, written, "String", findings):
        return None
    return catalog.Check(column.name, pattern.text)


def _is(column: Column, written: model.Constraint, wanted: str, findings: Findings) -> bool:
    """Return whether the column is `numeric` or `String` as required; unreadable types pass."""
    if column.type is None:
        return True
    is_text = column.type.scalar is ScalarType.STRING and not column.type.is_list
    if column.type.is_numeric if wanted == "numeric" else is_text:
        return True
    message = (
        f"`@{written.kind}` needs a {wanted} property; `{column.name}` is {column.type.display()}"
    )
    findings.add(Stage.CONSTRAINT, column.span, message)
    return False


def _check_pattern(pattern: model.Literal, findings: Findings) -> None:
    import re2  # type: ignore[import-untyped]  # imported here: only schemas with patterns need it

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern.text, options)
    except (re2.error, UnicodeError) as error:
        said = error.args[0]
        reason = str(said, "utf-8", "replace") if isinstance(said, bytes) else "not Unicode text"
        span, message = _place(pattern, reason, findings)
        hint = "patterns are RE2: no look-around, no back-references"
        findings.add(Stage.CONSTRAINT, span, f"`@check`: {message}", hint)


def _place(pattern: model.Literal, reason: str, findings: Findings) -> tuple[Span, str]:
    """Return the position and message of an RE2 error; RE2 quotes the part after the last colon."""
    said, _, part = reason.partition(": ")
    at = pattern.text.find(part) if part else -1
    message = f"invalid pattern, {said}" + (f" `{part}`" if part else "")
    if at < 0:
        return pattern.span, message
    quoted = findings.source.text[pattern.span.start : pattern.span.end]
    start = pattern.span.start + literals.offset_in(quoted, at)
    end = pattern.span.start + literals.offset_in(quoted, at + len(part))
    return Span(start, end), message


def check_defaults(node: catalog.Node, findings: Findings) -> None:
    """Reject a `@default` that violates a rule of its own node."""
    for rule in node.constraints:
        if not isinstance(rule, catalog.Range | catalog.Check):
            continue
        prop = node.property(rule.column)
        if prop is None or prop.default is None or not _applies(rule, prop):
            continue
        default = prop.default
        if not _allows(rule, default):
            word = "range" if isinstance(rule, catalog.Range) else "check"
            message = f"`@default` on `{rule.column}`: `{default.text}` violates its `@{word}`"
            findings.add(Stage.CONSTRAINT, default.span, message)


def _applies(rule: catalog.Range | catalog.Check, prop: catalog.Property) -> bool:
    """Return whether the rule supports the type of the property; a mismatch was reported before."""
    if isinstance(rule, catalog.Range):
        return prop.type.is_numeric
    return prop.default is not None and prop.default.kind == "string"


def _allows(rule: catalog.Range | catalog.Check, default: model.Literal) -> bool:
    if isinstance(rule, catalog.Range):
        value = literals.number(default)
        above = rule.low is None or value is None or value >= rule.low
        return above and (rule.high is None or value is None or value <= rule.high)
    import re2

    try:
        return re2.search(rule.pattern, default.text) is not None
    except re2.error:  # the pattern itself was reported
        return True
