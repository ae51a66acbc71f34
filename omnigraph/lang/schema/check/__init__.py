"""Builds the catalog of a parsed schema: runs all checks in order and collects every error.

Each check has its own module; this one defines the sequence. Errors never stop it: what could not
be read is left out, and errors that only follow from the omission are not reported.
"""

from collections.abc import Container, Iterable
from typing import Protocol, TypeVar

from omnigraph.diagnostics import Diagnostic
from omnigraph.lang.schema import catalog, model
from omnigraph.lang.schema.parse import ParsedSchema

from .annotations import read_header, read_property
from .constraints import read_constraints, read_marks
from .draft import Draft, Site
from .embeds import check_embeds
from .findings import Findings
from .interfaces import expand
from .lengths import check_name_lengths
from .properties import own_properties
from .values import check_defaults
from .whole import check_edge_words, check_endpoints, check_unique_names


def check(
    parsed: ParsedSchema, existing: Container[str] = ()
) -> tuple[catalog.Catalog, tuple[Diagnostic, ...]]:
    """Return the catalog of a parsed schema and all semantic errors.

    `existing_names` are exempt from the length limit. The catalog is valid only if neither this
    function nor `parsed_schema` reports an error.
    """
    findings = Findings(parsed.source)
    everything = parsed.declarations
    interfaces = [d for d in everything if isinstance(d, model.InterfaceDeclaration)]
    nodes = [d for d in everything if isinstance(d, model.NodeDeclaration)]
    edges = [d for d in everything if isinstance(d, model.EdgeDeclaration)]
    drafts = [_draft(d, "interface", findings) for d in interfaces]
    known = {draft.name.text: draft for draft in reversed(drafts)}
    made = catalog.Catalog(
        _by_name(_interface(d, one, findings) for d, one in zip(interfaces, drafts, strict=True)),
        _by_name(_node(d, known, parsed.broken, findings) for d in nodes),
        _by_name(_edge(d, findings) for d in edges),
        source=parsed.source.text,
    )
    _check_whole(parsed, (interfaces, nodes, edges), findings)
    check_name_lengths(everything, existing, findings)
    for node in made.nodes:
        check_defaults(node, findings)
    return made, findings.in_order()


_Groups = tuple[
    list[model.InterfaceDeclaration], list[model.NodeDeclaration], list[model.EdgeDeclaration]
]


def _check_whole(parsed: ParsedSchema, groups: _Groups, findings: Findings) -> None:
    interfaces, nodes, edges = groups
    check_unique_names("interface", interfaces, findings)
    check_unique_names("node", nodes, findings)
    check_unique_names("edge", edges, findings)
    check_edge_words(edges, findings)
    names = {d.name.text for d in nodes}, {d.name.text for d in interfaces}
    for edge in edges:
        check_endpoints(edge, *names, parsed.broken, findings)


def _draft(declaration: model.Declaration, kind: catalog.TypeKind, findings: Findings) -> Draft:
    own = own_properties(declaration, kind, findings)
    sites = {one.name.text: Site(one, read_property(one, kind, findings)) for one in own}
    if isinstance(declaration, model.InterfaceDeclaration):
        return Draft(kind, declaration.name, sites)
    constraints = tuple(m for m in declaration.members if isinstance(m, model.Constraint))
    return Draft(kind, declaration.name, sites, constraints)


def _interface(
    declaration: model.InterfaceDeclaration, draft: Draft, findings: Findings
) -> catalog.Interface:
    read_marks(draft, findings)
    header = read_header(declaration.annotations, findings)
    name = declaration.name.text
    return catalog.Interface(name, _properties(draft), header.allows, declaration.span)


def _node(
    declaration: model.NodeDeclaration,
    interfaces: dict[str, Draft],
    broken: frozenset[tuple[str, str]],
    findings: Findings,
) -> catalog.Node:
    own = _draft(declaration, "node", findings)
    draft = expand(own, declaration.implements, interfaces, broken, findings)
    check_embeds(draft, findings)
    header = read_header(declaration.annotations, findings)
    return catalog.Node(
        declaration.name.text,
        _properties(draft),
        read_constraints(draft, findings),
        tuple(sorted({name.text for name in declaration.implements})),
        header.notes,
        header.rename_from,
        header.allows,
        declaration.span,
    )


def _edge(declaration: model.EdgeDeclaration, findings: Findings) -> catalog.Edge:
    draft = _draft(declaration, "edge", findings)
    header = read_header(declaration.annotations, findings)
    cardinality = declaration.cardinality or model.Cardinality(0, None)
    return catalog.Edge(
        declaration.name.text,
        declaration.source.text,
        declaration.target.text,
        _properties(draft),
        read_constraints(draft, findings),
        cardinality.low,
        cardinality.high,
        header.notes,
        header.rename_from,
        header.allows,
        declaration.span,
    )


def _properties(draft: Draft) -> tuple[catalog.Property, ...]:
    return _by_name(site.made for site in draft.sites.values())


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def _by_name(things: Iterable[_N]) -> tuple[_N, ...]:
    return tuple(sorted(things, key=lambda one: one.name))
