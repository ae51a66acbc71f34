"""Matches the types of two schemas by their type and property numbers, never by name.

Owns the comparison of two schemas as far as storage is concerned: which type continues which
table, and which columns that table must have. Constraints and documentation are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from omnigraph.ingest.defaults import first_value
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.reshape import Wanted


@dataclass(frozen=True)
class Passage:
    """A type before and after a migration; its table stays where it is."""

    before: SchemaIR
    after: SchemaIR
    old: Node | Edge
    new: Node | Edge

    @property
    def old_key(self) -> str:
        """Table key before the migration."""
        return table_key(self.old)

    @property
    def new_key(self) -> str:
        """Table key after the migration."""
        return table_key(self.new)

    @cached_property
    def sources(self) -> dict[str, str]:
        """Map the new name of each retained property to its old name."""
        numbers = self.before.identity(self.old.kind, self.old.name).properties
        names = {number: name for name, number in numbers}
        after = self.after.identity(self.new.kind, self.new.name).properties
        return {name: names[number] for name, number in after if number in names}

    @property
    def loses(self) -> bool:
        """Whether the migration drops a property."""
        return len(self.sources) < len(self.old.properties)

    @cached_property
    def columns(self) -> list[Wanted]:
        """The columns that the table must have."""
        return [self._wanted(field) for field in table_schema(self.after, self.new)]

    def _wanted(self, field: pa.Field) -> Wanted:
        prop = self.new.property(field.name)
        if prop is None:  # id, src, dst
            return Wanted(field, field.name)
        source = self.sources.get(prop.name)
        return (
            Wanted(field, source) if source is not None else Wanted(field, None, first_value(prop))
        )

    @property
    def fills(self) -> bool:
        """Whether values of existing rows must be written to files."""
        kinds = {one.name: one.type for one in table_schema(self.before, self.old)}
        return any(
            one.value is not None or (one.source and kinds[one.source] != one.field.type)
            for one in self.columns
        )


def passages(before: SchemaIR, after: SchemaIR) -> Iterator[Passage]:
    """Yield the types that both schemas have, regardless of renames."""
    old = {_number(before, one): one for one in _types(before)}
    for one in _types(after):
        found = old.get(_number(after, one))
        if found is not None:
            yield Passage(before, after, found, one)


def added_types(before: SchemaIR, after: SchemaIR) -> list[Node | Edge]:
    """Return the new types, including those that reuse the name of a dropped type."""
    known = {_number(before, one) for one in _types(before)}
    return [one for one in _types(after) if _number(after, one) not in known]


def dropped_types(before: SchemaIR, after: SchemaIR) -> list[Node | Edge]:
    """Return the types that are dropped."""
    return added_types(after, before)


def _types(ir: SchemaIR) -> list[Node | Edge]:
    return [*ir.catalog.nodes, *ir.catalog.edges]


def _number(ir: SchemaIR, one: Node | Edge) -> int:
    return ir.type_id(one.kind, one.name)
