"""A type before and after a migration. The comparisons in this package take such a pair as their input.

Old names are translated to new names, so that a rename is never mistaken for any other change.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from omnigraph.lang.schema.canonical_shape import constraint_sort_key
from omnigraph.lang.schema.catalog import (
    Check,
    Constraint,
    Index,
    InterfaceType,
    Key,
    PropertyDefinition,
    Range,
    TypeKind,
    Unique,
)
from omnigraph.lang.schema.ir import CatalogType, SchemaIR
from omnigraph.records.cached_property import cached_property
from omnigraph.records.frozen import record

from .steps import DropMode
from .stored_types import can_convert_values

ConstraintsByKey = dict[tuple[str, str], Constraint]

# The constraint class for each name that may be written inline on a property.
INLINE_CONSTRAINT_CLASSES: dict[str, type[Key | Unique | Index]] = {"index": Index, "key": Key, "unique": Unique}


@record(slots=False)
class TypePair:
    """A type in the accepted schema (`old_ir`) and its successor in the new schema (`new_ir`)."""

    old_ir: SchemaIR
    new_ir: SchemaIR
    old_type: CatalogType
    new_type: CatalogType
    drop_mode: DropMode
    is_accepted: bool = False  # true if the new schema has already been accepted or comes from a merge

    @property
    def kind(self) -> TypeKind:
        """Return `interface`, `node` or `edge`. A type's kind never changes."""
        return self.new_type.kind

    @property
    def has_rows(self) -> bool:
        """Return whether entities of this type can exist, that is, whether it is a node type or an edge type."""
        return self.kind != "interface"

    @property
    def step_members(self) -> dict[str, Any]:
        """Return the step members that identify the type."""
        return {"type_kind": self.kind, "type_name": self.new_type.name}

    def entity_label(self, property_name: str | None = None) -> str:
        """Return a label for the type or one of its properties, such as `node:Paper.title`, for use in errors."""
        property_suffix = "" if property_name is None else f".{property_name}"
        return f"{self.kind}:{self.new_type.name}{property_suffix}"

    @cached_property
    def new_names(self) -> dict[str, str]:
        """Return the new name of each remaining property, keyed by its old name."""
        new_ids = dict(self.new_ir.identity(self.kind, self.new_type.name).property_ids)
        name_by_id = {property_id: property_name for property_name, property_id in new_ids.items()}
        old_ids = self.old_ir.identity(self.kind, self.old_type.name).property_ids
        return {
            property_name: name_by_id[property_id]
            for property_name, property_id in old_ids
            if property_id in name_by_id and self._is_same_property(property_name, name_by_id[property_id])
        }

    def _is_same_property(self, old_name: str, new_name: str) -> bool:
        """Return whether two properties with the same id are the same property.

        Unless `is_accepted` is true, ignore their types.
        """
        old_property, new_property = self.old_type.property(old_name), self.new_type.property(new_name)
        if not self.is_accepted or old_property is None or new_property is None:
            return True
        return can_convert_values(new_property.type, old_property.type)

    @cached_property
    def surviving_properties(self) -> dict[str, PropertyDefinition]:
        """Return the old definition of each remaining property, keyed by its new name."""
        return {
            self.new_names[definition.name]: definition
            for definition in self.old_type.properties
            if definition.name in self.new_names
        }

    @cached_property
    def new_properties(self) -> dict[str, PropertyDefinition]:
        """Return the new properties, keyed by name."""
        return {definition.name: definition for definition in self.new_type.properties}

    @cached_property
    def dropped_properties(self) -> tuple[PropertyDefinition, ...]:
        """Return the dropped properties, in name order."""
        return tuple(definition for definition in self.old_type.properties if definition.name not in self.new_names)

    @cached_property
    def dropped_names(self) -> frozenset[str]:
        """Return the names of the dropped properties."""
        return frozenset(definition.name for definition in self.dropped_properties)

    @cached_property
    def old_constraints(self) -> ConstraintsByKey:
        """Return the old constraints with new column names, in canonical order."""
        return _sort_constraints(
            self._with_new_columns(constraint) for constraint in _declared_constraints(self.old_type)
        )

    @cached_property
    def new_constraints(self) -> ConstraintsByKey:
        """Return the new constraints in canonical order."""
        return _sort_constraints(_declared_constraints(self.new_type))

    def _with_new_columns(self, constraint: Constraint) -> Constraint:
        """Return an old constraint with new column names. Dropped columns keep their old names."""
        if isinstance(constraint, Range | Check):
            return replace(constraint, column=self._new_column_name(constraint.column))
        return replace(constraint, columns=tuple(sorted(map(self._new_column_name, constraint.columns))))

    def _new_column_name(self, column: str) -> str:
        return self.new_names.get(column, column)


def _declared_constraints(declared_type: CatalogType) -> tuple[Constraint, ...]:
    """Return a type's constraints. An interface has only inline constraints."""
    if isinstance(declared_type, InterfaceType):
        return tuple(
            INLINE_CONSTRAINT_CLASSES[constraint_name]((definition.name,))
            for definition in declared_type.properties
            for constraint_name in definition.inline_constraints
        )
    return declared_type.constraints


def _sort_constraints(constraints: Iterable[Constraint]) -> ConstraintsByKey:
    by_sort_key = {constraint_sort_key(constraint): constraint for constraint in constraints}
    return {constraint_key: by_sort_key[constraint_key] for constraint_key in sorted(by_sort_key)}
