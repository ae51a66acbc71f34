"""Warnings about queries that are legal but probably not intended.

Owns L202 to L204; L205 to L207 are reported while checking. Never changes what a query means.
"""

from omnigraph.diagnostics import Diagnostic, Source, Span

from . import model as m
from . import plan
from .check import Checked
from .check.checked import Bind, CheckedRead, Clause, Keep, Match, Maybe, Walk, Without
from .components import Component, Ties, components
from .free import variables_of

_OUTSIDE = "outside #"  # stands for all outer variables; no variable name contains a space


def advice(query: m.Query, checked: Checked, source: Source) -> tuple[Diagnostic, ...]:
    """Return all warnings about a query, in source order; heuristic ones only without errors."""
    found = list(checked.warnings)
    if checked.body is not None:
        found += _unused(query, checked, source)
    if isinstance(checked.body, CheckedRead) and isinstance(query.body, m.ReadBody):
        found += _cross_products(checked.body.match, frozenset(), source)
        found += _unordered(query.body, checked.body, source)
    return tuple(sorted(found, key=lambda one: one.start))


def _warning(source: Source, span: Span, message: str, code: str, hint: str) -> Diagnostic:
    return Diagnostic.at(
        source, span, message, code=code, kind="lint", severity="warning", hint=hint
    )


def _unused(query: m.Query, checked: Checked, source: Source) -> list[Diagnostic]:
    unused = [one for one in query.parameters if one.name not in checked.used]
    return [
        _warning(
            source,
            Span(one.span.start, one.span.start + len(one.name) + 1),
            f"parameter `${one.name}` is never used",
            "L202",
            "remove it",
        )
        for one in unused
    ]


def _unordered(body: m.ReadBody, read: CheckedRead, source: Source) -> list[Diagnostic]:
    cut = body.limit or body.offset
    one_row = read.aggregated and all(isinstance(c.value, plan.Aggregate) for c in read.columns)
    if cut is None or body.orderings or one_row:
        return []
    message = "without an `order`, ids decide which rows are returned"
    return [_warning(source, cut.span, message, "L204", "add an `order`")]


def _cross_products(match: Match, outside: frozenset[str], source: Source) -> list[Diagnostic]:
    """Report parts that no traversal, condition or nested match connects to the others."""
    parts = components(match, outside)
    hint = "connect it with a traversal or a condition"
    message = "this part is not connected to any earlier part: the result is a cross product"
    loose = _loose(parts, match, outside)
    found = [_warning(source, one.span, message, "L203", hint) for one in loose]
    inside = outside.union(*(one.variables for one in parts))
    for clause in match.clauses:
        if isinstance(clause, Without | Maybe):
            found += _cross_products(clause.match, inside, source)
        if isinstance(clause, Maybe):
            inside |= set(clause.match.introduced)
    return found


def _loose(parts: tuple[Component, ...], match: Match, outside: frozenset[str]) -> list[Component]:
    """Return the first part of every connected group except the first group."""
    ties = Ties()
    named = [_within(part.variables, outside) for part in parts]
    for names in named:
        ties.tie(names)
    for clause in match.clauses:
        ties.tie(_within(_mentioned(clause), outside))
    seen: set[str | None] = {ties.knot(_OUTSIDE)} if outside else set()
    loose = []
    for part, names in zip(parts, named, strict=True):
        knot = ties.knot(next(iter(names))) if names else None
        if seen and (knot is None or knot not in seen):
            loose.append(part)
        seen.add(knot)
    return loose


def _within(names: frozenset[str], outside: frozenset[str]) -> set[str]:
    """Return the variables, with all outer ones replaced by one common name."""
    return {_OUTSIDE if name in outside else name for name in names}


def _mentioned(clause: Clause) -> frozenset[str]:
    """Return the variables that a clause names, also inside `not` and `optional`."""
    match clause:
        case Bind():
            return frozenset({clause.variable})
        case Walk():
            ends = (clause.source, clause.edge_variable, clause.target)
            return frozenset(name for name in ends if name is not None)
        case Keep():
            return variables_of(clause.predicate)
        case Without() | Maybe():
            return frozenset().union(*(_mentioned(one) for one in clause.match.clauses))
