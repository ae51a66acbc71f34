"""Checks over all declarations together.

Owns names given twice, endpoints that do not exist, and edges that differ only in case.
"""

from collections.abc import Iterable

from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean

from .findings import Findings, Stage


def check_unique_names(
    kind: str, declarations: Iterable[model.Declaration], findings: Findings
) -> None:
    """Two declarations of one kind never share a name."""
    first: dict[str, model.Name] = {}
    for name in (declaration.name for declaration in declarations):
        earlier = first.setdefault(name.text, name)
        if earlier is not name:
            message = f"duplicate {kind} `{name.text}`"
            hint = f"it is declared on line {findings.line(earlier.span)} already"
            findings.add(Stage.CATALOG, name.span, message, hint)


def check_edge_words(edges: Iterable[model.EdgeDeclaration], findings: Findings) -> None:
    """Queries find edges ignoring case, so that alone must not tell two edges apart."""
    first: dict[str, model.Name] = {}
    for name in (edge.name for edge in edges):
        earlier = first.setdefault(name.text.lower(), name)
        if earlier.text != name.text:
            message = f"the edges `{earlier.text}` and `{name.text}` differ only in case"
            hint = f"queries write `{name.text[:1].lower()}{name.text[1:]}` in any case"
            findings.add(Stage.CATALOG, name.span, message, hint)


def check_endpoints(
    edge: model.EdgeDeclaration,
    nodes: set[str],
    interfaces: set[str],
    broken: frozenset[tuple[str, str]],
    findings: Findings,
) -> None:
    """Both ends of an edge are declared node types."""
    for end, role in ((edge.source, "from"), (edge.target, "to")):
        if end.text in nodes or ("node", end.text) in broken:
            continue
        message = f"edge `{edge.name.text}` leads {role} `{end.text}`, "
        if end.text in interfaces or ("interface", end.text) in broken:
            message += "which is an interface"
            hint: str | None = "the ends of an edge are node types"
        else:
            message += "which is not a declared node type"
            hint = did_you_mean(end.text, nodes, f"declare `node {end.text} {{ … }}`")
        findings.add(Stage.CATALOG, end.span, message, hint)
