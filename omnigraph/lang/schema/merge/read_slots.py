"""Read a schema's slots from its accepted form and its source text.

The accepted form defines the ids and the meaning. Only the source text shows which constraints are written in a body
and which findings are suppressed. If the text does not match the accepted form, generated text replaces it.
"""

from collections.abc import Iterable, Mapping

from omnigraph.lang.schema import literals, model
from omnigraph.lang.schema.catalog import (
    AllowedFinding,
    Catalog,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    PropertyDefinition,
    Range,
    StoredAnnotation,
    TypeKind,
    Unique,
)
from omnigraph.lang.schema.ir import CatalogType, SchemaIR, catalog_types

from .slots import (
    BODY,
    INLINE,
    Annotations,
    ColumnReference,
    ConstraintDetail,
    ConstraintGroup,
    EmbedSlot,
    PropertySlots,
    SchemaSlots,
    TypeSlots,
)

TypeReference = tuple[TypeKind, str]
BodyConstraints = Mapping[TypeReference, tuple[Constraint, ...]]
_INLINE_CLASSES: dict[str, type[Key | Unique | Index]] = {"index": Index, "key": Key, "unique": Unique}


def read_slots(ir: SchemaIR, body_constraints: BodyConstraints, source_catalog: Catalog) -> SchemaSlots:
    """Return a schema's slots, keyed by type id."""
    source_types = {(source_type.kind, source_type.name): source_type for source_type in catalog_types(source_catalog)}
    type_slots = {}
    for declared_type in catalog_types(ir.catalog):
        reference = (declared_type.kind, declared_type.name)
        reader = _TypeReader(ir, declared_type, source_types.get(reference))
        type_slots[ir.type_id(*reference)] = reader.read(body_constraints.get(reference, ()))
    return type_slots


def declared_body_constraints(declarations: Iterable[model.Declaration]) -> BodyConstraints:
    """Return the constraints in the body of each declaration in a valid schema."""
    return {
        declaration_reference(declaration): tuple(
            read_constraint(member) for member in declaration.members if isinstance(member, model.Constraint)
        )
        for declaration in declarations
        if not isinstance(declaration, model.InterfaceDeclaration)
    }


def implied_body_constraints(catalog: Catalog) -> BodyConstraints:
    """Return the constraints that no inline annotation implies, for a catalog without source text."""
    table_types: tuple[NodeType | EdgeType, ...] = (*catalog.nodes, *catalog.edges)
    return {
        (declared_type.kind, declared_type.name): tuple(
            constraint
            for constraint in declared_type.constraints
            if constraint not in set(_inline_constraints(declared_type.properties))
        )
        for declared_type in table_types
    }


def declaration_reference(declaration: model.Declaration) -> TypeReference:
    """Return a declaration's kind and name."""
    match declaration:
        case model.InterfaceDeclaration():
            return "interface", declaration.name.text
        case model.NodeDeclaration():
            return "node", declaration.name.text
    return "edge", declaration.name.text


def read_constraint(declared: model.Constraint) -> Constraint:
    """Return the resolved form of a body constraint in a valid schema."""
    words = [argument.text for argument in declared.arguments if isinstance(argument, model.Literal)]
    if declared.kind == "range":
        bounds = next(argument for argument in declared.arguments if isinstance(argument, model.Bounds))
        low, high = (None if bound is None else literals.parse_number(bound) for bound in (bounds.low, bounds.high))
        return Range(words[0], low, high)
    if declared.kind == "check":
        return Check(words[0], words[1])
    columns = tuple(sorted(set(words)))
    if declared.kind == "index":
        return Index(columns, tuple(sorted((option.name.text, option.value.text) for option in declared.options)))
    return Key(columns) if declared.kind == "key" else Unique(columns)


def constraint_slot(
    constraint: Constraint, column_references: Mapping[str, ColumnReference]
) -> tuple[ConstraintGroup, ConstraintDetail]:
    """Return a constraint's group and detail.

    Columns that are not in `column_references` are represented by their names.
    """

    def sorted_references(columns: Iterable[str]) -> tuple[ColumnReference, ...]:
        return tuple(sorted((column_references.get(column, column) for column in columns), key=str))

    match constraint:
        case Key(columns):
            return ("key", ()), sorted_references(columns)
        case Unique(columns):
            return ("unique", sorted_references(columns)), ()
        case Index(columns, options):
            other_options = tuple(option for option in options if option[0] != "kind")
            return ("index", sorted_references(columns)), (dict(options).get("kind", ""), other_options)
        case Range(column, low, high):
            return ("range", sorted_references((column,))), (_exact_bound(low), _exact_bound(high))
        case Check(column, pattern):
            return ("check", sorted_references((column,))), (pattern,)


def _exact_bound(bound: int | float | None) -> tuple[str, int | float] | None:
    """Return a range bound with its type, or None if there is no bound. The bounds 1 and 1.0 are different."""
    return None if bound is None else (type(bound).__name__, bound)


def _inline_constraints(definitions: Iterable[PropertyDefinition]) -> list[Constraint]:
    return [
        _INLINE_CLASSES[constraint_name]((definition.name,))
        for definition in definitions
        for constraint_name in definition.inline_constraints
    ]


def group_annotations(annotations: Iterable[StoredAnnotation]) -> Annotations:
    """Group annotations by name. Only unknown annotations can occur more than once."""
    by_name: dict[str, tuple[StoredAnnotation, ...]] = {}
    for annotation in annotations:
        by_name[annotation.name] = (*by_name.get(annotation.name, ()), annotation)
    return by_name


class _TypeReader:
    """Reads one type, resolving names to ids in the type's own schema."""

    def __init__(self, ir: SchemaIR, declared_type: CatalogType, source_type: CatalogType | None) -> None:
        self._ir = ir
        self._type = declared_type
        self._source_type = source_type
        self._identity = ir.identity(declared_type.kind, declared_type.name)
        self._property_ids = dict(self._identity.property_ids)

    def read(self, body_constraints: tuple[Constraint, ...]) -> TypeSlots:
        declared_type, ir = self._type, self._ir
        return TypeSlots(
            declared_type.kind,
            self._identity.type_id,
            self._identity.table_incarnation_id,
            declared_type.name,
            {
                self._property_ids[definition.name]: self._read_property(definition)
                for definition in declared_type.properties
                if definition.declared_directly
            },
            self._read_constraints(body_constraints),
            {} if isinstance(declared_type, InterfaceType) else group_annotations(declared_type.annotations),
            frozenset(ir.type_id("interface", name) for name in getattr(declared_type, "implements", ())),
            self._endpoint_id("source"),
            self._endpoint_id("target"),
            (getattr(declared_type, "min_cardinality", 0), getattr(declared_type, "max_cardinality", None)),
            self._property_ids,
            self._read_satisfied_ids(),
            () if self._source_type is None else self._source_type.allowed_findings,
        )

    def _endpoint_id(self, endpoint: str) -> int | None:
        node_name = getattr(self._type, endpoint, None)
        return None if node_name is None else self._ir.type_id("node", node_name)

    def _read_satisfied_ids(self) -> dict[int, tuple[int, ...]]:
        return {
            self._property_ids[definition.name]: tuple(
                self._ir.property_id("interface", *satisfied_pair) for satisfied_pair in definition.satisfies
            )
            for definition in self._type.properties
            if definition.satisfies
        }

    def _read_property(self, definition: PropertyDefinition) -> PropertySlots:
        embed = definition.embed
        return PropertySlots(
            definition.name,
            definition.type,
            group_annotations(definition.annotations),
            None if definition.default is None else definition.default.text,
            None
            if embed is None
            else EmbedSlot(self._property_ids.get(embed.source, embed.source), embed.model, embed.source),
            self._allowed_findings(definition.name),
        )

    def _allowed_findings(self, property_name: str) -> tuple[AllowedFinding, ...]:
        source_property = None if self._source_type is None else self._source_type.property(property_name)
        return () if source_property is None else source_property.allowed_findings

    def _read_constraints(
        self, body_constraints: tuple[Constraint, ...]
    ) -> dict[ConstraintGroup, dict[ConstraintDetail, frozenset[str]]]:
        own_definitions = [definition for definition in self._type.properties if definition.declared_directly]
        groups: dict[ConstraintGroup, dict[ConstraintDetail, frozenset[str]]] = {}
        for form, constraints in ((INLINE, _inline_constraints(own_definitions)), (BODY, body_constraints)):
            for constraint in constraints:
                group, detail = constraint_slot(constraint, self._property_ids)
                content = groups.setdefault(group, {})
                content[detail] = content.get(detail, frozenset()) | {form}
        return groups
