"""One type before and after a migration: the input of every comparison.

Owns the translation of old names to new ones, so that a rename never counts as a change.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from omnigraph.lang.schema.catalog import (
    Check,
    Constraint,
    Index,
    Interface,
    Key,
    Property,
    Range,
    TypeKind,
    Unique,
)
from omnigraph.lang.schema.ir import AnyType, SchemaIR
from omnigraph.lang.schema.shape import sort_key
from omnigraph.record import record

from .steps import Mode

Constraints = dict[tuple[str, str], Constraint]

# The constraint class for each name that may be written inline on a property.
MARKS: dict[str, type[Key | Unique | Index]] = {"index": Index, "key": Key, "unique": Unique}


@record(slots=False)
class Pair:
    """A type of the accepted schema (`old_ir`) and its successor in the new one (`new_ir`)."""

    before: SchemaIR
    after: SchemaIR
    old: AnyType
    new: AnyType
    mode: Mode

    @property
    def kind(self) -> TypeKind:
        """Return interface, node or edge; a type never changes its kind."""
        return self.new.kind

    @property
    def has_rows(self) -> bool:
        """Return whether entities of this type can exist; an interface has no rows."""
        return self.kind != "interface"

    @property
    def at(self) -> dict[str, Any]:
        """Return the members by which a step names the type."""
        return {"type_kind": self.kind, "type_name": self.new.name}

    def entity(self, property_name: str | None = None) -> str:
        """Return the label of the type or of one property in refusals: `node:Paper.title`."""
        tail = "" if property_name is None else f".{property_name}"
        return f"{self.kind}:{self.new.name}{tail}"

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Return the new name of each old property that remains."""
        after = dict(self.after.identity(self.kind, self.new.name).properties)
        names = {number: name for name, number in after.items()}
        before = self.before.identity(self.kind, self.old.name).properties
        return {name: names[number] for name, number in before if number in names}

    @cached_property
    def survivors(self) -> dict[str, Property]:
        """Return the old definition of each remaining property, by its new name."""
        return {self.renamed[p.name]: p for p in self.old.properties if p.name in self.renamed}

    @cached_property
    def after_properties(self) -> dict[str, Property]:
        """Return the new properties by name."""
        return {one.name: one for one in self.new.properties}

    @cached_property
    def dropped(self) -> tuple[Property, ...]:
        """Return the dropped properties, in name order."""
        return tuple(p for p in self.old.properties if p.name not in self.renamed)

    @cached_property
    def dropped_names(self) -> frozenset[str]:
        """Return the names of the dropped properties."""
        return frozenset(one.name for one in self.dropped)

    @cached_property
    def old_constraints(self) -> Constraints:
        """Return the old constraints with new column names, in canonical order."""
        return _ordered(self._translated(one) for one in _written(self.old))

    @cached_property
    def new_constraints(self) -> Constraints:
        """Return the new constraints in canonical order."""
        return _ordered(_written(self.new))

    def _translated(self, constraint: Constraint) -> Constraint:
        """Return an old constraint with new column names; dropped columns keep theirs."""
        if isinstance(constraint, Range | Check):
            return replace(constraint, column=self._now(constraint.column))
        return replace(constraint, columns=tuple(sorted(map(self._now, constraint.columns))))

    def _now(self, column: str) -> str:
        return self.renamed.get(column, column)


def _written(one: AnyType) -> tuple[Constraint, ...]:
    """Return the constraints of a type; an interface has only inline constraints."""
    if isinstance(one, Interface):
        return tuple(MARKS[word]((p.name,)) for p in one.properties for word in p.marks)
    return one.constraints


def _ordered(constraints: Iterable[Constraint]) -> Constraints:
    found = {sort_key(one): one for one in constraints}
    return {key: found[key] for key in sorted(found)}
