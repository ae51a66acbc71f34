"""The steps of a migration: one frozen record per kind, and their JSON.

Owns the vocabulary only. Which change needs which step is decided in `types`, `properties` and
`constraints`; carrying a step out is the job of whoever owns the data.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from omnigraph.diagnostics import Severity
from omnigraph.lang.schema.catalog import (
    Check,
    Constraint,
    Index,
    Key,
    Note,
    Range,
    TypeKind,
    Unique,
)
from omnigraph.lang.schema.codes import CODES, Tier
from omnigraph.lang.schema.shape import Json, constraint_json, note_json, type_json
from omnigraph.record import record
from omnigraph.values import PropertyType

Mode = Literal["soft", "hard"]

_SPELLED = {"old": "from", "new": "to"}  # `from` is a word of Python
_LAST = ("tier", "code", "severity")
_OPTIONAL = ("default", "code", "severity")


@record
class Cardinality:
    """How many edges of a type a source node may have; `high` None is unbounded."""

    low: int
    high: int | None

    def allows(self, other: "Cardinality") -> bool:
        """Whether every count that fits `other` fits this one too."""
        fits_above = self.high is None or (other.high is not None and other.high <= self.high)
        return self.low <= other.low and fits_above

    def display(self) -> str:
        """As in a schema file: `0..1`, `1..`."""
        return f"{self.low}..{'' if self.high is None else self.high}"

    def to_json(self) -> Json:
        """As a shape has it."""
        return {"min": self.low, "max": self.high}


@record
class Endpoints:
    """The node types that an edge type leads from and to."""

    source: str
    target: str

    def display(self) -> str:
        """As in a schema file: `Person -> City`."""
        return f"{self.source} -> {self.target}"

    def to_json(self) -> Json:
        """As a shape has them."""
        return {"from_type": self.source, "to_type": self.target}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change. `tier` says what it risks; `code` names a finding of the catalogue.

    `safe` steps always succeed, `validated` ones only if a scan finds no entity that breaks them,
    `destructive` ones lose data.
    """

    kind: ClassVar[str] = "step"
    tier: Tier = "safe"
    code: str | None = None
    severity: Severity | None = None

    def to_json(self) -> Json:
        """The step as plain JSON values, `kind` first; optional facts it lacks are left out."""
        names = [field.name for field in fields(self) if field.name not in _LAST]
        facts = {name: getattr(self, name) for name in (*names, *_LAST)}
        body = {n: v for n, v in facts.items() if v is not None or n not in _OPTIONAL}
        return {"kind": self.kind} | {_SPELLED.get(n, n): _plain(v) for n, v in body.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStep(Step):
    """A change of one type as a whole."""

    type_kind: TypeKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddType(TypeStep):
    """A new interface, node or edge type; its table starts empty."""

    kind: ClassVar[str] = "add_type"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameType(Step):
    """The same type under another name: same table, same history."""

    kind: ClassVar[str] = "rename_type"
    type_kind: TypeKind
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTypeMetadata(TypeStep):
    """Texts for readers change; `annotations` are all that the type has now."""

    kind: ClassVar[str] = "update_type_metadata"
    annotations: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType(TypeStep):
    """A type goes; `hard` also removes what time travel could still read."""

    kind: ClassVar[str] = "drop_type"
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyStep(Step):
    """A change of one property, under its new name."""

    type_kind: TypeKind
    type_name: str
    property_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddProperty(PropertyStep):
    """A new property: null in existing entities, or `default` where it is required."""

    kind: ClassVar[str] = "add_property"
    property_type: PropertyType
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameProperty(Step):
    """The same property under another name."""

    kind: ClassVar[str] = "rename_property"
    type_kind: TypeKind
    type_name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProperty(PropertyStep):
    """A property goes with its values."""

    kind: ClassVar[str] = "drop_property"
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenProperty(PropertyStep):
    """Another number type that holds every value of the old one exactly."""

    kind: ClassVar[str] = "widen_property"
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
    """An enum gets further values."""

    kind: ClassVar[str] = "extend_enum"
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowEnum(PropertyStep):
    """An enum loses values."""

    kind: ClassVar[str] = "narrow_enum"
    removed_values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDefault(PropertyStep):
    """Entities written from now on get another default; None is no default."""

    kind: ClassVar[str] = "change_default"
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestateConstraint(PropertyStep):
    """A constraint moves between the property and the body of its type; its meaning stays."""

    kind: ClassVar[str] = "restate_constraint"
    constraint: Constraint
    on_property: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePropertyMetadata(PropertyStep):
    """Texts for readers change; `annotations` are all that the property has now."""

    kind: ClassVar[str] = "update_property_metadata"
    annotations: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintStep(Step):
    """A change of one constraint or index of a type."""

    type_kind: TypeKind
    type_name: str
    constraint: Constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint(ConstraintStep):
    """A further constraint or index."""

    kind: ClassVar[str] = "add_constraint"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint(ConstraintStep):
    """A constraint or index goes; its columns have the names they have at this step."""

    kind: ClassVar[str] = "drop_constraint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeIndexOptions(Step):
    """An index over the same columns gets other options."""

    kind: ClassVar[str] = "change_index_options"
    type_kind: TypeKind
    type_name: str
    old: Index
    new: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCardinality(Step):
    """An edge type gets another `@card`."""

    kind: ClassVar[str] = "change_cardinality"
    type_kind: TypeKind = "edge"
    type_name: str
    old: Cardinality
    new: Cardinality


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEndpoints(Step):
    """An edge type leads from or to another node type, which must have the ends of all edges."""

    kind: ClassVar[str] = "change_endpoints"
    type_kind: TypeKind = "edge"
    type_name: str
    old: Endpoints
    new: Endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedChange(Step):
    """A change that no plan can carry out; the whole plan is refused."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str


def rated(code: str | None) -> dict[str, Any]:
    """The members of a step that follow from its code; none for a step without a finding.

    >>> rated("OG-MF-104")
    {'tier': 'validated', 'code': 'OG-MF-104', 'severity': 'warning'}
    """
    if code is None:
        return {}
    return {"tier": CODES[code].tier, "code": code, "severity": CODES[code].severity}


def unsupported(code: str, entity: str, reason: str) -> UnsupportedChange:
    """A refusal, with tier and severity from the catalogue."""
    return UnsupportedChange(entity=entity, reason=reason, **rated(code))


def _plain(value: Any) -> Any:
    match value:
        case PropertyType():
            return type_json(value)
        case Note():
            return note_json(value)
        case Cardinality() | Endpoints():
            return value.to_json()
        case Key() | Unique() | Index() | Range() | Check():
            return constraint_json(value)
        case tuple():
            return [_plain(one) for one in value]
    return value
