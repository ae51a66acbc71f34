"""Assignments of insert and update: `age: $a`, `from: "ann"`, `bio: null`.

Owns which values a property accepts. Literals are converted here, parameters when the statement
runs.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType

from . import expressions, literals
from .scope import Scope
from .typed import STRING, Typed, feeds, is_text

_ENDS = ("from", "to")


def assignments(
    scope: Scope, target: Node | Edge | None, nodes: tuple[m.Assignment, ...]
) -> tuple[plan.Assign, ...]:
    """Return the valid assignments; report the others. Without a target only values are checked."""
    found: list[plan.Assign] = []
    seen: set[str] = set()
    for node in nodes:
        if node.name.text in seen:
            message = f"`{node.name.text}` is assigned twice"
            scope.report.error(node.name.span, message, "T13")
        seen.add(node.name.text)
        value = given_value(scope, node.value)
        if target is None:
            continue
        kind = assignable(scope, target, node.name)
        if kind is not None and value is not None:
            found += _assign(scope, node, kind, value)
    return tuple(found)


def given_value(scope: Scope, node: m.Expression) -> Typed | None:
    """Resolve a literal, a parameter or `now()`; report any other variable."""
    if not isinstance(node, m.Variable):
        return expressions.resolve(scope, node)
    found = expressions.parameter(scope, node)
    if found is None:
        message = f"`${node.name}` is not a parameter"
        hint = did_you_mean(node.name, scope.parameters)
        scope.report.error(node.span, message, "T14", hint=hint)
    return found


def assignable(scope: Scope, target: Node | Edge, name: m.Name) -> PropertyType | None:
    """Return the type of a property that a statement may assign; report an unknown property."""
    if isinstance(target, Edge) and name.text in _ENDS:
        return STRING
    declared = target.property(name.text)
    if declared is not None:
        return declared.type
    known = [p.name for p in target.properties]
    hint = did_you_mean(name.text, known)
    message = f"{target.name} has no property `{name.text}`"
    if name.text == "id":
        message, hint = "`id` cannot be assigned", "the id is derived from the key or generated"
    scope.report.error(name.span, message, "T11", hint=hint)
    return None


def _assign(
    scope: Scope, node: m.Assignment, kind: PropertyType, value: Typed
) -> list[plan.Assign]:
    if isinstance(value.value, plan.Constant):
        stored = literals.fit(value.value, kind)
        if isinstance(stored, plan.Constant):
            return [plan.Assign(node.name.text, stored)]
        hint = _end_hint(kind) or _date_hint(kind, value)
        scope.report.error(value.span, f"`{node.name.text}`: {stored}", "T3", hint=hint)
        return []
    if value.type is not None and feeds(value.type, kind):
        return [plan.Assign(node.name.text, value.value)]
    message = f"`{node.name.text}` is {kind.display()} and cannot be assigned {value.shown()}"
    scope.report.error(value.span, message, "T7", hint=_end_hint(kind))
    return []


def _end_hint(kind: PropertyType) -> str | None:
    """Explain the endpoint of an edge; only endpoints have this very type object, `STRING`."""
    return 'an endpoint is the id of a node, a string such as "7"' if kind is STRING else None


def _date_hint(kind: PropertyType, value: Typed) -> str | None:
    dated = kind.scalar.value in ("Date", "DateTime")
    return f'write `{kind.scalar.value.lower()}("…")`' if dated and is_text(value.type) else None
