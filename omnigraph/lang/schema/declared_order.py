"""The order in which a schema file declares its types and properties.

A catalog is sorted by name, because order has no meaning in a schema. Listings and diagrams, however, use the order of
the schema file, because readers expect this order, and so do callers who pass a composite key as a tuple. This module
never affects what a schema means.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, TypeVar

from omnigraph.errors.diagnostics import SourceText
from omnigraph.records.frozen import record

from .catalog import EdgeType, NodeType, PropertyDefinition, TypeKind
from .ir import SchemaIR, ordered_key_columns
from .model import Constraint, EdgeDeclaration, Literal, NodeDeclaration


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_NamedItem = TypeVar("_NamedItem", bound=_Named)


@record
class DeclaredType:
    """A declaration as written: its text, the names of its own properties, and the columns of its body's `@key`."""

    text: str
    property_names: tuple[str, ...] = ()
    key_columns: tuple[str, ...] = ()


@record
class DeclaredOrder:
    """A schema file's declarations, keyed by kind and name, in file order."""

    declarations: dict[tuple[TypeKind, str], DeclaredType]

    def sort_types(self, kind: TypeKind, types: Iterable[_NamedItem]) -> list[_NamedItem]:
        """Sort types of one kind in file order. Types that are missing from the file come last, in name order."""
        return _sort_by_name(types, [name for declared_kind, name in self.declarations if declared_kind == kind])

    def sort_properties(self, entity_type: NodeType | EdgeType) -> list[PropertyDefinition]:
        """Return a type's properties in file order, with inherited properties first."""
        declared = self.declaration(entity_type)
        return _sort_by_name(entity_type.properties, declared.property_names, missing_first=True)

    def declaration(self, entity_type: NodeType | EdgeType) -> DeclaredType:
        """Return a type's declaration as written, or an empty one if the file does not declare the type."""
        return self.declarations.get((entity_type.kind, entity_type.name), DeclaredType(""))


def read_declared_order(schema_text: str) -> DeclaredOrder:
    """Read the order of the declarations in a schema. Invalid declarations are skipped.

    >>> order = read_declared_order("node B { z: I32 a: I32 } node A {}")
    >>> [(name, declared.property_names) for (_, name), declared in order.declarations.items()]
    [('B', ('z', 'a')), ('A', ())]
    """
    from .check.properties import declared_properties
    from .parse import parse

    declarations: dict[tuple[TypeKind, str], DeclaredType] = {}
    for declaration in parse(SourceText("<schema>", schema_text)).declarations:
        if isinstance(declaration, NodeDeclaration | EdgeDeclaration):
            kind: TypeKind = "node" if isinstance(declaration, NodeDeclaration) else "edge"
            property_names = tuple(declared.name.text for declared in declared_properties(declaration))
            declaration_text = schema_text[declaration.span.start : declaration.span.end]
            declared_type = DeclaredType(declaration_text, property_names, _read_key_columns(declaration))
            declarations.setdefault((kind, declaration.name.text), declared_type)
    return DeclaredOrder(declarations)


def declared_key_columns(ir: SchemaIR, entity_type: NodeType | EdgeType) -> tuple[str, ...]:
    """Return the key columns in the order of the type's `@key(...)`, in which callers pass the members of a key.

    The columns have the order of `ordered_key_columns` if the schema has no source text.

    >>> from . import compile_schema
    >>> from .assign_identity import new_identity
    >>> catalog = compile_schema("node Room { b: I32  a: I32  @key(b, a) }")
    >>> ir = with_source(new_identity(catalog, "0" * 26), catalog.source)
    >>> declared_key_columns(ir, ir.catalog.nodes[0]), ordered_key_columns(ir, "Room")
    (('b', 'a'), ('a', 'b'))
    """
    id_columns = ordered_key_columns(ir, entity_type.name, entity_type.kind)
    if len(id_columns) < 2 or not ir.catalog.source:
        return id_columns
    columns = _read_cached_order(ir.catalog.source).declaration(entity_type).key_columns
    return columns if sorted(columns) == sorted(id_columns) else id_columns


def with_source(ir: SchemaIR, source: str) -> SchemaIR:
    """Return a schema with its source text, from which the declared order is read."""
    return replace(ir, catalog=replace(ir.catalog, source=source))


_read_cached_order = lru_cache(maxsize=64)(read_declared_order)


def _read_key_columns(declaration: NodeDeclaration | EdgeDeclaration) -> tuple[str, ...]:
    constraints = [member for member in declaration.members if isinstance(member, Constraint) and member.kind == "key"]
    arguments = constraints[0].arguments if constraints else ()
    return tuple(dict.fromkeys(argument.text for argument in arguments if isinstance(argument, Literal)))


def _sort_by_name(
    items: Iterable[_NamedItem], ordered_names: Iterable[str], *, missing_first: bool = False
) -> list[_NamedItem]:
    positions = {name: position for position, name in enumerate(ordered_names)}
    missing_position = -1 if missing_first else len(positions)
    return sorted(items, key=lambda item: (positions.get(item.name, missing_position), item.name))
