"""Checks across all declarations.

Owns duplicate names, undeclared endpoints, and edges whose names differ only in case.
"""

from collections.abc import Iterable

from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean

from .findings import Findings, Stage


def check_unique_names(
    kind: str, declarations: Iterable[model.Declaration], findings: Findings
) -> None:
    """Report two declarations of the same kind with the same name."""
    first: dict[str, model.Name] = {}
    for name in (declaration.name for declaration in declarations):
        earlier = first.setdefault(name.text, name)
        if earlier is not name:
            message = f"duplicate {kind} `{name.text}`"
            hint = f"it is already declared on line {findings.line(earlier.span)}"
            findings.add(Stage.CATALOG, name.span, message, hint)


def check_edge_words(edges: Iterable[model.EdgeDeclaration], findings: Findings) -> None:
    """Report edges that differ only in case: queries look up edges ignoring case."""
    first: dict[str, model.Name] = {}
    for name in (edge.name for edge in edges):
        earlier = first.setdefault(name.text.lower(), name)
        if earlier.text != name.text:
            message = f"the edges `{earlier.text}` and `{name.text}` differ only in case"
            hint = f"queries match `{name.text[:1].lower()}{name.text[1:]}` ignoring case"
            findings.add(Stage.CATALOG, name.span, message, hint)


def check_endpoints(
    edge: model.EdgeDeclaration,
    nodes: set[str],
    interfaces: set[str],
    broken: frozenset[tuple[str, str]],
    findings: Findings,
) -> None:
    """Check that both endpoints of an edge are declared node types."""
    for end, role in ((edge.source, "starts at"), (edge.target, "ends at")):
        if end.text in nodes or ("node", end.text) in broken:
            continue
        message = f"edge `{edge.name.text}` {role} `{end.text}`, "
        if end.text in interfaces or ("interface", end.text) in broken:
            message += "which is an interface"
            hint: str | None = "the endpoints of an edge must be node types"
        else:
            message += "which is not a declared node type"
            hint = did_you_mean(end.text, nodes, f"declare `node {end.text} {{ … }}`")
        findings.add(Stage.CATALOG, end.span, message, hint)
