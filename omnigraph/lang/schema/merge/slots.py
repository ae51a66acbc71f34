"""The declared parts of a schema, represented as slots and keyed by id.

A slot is the smallest unit that is merged independently, such as a name, a type, an annotation or a constraint. Only
the items that are written in a declaration have slots. Inherited properties are derived from the node's interfaces.
Slots refer to types and properties by id, so a rename changes only one slot.
"""

from collections.abc import Mapping
from dataclasses import field

from omnigraph.lang.schema.catalog import AllowedFinding, StoredAnnotation, TypeKind
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

ColumnReference = int | str  # a property id, or the name of a system column
ConstraintGroup = tuple[str, tuple[ColumnReference, ...]]
ConstraintDetail = tuple[object, ...]
GroupContent = Mapping[ConstraintDetail, frozenset[str]]
Annotations = Mapping[str, tuple[StoredAnnotation, ...]]

INLINE, BODY = "inline", "body"


@record
class EmbedSlot:
    """`@embed`: the id of the source property (or a name that each implementing node resolves) and the model."""

    source: ColumnReference
    model: str | None
    source_name: str = field(default="", compare=False)


@record
class PropertySlots:
    """A property as declared. Its inline constraints are stored with the constraints of its type."""

    name: str
    type: PropertyType
    annotations: Annotations
    default: str | None = None
    embed: EmbedSlot | None = None
    allowed_findings: tuple[AllowedFinding, ...] = field(default=(), compare=False)


@record
class TypeSlots:
    """The declared parts of a type.

    A constraint group consists of a kind and its columns. `@key` has no columns here, because a type has only one key.
    The group's content maps each detail, such as the bounds of a range, to its location in the text: inline, in the
    body, or both. `property_ids` also lists inherited properties, and `satisfied_ids` lists the interface properties
    that each property satisfies.
    """

    kind: TypeKind
    type_id: int
    table_id: int | None
    name: str
    properties: Mapping[int, PropertySlots]
    constraints: Mapping[ConstraintGroup, GroupContent]
    annotations: Annotations
    implements: frozenset[int] = frozenset()
    source_id: int | None = None
    target_id: int | None = None
    cardinality: tuple[int, int | None] = (0, None)
    property_ids: Mapping[str, int] = field(default_factory=dict, compare=False)
    satisfied_ids: Mapping[int, tuple[int, ...]] = field(default_factory=dict, compare=False)
    allowed_findings: tuple[AllowedFinding, ...] = field(default=(), compare=False)

    @property
    def label(self) -> str:
        """The type's label in conflicts, such as `node:Person`."""
        return f"{self.kind}:{self.name}"

    def property_name(self, property_id: int) -> str | None:
        """Return the name of a declared or inherited property, or None if the type does not have such a property."""
        if property_id in self.properties:
            return self.properties[property_id].name
        return next((name for name, known_id in self.property_ids.items() if known_id == property_id), None)

    def property_label(self, property_id: int) -> str:
        """Return a property's label in conflicts, such as `node:Person.age`."""
        return f"{self.label}.{self.property_name(property_id)}"


SchemaSlots = dict[int, TypeSlots]


def group_columns(group: ConstraintGroup, content: GroupContent) -> frozenset[ColumnReference]:
    """Return every column that the constraints in a group refer to."""
    if group[0] != "key":
        return frozenset(group[1])
    return frozenset(column for columns in content for column in columns if isinstance(column, int | str))
