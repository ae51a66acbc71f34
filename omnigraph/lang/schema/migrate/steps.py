"""Migration steps, with one frozen record class per kind of step, and their JSON form.

This module only defines the steps. `types`, `properties` and `constraints` decide which steps a change needs, and
`evolve` executes them. A step's field names are its JSON member names.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from omnigraph.errors.diagnostics import DiagnosticSeverity
from omnigraph.lang.schema.canonical_shape import JsonObject, annotation_json, constraint_json, type_json
from omnigraph.lang.schema.catalog import Check, Constraint, Index, Key, Range, StoredAnnotation, TypeKind, Unique
from omnigraph.lang.schema.codes import CODES, Tier
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

DropMode = Literal["soft", "hard"]

_JSON_NAMES = {"old": "from", "new": "to"}  # `from` is a Python keyword
_TRAILING_FIELDS = ("tier", "code", "severity")
_OPTIONAL_FIELDS = ("default", "code", "severity")


@record
class CardinalityBounds:
    """The minimum and maximum number of edges per source node. If `high` is None, there is no upper bound."""

    low: int
    high: int | None

    def includes(self, other_bounds: "CardinalityBounds") -> bool:
        """Return whether these bounds allow every count that `other_bounds` allow."""
        fits_above = self.high is None or (other_bounds.high is not None and other_bounds.high <= self.high)
        return self.low <= other_bounds.low and fits_above

    def display(self) -> str:
        """Return the bounds as they are written in a schema file, such as `0..1` or `1..`."""
        return f"{self.low}..{'' if self.high is None else self.high}"

    def to_json(self) -> JsonObject:
        """Return the bounds as JSON, in the form used in canonical shapes."""
        return {"min": self.low, "max": self.high}


@record
class EndpointTypes:
    """The node types at both ends of an edge type."""

    source: str
    target: str

    def display(self) -> str:
        """Return the endpoints as they are written in a schema file, such as `Person -> City`."""
        return f"{self.source} -> {self.target}"

    def to_json(self) -> JsonObject:
        """Return the endpoints as JSON, in the form used in canonical shapes."""
        return {"from_type": self.source, "to_type": self.target}


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    """A migration step. `tier` rates its risk, and `code` refers to a finding in the catalog.

    `safe` steps always succeed, `validated` steps succeed only if a scan finds no entity that violates the new
    rule, and `destructive` steps lose data.
    """

    kind: ClassVar[str] = "step"
    tier: Tier = "safe"
    code: str | None = None
    severity: DiagnosticSeverity | None = None

    def to_json(self) -> JsonObject:
        """Return the step as plain JSON values, with `kind` first. Optional members that are None are omitted."""
        leading_names = [field.name for field in fields(self) if field.name not in _TRAILING_FIELDS]
        values_by_name = {field_name: getattr(self, field_name) for field_name in (*leading_names, *_TRAILING_FIELDS)}
        present_values = {
            field_name: field_value
            for field_name, field_value in values_by_name.items()
            if field_value is not None or field_name not in _OPTIONAL_FIELDS
        }
        return {"kind": self.kind} | {
            _JSON_NAMES.get(field_name, field_name): _to_json_value(field_value)
            for field_name, field_value in present_values.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStep(MigrationStep):
    """A change to an entire type."""

    type_kind: TypeKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddType(TypeStep):
    """An interface, node type or edge type is added. The table for a new node or edge type is empty."""

    kind: ClassVar[str] = "add_type"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameType(MigrationStep):
    """A type is renamed. Its table and history stay the same."""

    kind: ClassVar[str] = "rename_type"
    type_kind: TypeKind
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTypeMetadata(TypeStep):
    """The description or instruction of a type changes. `annotations` contains all annotations after the change."""

    kind: ClassVar[str] = "update_type_metadata"
    annotations: tuple[StoredAnnotation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType(TypeStep):
    """A type is dropped. If `mode` is `hard`, versions that time travel could still read are also removed."""

    kind: ClassVar[str] = "drop_type"
    mode: DropMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyStep(MigrationStep):
    """A change to one property, identified by its new name."""

    type_kind: TypeKind
    type_name: str
    property_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddProperty(PropertyStep):
    """A property is added. In existing entities, it is null, or `default` if it is required."""

    kind: ClassVar[str] = "add_property"
    property_type: PropertyType
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameProperty(MigrationStep):
    """A property is renamed."""

    kind: ClassVar[str] = "rename_property"
    type_kind: TypeKind
    type_name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProperty(PropertyStep):
    """A property and its values are dropped."""

    kind: ClassVar[str] = "drop_property"
    mode: DropMode


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenProperty(PropertyStep):
    """A property changes to a number type that can represent every value of the old type exactly."""

    kind: ClassVar[str] = "widen_property"
    old: PropertyType
    new: PropertyType


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertProperty(PropertyStep):
    """A property changes to a number type that cannot hold all of its values. Only merges produce this step."""

    kind: ClassVar[str] = "convert_property"
    old: PropertyType
    new: PropertyType


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxProperty(PropertyStep):
    """A required property becomes nullable."""

    kind: ClassVar[str] = "relax_property"


@dataclass(frozen=True, slots=True, kw_only=True)
class TightenProperty(PropertyStep):
    """A nullable property becomes required."""

    kind: ClassVar[str] = "tighten_property"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendEnum(PropertyStep):
    """Values are added to an enum."""

    kind: ClassVar[str] = "extend_enum"
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowEnum(PropertyStep):
    """Values are removed from an enum."""

    kind: ClassVar[str] = "narrow_enum"
    removed_values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDefault(PropertyStep):
    """The default for new entities changes. None means that there is no default."""

    kind: ClassVar[str] = "change_default"
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestateConstraint(PropertyStep):
    """A constraint moves between the property and its type's body, with no other effect."""

    kind: ClassVar[str] = "restate_constraint"
    constraint: Constraint
    on_property: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePropertyMetadata(PropertyStep):
    """The description of a property changes. `annotations` contains all annotations after the change."""

    kind: ClassVar[str] = "update_property_metadata"
    annotations: tuple[StoredAnnotation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintStep(MigrationStep):
    """A change to one of a type's constraints or indexes."""

    type_kind: TypeKind
    type_name: str
    constraint: Constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint(ConstraintStep):
    """A constraint or index is added."""

    kind: ClassVar[str] = "add_constraint"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint(ConstraintStep):
    """A constraint or index is dropped. Its columns have the names that are in effect at this step."""

    kind: ClassVar[str] = "drop_constraint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeIndexOptions(MigrationStep):
    """An index gets different options but keeps its columns."""

    kind: ClassVar[str] = "change_index_options"
    type_kind: TypeKind
    type_name: str
    old: Index
    new: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCardinality(MigrationStep):
    """An edge type gets a different `@card`."""

    kind: ClassVar[str] = "change_cardinality"
    type_kind: TypeKind = "edge"
    type_name: str
    old: CardinalityBounds
    new: CardinalityBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEndpoints(MigrationStep):
    """An edge type gets different endpoint types, which must match the endpoints of all existing edges."""

    kind: ClassVar[str] = "change_endpoints"
    type_kind: TypeKind = "edge"
    type_name: str
    old: EndpointTypes
    new: EndpointTypes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedChange(MigrationStep):
    """A change that is not supported. A plan that contains this step is refused."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str


def rating_members(code: str | None) -> dict[str, Any]:
    """Return the step members that a finding code determines, or an empty dict if there is no code.

    >>> rating_members("OG-MF-104")
    {'tier': 'validated', 'code': 'OG-MF-104', 'severity': 'warning'}
    """
    if code is None:
        return {}
    return {"tier": CODES[code].tier, "code": code, "severity": CODES[code].severity}


def make_unsupported_change(code: str, entity: str, reason: str) -> UnsupportedChange:
    """Return a refused change, with its tier and severity from the catalog."""
    return UnsupportedChange(entity=entity, reason=reason, **rating_members(code))


def _to_json_value(value: Any) -> Any:
    match value:
        case PropertyType():
            return type_json(value)
        case StoredAnnotation():
            return annotation_json(value)
        case CardinalityBounds() | EndpointTypes():
            return value.to_json()
        case Key() | Unique() | Index() | Range() | Check():
            return constraint_json(value)
        case tuple():
            return [_to_json_value(item) for item in value]
    return value
