"""Match columns between two table versions by property id instead of by name.

Each column records the id of its property. This module compares and aligns columns but does not read rows.
"""

from collections.abc import Container, Mapping

import pyarrow as pa

from .arrow import PROPERTY_ID_KEY
from .blobs import row_schema
from .table import Table
from .table_fields import lance_columns


def property_identity(field: pa.Field) -> bytes:
    """Return the property id of a column, or the name of a column without a property, such as `id`."""
    identity: bytes = (field.metadata or {}).get(PROPERTY_ID_KEY, field.name.encode())
    return identity


def have_same_columns(first_table: Table, second_table: Table) -> bool:
    """Return whether two tables have the same properties with the same names and types, in the same order."""
    first_columns, second_columns = (
        [(field.name, property_identity(field), field.type) for field in table.schema]
        for table in (first_table, second_table)
    )
    return first_columns == second_columns


def contains_hidden_values(table: Table, other_table: Table, relevant: Container[bytes] | None = None) -> bool:
    """Return whether the files of `table` contain values for a column that only `other_table` has.

    Two versions can have the same files and still differ, because the values of a dropped column stay in the files. If
    `relevant` is given, only columns with these property identities are checked.
    """
    identities = {(property_identity(field), _value_kind(field.type)) for field in table.schema}
    hidden_names = {
        field.name
        for field in other_table.schema
        if (property_identity(field), _value_kind(field.type)) not in identities
        and (relevant is None or property_identity(field) in relevant)
    }
    if not hidden_names:
        return False
    columns = lance_columns(other_table.dataset.lance_schema)
    hidden_ids = {field_id for column in columns if column.name in hidden_names for field_id in column.field_ids}
    return any(
        not hidden_ids.isdisjoint(data_file.fields)
        for fragment in table.dataset.get_fragments()
        for data_file in fragment.metadata.files
    )


def _value_kind(data_type: pa.DataType) -> str:
    """Return a name that is the same for two types if a property can be widened from one to the other."""
    if pa.types.is_list(data_type):
        return f"list of {_value_kind(data_type.value_type)}"
    is_number = pa.types.is_integer(data_type) or pa.types.is_floating(data_type)
    return "number" if is_number else str(data_type)


def align_columns(
    rows: pa.Table, old_schema: pa.Schema, new_schema: pa.Schema, column_defaults: Mapping[str, pa.Scalar] | None = None
) -> pa.Table:
    """Convert rows to a different schema, matching columns by property identity.

    A column that is missing from the rows is filled with its value in `column_defaults`, or with null if it has none.
    """
    if old_schema.equals(new_schema, check_metadata=True):
        return rows
    old_fields = {property_identity(field): field for field in old_schema}
    columns = {}
    for new_field, plain_field in zip(new_schema, row_schema(new_schema), strict=True):
        old_field = old_fields.get(property_identity(new_field))
        if old_field is not None and old_field.type == new_field.type:
            columns[new_field.name] = rows[old_field.name]
        elif old_field is not None and _value_kind(old_field.type) == _value_kind(
            new_field.type
        ):  # the property was widened to another number type
            columns[new_field.name] = rows[old_field.name].cast(plain_field.type)
        elif column_defaults is not None and new_field.name in column_defaults:
            columns[new_field.name] = pa.repeat(column_defaults[new_field.name], rows.num_rows)
        else:
            columns[new_field.name] = pa.nulls(rows.num_rows, plain_field.type)
    return pa.table(columns)
