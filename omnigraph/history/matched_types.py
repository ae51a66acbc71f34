"""Match types between two schemas by type and property ids, never by name.

This module determines which table each type continues to use, which columns that table must have, and how rows of the
old type are converted to the new type. It does not compare constraints or documentation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.migrate.stored_types import can_convert_values, can_hold_values
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.records.cached_property import cached_property
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.change_columns import TargetColumn
from omnigraph.storage.initial_values import backfill_value
from omnigraph.storage.value_equality import same_values
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True)
class TypeTransition:
    """A type before and after a migration. Its table stays in the same directory."""

    old_ir: SchemaIR
    new_ir: SchemaIR
    old_type: NodeType | EdgeType
    new_type: NodeType | EdgeType

    @property
    def old_key(self) -> TableKey:
        """The table key before the migration."""
        return table_key(self.old_type)

    @property
    def new_key(self) -> TableKey:
        """The table key after the migration."""
        return table_key(self.new_type)

    @cached_property
    def old_property_names(self) -> dict[str, str]:
        """A mapping from the new name of each retained property to its old name.

        A property whose values cannot be converted counts as a different property, even if it has the same id.
        """
        old_identities = self.old_ir.identity(self.old_type.kind, self.old_type.name).property_ids
        name_by_number = {property_number: property_name for property_name, property_number in old_identities}
        new_identities = self.new_ir.identity(self.new_type.kind, self.new_type.name).property_ids
        return {
            property_name: name_by_number[property_number]
            for property_name, property_number in new_identities
            if property_number in name_by_number
            and self._is_convertible(name_by_number[property_number], property_name)
        }

    def _is_convertible(self, old_name: str, new_name: str) -> bool:
        old_property, new_property = self.old_type.property(old_name), self.new_type.property(new_name)
        if old_property is None or new_property is None:
            return True
        return can_convert_values(new_property.type, old_property.type)

    @property
    def drops_property(self) -> bool:
        """Whether the migration drops a property."""
        return len(self.old_property_names) < len(self.old_type.properties)

    @cached_property
    def target_columns(self) -> list[TargetColumn]:
        """The columns that the table must have after the migration."""
        return [self._target_column(schema_field) for schema_field in table_schema(self.new_ir, self.new_type)]

    def _target_column(self, schema_field: pa.Field) -> TargetColumn:
        declared_property = self.new_type.property(schema_field.name)
        if declared_property is None:  # id, src, dst
            return TargetColumn(schema_field, schema_field.name)
        source_name = self.old_property_names.get(declared_property.name)
        return (
            TargetColumn(schema_field, source_name)
            if source_name is not None
            else TargetColumn(schema_field, None, backfill_value(declared_property))
        )

    @cached_property
    def row_schema(self) -> pa.Schema:
        """The Arrow schema of converted rows."""
        return row_schema(table_schema(self.new_ir, self.new_type))

    @cached_property
    def narrowed_names(self) -> dict[str, str]:
        """A mapping from new to old names for the properties whose new type cannot hold every value of the old type."""
        return {
            prop.name: old_name
            for prop in self.new_type.properties
            if (old_name := self.old_property_names.get(prop.name)) is not None
            and (old_property := self.old_type.property(old_name)) is not None
            and not can_hold_values(prop.type, old_property.type)
        }

    def find_obstacle(self, rows: pa.Table) -> str | None:
        """Return the new name of a property that cannot be converted.

        Returns None if every value in `rows` fits its property's new type.
        """
        for new_name, old_name in self.narrowed_names.items():
            if not fits_type(rows[old_name], self.row_schema.field(new_name).type):
                return new_name
        return None

    def convert(self, rows: pa.Table, *, with_defaults: bool = True) -> pa.Table:
        """Convert rows of the old type to the new type's columns. `find_obstacle` must return None for these rows.

        Renamed properties get their new names, dropped properties are omitted, and numbers are converted to the new
        type. A required property that was added gets its default, and any other added property is null. Without
        `with_defaults`, all added properties are null.
        """
        columns = {
            column.field.name: self._column_for(column, rows, with_defaults=with_defaults).values_for(rows)
            for column in self.target_columns
        }
        return pa.table(columns).cast(self.row_schema)

    def _column_for(self, column: TargetColumn, rows: pa.Table, *, with_defaults: bool) -> TargetColumn:
        is_narrowed = column.source is not None and column.field.name in self.narrowed_names
        if is_narrowed and rows[str(column.source)].null_count == rows.num_rows:
            return replace(column, source=None)  # a null fits every type
        return column if with_defaults else replace(column, default_value=None)

    @property
    def rewrites_values(self) -> bool:
        """Whether values in existing rows must be rewritten."""
        stored_types = {
            target_column.name: target_column.type for target_column in table_schema(self.old_ir, self.old_type)
        }
        return any(
            target_column.default_value is not None
            or (target_column.source and stored_types[target_column.source] != target_column.field.type)
            for target_column in self.target_columns
        )


def fits_type(values: pa.ChunkedArray, new_type: pa.DataType) -> bool:
    """Return whether a number type can represent every given value exactly."""
    if values.null_count == len(values):
        return True
    if not (_holds_numbers(values.type) and _holds_numbers(new_type)):
        return False
    try:
        return bool(same_values(values, values.cast(new_type).cast(values.type)).all())
    except pa.ArrowInvalid:
        return False


def _holds_numbers(data_type: pa.DataType) -> bool:
    """Return whether the values of a data type are numbers or lists of numbers."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        data_type = data_type.value_type
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def type_transitions(old_ir: SchemaIR, new_ir: SchemaIR) -> Iterator[TypeTransition]:
    """Yield the types that exist in both schemas, including renamed ones."""
    old_type_by_number = {_type_number(old_ir, new_type): new_type for new_type in _stored_types(old_ir)}
    for new_type in _stored_types(new_ir):
        old_type = old_type_by_number.get(_type_number(new_ir, new_type))
        if old_type is not None:
            yield TypeTransition(old_ir, new_ir, old_type, new_type)


def find_transition(old_ir: SchemaIR, new_ir: SchemaIR, new_key: TableKey) -> TypeTransition | None:
    """Return a type's transition from the old schema to the new one, or None if the type is new."""
    new_number = new_ir.type_id(new_key.kind, new_key.type_name)
    old_type = next((each for each in _stored_types(old_ir) if _type_number(old_ir, each) == new_number), None)
    return None if old_type is None else TypeTransition(old_ir, new_ir, old_type, type_for_key(new_ir.catalog, new_key))


def added_types(old_ir: SchemaIR, new_ir: SchemaIR) -> list[NodeType | EdgeType]:
    """Return the new types, including those that reuse a dropped type's name."""
    old_numbers = {_type_number(old_ir, entity_type) for entity_type in _stored_types(old_ir)}
    return [
        entity_type for entity_type in _stored_types(new_ir) if _type_number(new_ir, entity_type) not in old_numbers
    ]


def dropped_types(old_ir: SchemaIR, new_ir: SchemaIR) -> list[NodeType | EdgeType]:
    """Return the dropped types."""
    return added_types(new_ir, old_ir)


def _stored_types(schema_ir: SchemaIR) -> list[NodeType | EdgeType]:
    return [*schema_ir.catalog.nodes, *schema_ir.catalog.edges]


def _type_number(schema_ir: SchemaIR, entity_type: NodeType | EdgeType) -> int:
    return schema_ir.type_id(entity_type.kind, entity_type.name)
