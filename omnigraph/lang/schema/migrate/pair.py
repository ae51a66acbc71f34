"""One type before and after a migration: the input of everything that compares.

Owns the translation of old names into new ones, so that a rename is never taken for a change.
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

# The constraint that a word on a property stands for.
MARKS: dict[str, type[Key | Unique | Index]] = {"index": Index, "key": Key, "unique": Unique}


@record(slots=False)
class Pair:
    """A type of the accepted schema (`before`, `old`) and what it becomes (`after`, `new`)."""

    before: SchemaIR
    after: SchemaIR
    old: AnyType
    new: AnyType
    mode: Mode

    @property
    def kind(self) -> TypeKind:
        """Interface, node or edge: identity never crosses kinds."""
        return self.new.kind

    @property
    def has_rows(self) -> bool:
        """Whether entities of this type can exist; an interface has none of its own."""
        return self.kind != "interface"

    @property
    def at(self) -> dict[str, Any]:
        """The members by which a step names the type."""
        return {"type_kind": self.kind, "type_name": self.new.name}

    def entity(self, property_name: str | None = None) -> str:
        """How refusals name the type or one of its properties: `node:Paper.title`."""
        tail = "" if property_name is None else f".{property_name}"
        return f"{self.kind}:{self.new.name}{tail}"

    @cached_property
    def renamed(self) -> dict[str, str]:
        """The new name of each old property that stays."""
        after = dict(self.after.identity(self.kind, self.new.name).properties)
        names = {number: name for name, number in after.items()}
        before = self.before.identity(self.kind, self.old.name).properties
        return {name: names[number] for name, number in before if number in names}

    @cached_property
    def survivors(self) -> dict[str, Property]:
        """The old form of each property that stays, by its new name."""
        return {self.renamed[p.name]: p for p in self.old.properties if p.name in self.renamed}

    @cached_property
    def after_properties(self) -> dict[str, Property]:
        """The new properties by name."""
        return {one.name: one for one in self.new.properties}

    @cached_property
    def dropped(self) -> tuple[Property, ...]:
        """The old properties that go, in name order."""
        return tuple(p for p in self.old.properties if p.name not in self.renamed)

    @cached_property
    def dropped_names(self) -> frozenset[str]:
        """The names of the properties that go."""
        return frozenset(one.name for one in self.dropped)

    @cached_property
    def old_constraints(self) -> Constraints:
        """The constraints before, in the new names of their columns, in canonical order."""
        return _ordered(self._translated(one) for one in _written(self.old))

    @cached_property
    def new_constraints(self) -> Constraints:
        """The constraints after, in canonical order."""
        return _ordered(_written(self.new))

    def _translated(self, constraint: Constraint) -> Constraint:
        """An old constraint in the new names of its columns; dropped columns keep theirs."""
        if isinstance(constraint, Range | Check):
            return replace(constraint, column=self._now(constraint.column))
        return replace(constraint, columns=tuple(sorted(map(self._now, constraint.columns))))

    def _now(self, column: str) -> str:
        return self.renamed.get(column, column)


def _written(one: AnyType) -> tuple[Constraint, ...]:
    """The constraints of a type; those of an interface are written on its properties only."""
    if isinstance(one, Interface):
        return tuple(MARKS[word]((p.name,)) for p in one.properties for word in p.marks)
    return one.constraints


def _ordered(constraints: Iterable[Constraint]) -> Constraints:
    found = {sort_key(one): one for one in constraints}
    return {key: found[key] for key in sorted(found)}
