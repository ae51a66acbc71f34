"""Checks that compare a schema's declarations with one another.

This module reports duplicate names, undeclared endpoints, and edges whose names differ only in case.
"""

from collections.abc import Iterable

from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean

from .findings import CheckStage, SchemaFindings


def check_unique_names(
    declaration_kind: str, declarations: Iterable[model.Declaration], findings: SchemaFindings
) -> None:
    """Report declarations that have the same kind and name."""
    first_by_name: dict[str, model.Name] = {}
    for name in (declaration.name for declaration in declarations):
        earlier_name = first_by_name.setdefault(name.text, name)
        if earlier_name is not name:
            message = f"duplicate {declaration_kind} `{name.text}`"
            hint = f"first declared on line {findings.line_number(earlier_name.span)}"
            findings.add(CheckStage.CATALOG, name.span, message, hint)


def check_edge_name_case(edges: Iterable[model.EdgeDeclaration], findings: SchemaFindings) -> None:
    """Report edges whose names differ only in case, because queries look up edge types case-insensitively."""
    first_by_lower_case: dict[str, model.Name] = {}
    for name in (edge.name for edge in edges):
        earlier_name = first_by_lower_case.setdefault(name.text.lower(), name)
        if earlier_name.text != name.text:
            message = f"the edges `{earlier_name.text}` and `{name.text}` differ only in case"
            hint = (
                f"queries ignore the case of edge names, so `{name.text[:1].lower()}{name.text[1:]}` would be ambiguous"
            )
            findings.add(CheckStage.CATALOG, name.span, message, hint)


def check_endpoints(
    edge: model.EdgeDeclaration,
    node_names: set[str],
    interface_names: set[str],
    unreadable_names: frozenset[tuple[str, str]],
    findings: SchemaFindings,
) -> None:
    """Check that both endpoints of an edge are declared node types."""
    for endpoint, relation in ((edge.source, "starts at"), (edge.target, "ends at")):
        if endpoint.text in node_names or ("node", endpoint.text) in unreadable_names:
            continue
        message = f"edge `{edge.name.text}` {relation} `{endpoint.text}`, "
        if endpoint.text in interface_names or ("interface", endpoint.text) in unreadable_names:
            message += "which is an interface"
            hint: str | None = "the endpoints of an edge must be node types"
        else:
            message += "which is not a declared node type"
            hint = did_you_mean(endpoint.text, node_names, f"declare `node {endpoint.text} {{ … }}`")
        findings.add(CheckStage.CATALOG, endpoint.span, message, hint)
