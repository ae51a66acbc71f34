"""Build the catalog for a parsed schema: run every check and collect all errors.

Each check has its own module, and this module determines the order in which they run. Errors never stop the checks:
invalid declarations are skipped, and errors caused only by a skipped declaration are not reported.
"""

from collections.abc import Container, Iterable
from typing import Protocol, TypeVar

from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.lang.schema import catalog, model
from omnigraph.lang.schema.parse import ParsedSchema

from .across_declarations import check_edge_name_case, check_endpoints, check_unique_names
from .annotations import read_header_annotations, read_property
from .constraints import read_constraints, read_inline_constraints
from .draft import PropertyDraft, TypeDraft
from .embeds import check_embeddings
from .findings import SchemaFindings
from .interfaces import expand_interfaces
from .lengths import check_name_lengths
from .properties import find_own_properties
from .value_rules import check_defaults


def check(
    parsed_schema: ParsedSchema, existing_names: Container[str] = ()
) -> tuple[catalog.Catalog, tuple[Diagnostic, ...]]:
    """Return a parsed schema's catalog and all semantic errors.

    `existing_names` are exempt from the length limit. The catalog is valid only if neither the result nor
    `parsed_schema` contains an error.
    """
    findings = SchemaFindings(parsed_schema.source)
    declarations = parsed_schema.declarations
    interfaces = [declaration for declaration in declarations if isinstance(declaration, model.InterfaceDeclaration)]
    nodes = [declaration for declaration in declarations if isinstance(declaration, model.NodeDeclaration)]
    edges = [declaration for declaration in declarations if isinstance(declaration, model.EdgeDeclaration)]
    interface_drafts = [_draft_type(declaration, "interface", findings) for declaration in interfaces]
    drafts_by_name = {draft.name.text: draft for draft in reversed(interface_drafts)}
    checked_catalog = catalog.Catalog(
        _sort_by_name(
            _build_interface(declaration, interface_draft, findings)
            for declaration, interface_draft in zip(interfaces, interface_drafts, strict=True)
        ),
        _sort_by_name(
            _build_node_type(declaration, drafts_by_name, parsed_schema.unreadable_names, findings)
            for declaration in nodes
        ),
        _sort_by_name(_build_edge_type(declaration, findings) for declaration in edges),
        source=parsed_schema.source.text,
    )
    _check_across_declarations(parsed_schema, (interfaces, nodes, edges), findings)
    check_name_lengths(declarations, existing_names, findings)
    for node in checked_catalog.nodes:
        check_defaults(node, findings)
    return checked_catalog, findings.sorted_diagnostics()


_DeclarationGroups = tuple[list[model.InterfaceDeclaration], list[model.NodeDeclaration], list[model.EdgeDeclaration]]


def _check_across_declarations(
    parsed_schema: ParsedSchema, declaration_groups: _DeclarationGroups, findings: SchemaFindings
) -> None:
    interfaces, nodes, edges = declaration_groups
    check_unique_names("interface", interfaces, findings)
    check_unique_names("node", nodes, findings)
    check_unique_names("edge", edges, findings)
    check_edge_name_case(edges, findings)
    declared_names = (
        {declaration.name.text for declaration in nodes},
        {declaration.name.text for declaration in interfaces},
    )
    for edge in edges:
        check_endpoints(edge, *declared_names, parsed_schema.unreadable_names, findings)


def _draft_type(declaration: model.Declaration, type_kind: catalog.TypeKind, findings: SchemaFindings) -> TypeDraft:
    unique_properties = find_own_properties(declaration, type_kind, findings)
    property_drafts = {
        declared_property.name.text: PropertyDraft(
            declared_property, read_property(declared_property, type_kind, findings)
        )
        for declared_property in unique_properties
    }
    if isinstance(declaration, model.InterfaceDeclaration):
        return TypeDraft(type_kind, declaration.name, property_drafts)
    constraints = tuple(member for member in declaration.members if isinstance(member, model.Constraint))
    return TypeDraft(type_kind, declaration.name, property_drafts, constraints)


def _build_interface(
    declaration: model.InterfaceDeclaration, draft: TypeDraft, findings: SchemaFindings
) -> catalog.InterfaceType:
    read_inline_constraints(draft, findings)
    header = read_header_annotations(declaration.annotations, findings)
    type_name = declaration.name.text
    return catalog.InterfaceType(type_name, _sorted_definitions(draft), header.allowed_findings, declaration.span)


def _build_node_type(
    declaration: model.NodeDeclaration,
    interface_drafts: dict[str, TypeDraft],
    unreadable_names: frozenset[tuple[str, str]],
    findings: SchemaFindings,
) -> catalog.NodeType:
    own_draft = _draft_type(declaration, "node", findings)
    draft = expand_interfaces(own_draft, declaration.implements, interface_drafts, unreadable_names, findings)
    check_embeddings(draft, findings)
    header = read_header_annotations(declaration.annotations, findings)
    return catalog.NodeType(
        declaration.name.text,
        _sorted_definitions(draft),
        read_constraints(draft, findings),
        tuple(sorted({interface_name.text for interface_name in declaration.implements})),
        header.annotations,
        header.rename_from,
        header.allowed_findings,
        declaration.span,
    )


def _build_edge_type(declaration: model.EdgeDeclaration, findings: SchemaFindings) -> catalog.EdgeType:
    draft = _draft_type(declaration, "edge", findings)
    header = read_header_annotations(declaration.annotations, findings)
    cardinality = declaration.cardinality or model.Cardinality(0, None)
    return catalog.EdgeType(
        declaration.name.text,
        declaration.source.text,
        declaration.target.text,
        _sorted_definitions(draft),
        read_constraints(draft, findings),
        cardinality.low,
        cardinality.high,
        header.annotations,
        header.rename_from,
        header.allowed_findings,
        declaration.span,
    )


def _sorted_definitions(draft: TypeDraft) -> tuple[catalog.PropertyDefinition, ...]:
    return _sort_by_name(property_draft.definition for property_draft in draft.properties.values())


class _NamedType(Protocol):
    @property
    def name(self) -> str: ...


_NamedT = TypeVar("_NamedT", bound=_NamedType)


def _sort_by_name(items: Iterable[_NamedT]) -> tuple[_NamedT, ...]:
    return tuple(sorted(items, key=lambda item: item.name))
