"""Warnings about queries that are legal but probably not intended.

This module reports the codes L202 to L204, and the modules in `check` report L205 to L210. Warnings never affect what a
query means.
"""

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span

from . import model as m
from .check import CheckedQuery
from .check.checked import (
    CheckedBinding,
    CheckedBody,
    CheckedClause,
    CheckedFilter,
    CheckedMatch,
    CheckedMatchedDelete,
    CheckedMatchedUpdate,
    CheckedNegation,
    CheckedOptional,
    CheckedRead,
    CheckedTraversal,
    CheckedUnion,
    CheckedWrite,
)
from .components import Component, ConnectedNames, find_components
from .plan_variables import contains_aggregate, variables_of

_OUTER_VARIABLES = "outside #"  # represents all outer variables; no variable name contains a space


def collect_warnings(query: m.Query, checked: CheckedQuery, source: SourceText) -> tuple[Diagnostic, ...]:
    """Return all warnings about a query in source order. If the query has errors, omit this module's warnings."""
    warnings = list(checked.warnings)
    if checked.body is not None:
        warnings += _find_unused_parameters(query, checked, source)
    for checked_match in _whole_matches(checked.body):
        warnings += _find_cross_products(checked_match, frozenset(), source)
    if isinstance(query.body, m.ReadBody | m.UnionBody):
        warnings += _find_unordered_limit(query.body, checked.body, source)
    return tuple(sorted(warnings, key=lambda warning: warning.start))


def _make_warning(source: SourceText, span: Span, message: str, code: str, hint: str) -> Diagnostic:
    return Diagnostic.at_span(source, span, message, code=code, kind="lint", severity="warning", hint=hint)


def _find_unused_parameters(query: m.Query, checked: CheckedQuery, source: SourceText) -> list[Diagnostic]:
    unused_parameters = [parameter for parameter in query.parameters if parameter.name not in checked.used_parameters]
    return [
        _make_warning(
            source,
            Span(parameter.span.start, parameter.span.start + len(parameter.name) + 1),
            f"parameter `${parameter.name}` is never used",
            "L202",
            "remove the parameter",
        )
        for parameter in unused_parameters
    ]


def _whole_matches(checked_body: CheckedBody | None) -> list[CheckedMatch]:
    """Return the outermost `match` in each part of a read and in each statement of a mutation."""
    match checked_body:
        case CheckedRead():
            return [checked_body.match]
        case CheckedUnion():
            return [part.match for part in checked_body.parts]
        case CheckedWrite():
            matched_statements = (
                statement
                for statement in checked_body.statements
                if isinstance(statement, CheckedMatchedUpdate | CheckedMatchedDelete)
            )
            return [statement.matched.match for statement in matched_statements]
    return []


def _find_unordered_limit(
    read_body: m.ReadBody | m.UnionBody, checked_body: CheckedBody | None, source: SourceText
) -> list[Diagnostic]:
    limit_or_offset = read_body.limit or read_body.offset
    is_single_row = isinstance(checked_body, CheckedRead) and (
        checked_body.aggregated and all(contains_aggregate(column.value) for column in checked_body.columns)
    )
    if checked_body is None or limit_or_offset is None or read_body.orderings or is_single_row:
        return []
    message = "without an `order`, rows are selected in order of their ids"
    return [_make_warning(source, limit_or_offset.span, message, "L204", "add an `order`")]


def _find_cross_products(match: CheckedMatch, outer_variables: frozenset[str], source: SourceText) -> list[Diagnostic]:
    """Report parts of a match that no traversal, condition or nested match connects to the rest."""
    match_parts = find_components(match, outer_variables)
    hint = "connect the parts with a traversal or a condition"
    message = "this part is not connected to any earlier part, so the result is a cross product"
    disconnected = _find_disconnected(match_parts, match, outer_variables)
    warnings = [_make_warning(source, component.span, message, "L203", hint) for component in disconnected]
    visible_variables = outer_variables.union(*(component.variables for component in match_parts))
    for clause in match.clauses:
        if isinstance(clause, CheckedNegation | CheckedOptional):
            warnings += _find_cross_products(clause.match, visible_variables, source)
        if isinstance(clause, CheckedOptional):
            visible_variables |= set(clause.match.introduced)
    return warnings


def _find_disconnected(
    match_parts: tuple[Component, ...], match: CheckedMatch, outer_variables: frozenset[str]
) -> list[Component]:
    """Return the first part of each connected group, except for one group.

    The exception is the group that contains outer variables or, if there are none, the first group.
    """
    connected_names = ConnectedNames()
    variables_by_part = [_merge_outer_variables(component.variables, outer_variables) for component in match_parts]
    for part_variables in variables_by_part:
        connected_names.connect(part_variables)
    for clause in match.clauses:
        connected_names.connect(_merge_outer_variables(_mentioned_variables(clause), outer_variables))
    seen_roots: set[str | None] = {connected_names.find_root(_OUTER_VARIABLES)} if outer_variables else set()
    disconnected = []
    for component, part_variables in zip(match_parts, variables_by_part, strict=True):
        root = connected_names.find_root(next(iter(part_variables))) if part_variables else None
        if seen_roots and (root is None or root not in seen_roots):
            disconnected.append(component)
        seen_roots.add(root)
    return disconnected


def _merge_outer_variables(variables: frozenset[str], outer_variables: frozenset[str]) -> set[str]:
    """Return the variables, with all outer variables replaced by one common name."""
    return {_OUTER_VARIABLES if variable in outer_variables else variable for variable in variables}


def _mentioned_variables(clause: CheckedClause) -> frozenset[str]:
    """Return the variables that a clause mentions, including those inside `not` and `optional`."""
    match clause:
        case CheckedBinding():
            return frozenset({clause.variable})
        case CheckedTraversal():
            endpoints = (clause.source, clause.edge_variable, clause.target)
            return frozenset(variable for variable in endpoints if variable is not None)
        case CheckedFilter():
            return variables_of(clause.predicate)
        case CheckedNegation() | CheckedOptional():
            return frozenset().union(*(_mentioned_variables(inner_clause) for inner_clause in clause.match.clauses))
